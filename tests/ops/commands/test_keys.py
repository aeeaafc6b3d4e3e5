"""`latchkey keys`: keys are replaced in their files, or by a value to set."""

import json
import os
import time

import pytest
import structlog

from auth.core import files, settings
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.tokens import derived_keys, signing_keys
from auth.core.tokens.derived_keys import format_time
from tests.support.apps import new_app
from tests.support.commands import SYSTEM_USER, run_command
from tests.support.environment import secret
from tests.support.factors import set_up
from tests.support.openid import insert_client
from tests.support.users import Session, register, session_of, sign_in

A_DAY, AN_HOUR = 86_400, 3600
OTHER_SECRET = secret("other")


class Deployment:
    """An application with its keys in its own state directory."""

    def __init__(self, app, directory):
        self.app = app
        self.directory = directory
        self.client = app.test_client()
        self.parts = app.extensions["latchkey"]

    def run(self, *arguments, status=0, **options):
        result = run_command(self.app, "keys", *arguments, **options)
        assert result.exit_code == status, result.output
        self.parts.key_ring.refresh()
        return result.output

    def keys(self, kind):
        all_keys = [json.loads(line) for line in self.run("list", "--json").splitlines()]
        return [key for key in all_keys if key["kind"] == kind]

    def states(self, kind):
        return [key["state"] for key in self.keys(kind)]

    def move_time(self, seconds):
        """Make the keys of the files older."""
        for name in ("secret_key", "jwt_keys.json"):
            path = self.directory / name
            text = path.read_text()
            for key in json.loads(self.run("list", "--json").replace("}\n{", "},{").join("[]")):
                if at := key["active_from"]:
                    text = text.replace(at, format_time(derived_keys.parse_time(at) - seconds))
            path.write_text(text)
        self.parts.key_ring.refresh()


@pytest.fixture
def deployment(environment, database, tmp_path):
    unset = ("AUTH_SERVICE_ROLE_KEY", "AUTH_STATE_DIR")
    changes = {name: value for name, value in environment.items() if name not in unset}
    log = structlog.get_config()
    app = new_app(changes | {"AUTH_STATE_DIR": str(tmp_path / "var")})
    yield Deployment(app, tmp_path / "var")
    structlog.configure(**log)
    app.extensions["latchkey"].db.close()


@pytest.fixture
def person(deployment):
    key = (deployment.directory / "service_role_key").read_text().strip()
    return register(deployment.client, {"apikey": key}, "erin@example.com")


def open_session(deployment, person) -> Session:
    return session_of(deployment.client, sign_in(deployment.client, person.email))


def worker(deployment) -> OpenIdKeys:
    """Return the OpenID keys of another process."""
    return OpenIdKeys(deployment.parts.db, deployment.parts.sealer)


class TestRotation:
    @pytest.mark.parametrize("kind", ["signing", "secret"])
    def test_new_key_waits_and_the_old_one_is_in_use_until_its_time(self, deployment, kind):
        deployment.run("rotate", kind)
        assert deployment.states(kind) == ["waiting", "in use"]
        old = deployment.keys(kind)[1]["id"]
        assert "is in use. Wait until another takes over at 2" in deployment.run("remove", old, status=1)
        at = derived_keys.parse_time(deployment.keys(kind)[0]["active_from"])
        assert at == pytest.approx(time.time() + A_DAY, abs=60)
        deployment.move_time(A_DAY - 60)
        assert deployment.states(kind) == ["waiting", "in use"]
        deployment.move_time(120)
        assert deployment.states(kind) == ["in use", "accepted"]

    def test_leaked_key_is_replaced_in_half_a_minute(self, deployment):
        deployment.run("rotate", "secret")
        waiting = deployment.keys("secret")[0]["id"]
        assert f"latchkey keys remove {waiting}" in deployment.run("rotate", "secret", status=1)
        deployment.run("rotate", "secret", "--now")
        deployment.move_time(31)
        assert deployment.states("secret") == ["in use", "waiting", "accepted"]
        deployment.run("remove", waiting)
        assert deployment.states("secret") == ["in use", "accepted"]

    def test_service_role_key_is_accepted_at_once(self, deployment):
        old = (deployment.directory / "service_role_key").read_text().strip()
        deployment.run("rotate", "service-role")
        new = (deployment.directory / "service_role_key").read_text().strip().split(",")[0]
        for key in (old, new):
            assert deployment.client.get("/admin/users", headers={"apikey": key}).status_code == 200
        deployment.run("remove", deployment.keys("service-role")[1]["id"])
        assert deployment.client.get("/admin/users", headers={"apikey": old}).status_code == 401

    @pytest.mark.parametrize("algorithm", signing_keys.ALGORITHMS)
    def test_new_signing_key_has_the_algorithm_that_was_asked_for_and_then_keeps_it(
        self, deployment, algorithm
    ):
        deployment.run("rotate", "signing", "--algorithm", algorithm)
        deployment.move_time(A_DAY + 60)
        deployment.run("rotate", "signing")
        jwks = json.loads((deployment.directory / "jwt_keys.json").read_text())["keys"]
        assert [jwk["alg"] for jwk in jwks] == [algorithm, algorithm, "ES256"]


class TestPublicKeys:
    def published(self, deployment):
        return deployment.client.get("/.well-known/jwks.json").json["keys"]

    @pytest.mark.usefixtures("no_openid_keys")
    def test_public_keys_are_printed_as_the_service_publishes_them_with_waiting_keys(self, deployment):
        deployment.parts.openid_keys.make_first()
        (openid_key,) = self.published(deployment)[1:]
        deployment.run("rotate", "signing")
        keys = json.loads(deployment.run("public", "--jwks"))["keys"]
        assert keys == self.published(deployment)
        signing = [(deployment.keys("signing")[n]["id"], "ES256") for n in (0, 1)]
        assert [(key["kid"], key["alg"]) for key in keys] == [*signing, (openid_key["kid"], "RS256")]
        assert not {"d", "p", "q"} & {member for key in keys for member in key}
        assert [json.loads(line) for line in deployment.run("public").splitlines()] == keys

    def test_shared_secret_is_not_printed(self, deployment):
        deployment.run("rotate", "signing", "--algorithm", "HS256")
        keys = json.loads(deployment.run("public", "--jwks"))["keys"]
        assert (keys, {key["kty"] for key in keys}) == (self.published(deployment), {"EC"})


class TestRemoval:
    @pytest.fixture
    def rotated(self, deployment):
        """Return a function that replaces the secret key by a new one in use, and returns the id of the old one."""

        def rotated():
            deployment.run("rotate", "secret")
            deployment.move_time(A_DAY + 1)
            return deployment.keys("secret")[1]["id"]

        return rotated

    def test_key_in_use_is_not_removed(self, deployment):
        for kind in ("signing", "secret", "service-role"):
            (key,) = deployment.keys(kind)
            assert f"latchkey keys rotate {kind}" in deployment.run("remove", key["id"], status=1)

    def test_session_needs_the_key_until_it_is_refreshed(self, deployment, person, rotated, database):
        session = open_session(deployment, person)
        database.run("UPDATE sessions SET refreshed_at = now() - interval '10 minutes'")
        old = rotated()
        assert "1 sessions" in deployment.run("remove", old, status=3)
        explained = run_command(deployment.app, "explain", person.email).output
        assert "1 live, 1 of which need an old secret key until refreshed" in explained
        assert session.refresh().status_code == 200
        deployment.move_time(AN_HOUR)
        assert deployment.keys("secret")[1]["needed_by"] == []
        deployment.run("remove", old)

    def test_session_that_ended_or_expired_needs_no_key(self, deployment, person, rotated, database):
        for change in (
            "ended_at = now(), end_reason = 'logout'",
            "refreshed_at = now() - interval '31 days'",
        ):
            open_session(deployment, person)
            database.run(f"UPDATE sessions SET {change} WHERE ended_at IS NULL")
        session = open_session(deployment, person)
        old = rotated()
        assert deployment.keys("secret")[1]["needed_by"] == ["1 sessions"]
        deployment.run("remove", old, "--force")
        assert session.refresh().status_code == 400

    def test_code_needs_the_key_until_it_is_spent_or_expires(self, deployment, person, rotated, database):
        deployment.client.post("/magiclink", json={"email": person.email})
        old = rotated()
        assert "1 codes" in deployment.run("remove", old, status=3)
        database.run("UPDATE one_time_tokens SET code_expires_at = now()")
        deployment.run("remove", old)

    def test_message_and_webhook_are_resealed_instead_of_keeping_the_key(
        self, deployment, person, rotated, database
    ):
        key = {"apikey": (deployment.directory / "service_role_key").read_text().strip()}
        body = {"url": "http://127.0.0.1:9/hook"}
        created = deployment.client.post("/admin/webhooks", json=body, headers=key).json
        previous = deployment.parts.sealer.seal("whsec_previous", created["id"])
        database.run("UPDATE webhooks SET previous_secret = %(previous)s", previous=previous)
        deployment.client.post("/magiclink", json={"email": person.email})
        database.run("UPDATE one_time_tokens SET code_expires_at = now()")
        old = rotated()
        assert deployment.keys("secret")[1]["needed_by"] == ["1 waiting messages", "1 webhooks"]
        deployment.run("remove", old)
        sealer = deployment.parts.sealer
        webhook = database.one("SELECT id, secret, previous_secret FROM webhooks")
        assert sealer.open(bytes(webhook.secret), webhook.id) == created["secret"]
        assert sealer.open(bytes(webhook.previous_secret), webhook.id) == "whsec_previous"
        message = database.one("SELECT id, secret FROM outbox WHERE secret IS NOT NULL")
        assert json.loads(sealer.open(bytes(message.secret), message.id))["token"]

    def test_totp_secrets_and_removed_ones_are_resealed_and_other_secrets_need_the_key(
        self, deployment, person, rotated, database
    ):
        kept, session = set_up(open_session(deployment, person), "kept")
        removed, session = set_up(session, "removed")
        # The secret of a younger factor is not kept.
        database.run("UPDATE factors SET verified_at = now() - interval '8 days'")
        assert session.delete(f"/factors/{removed.id}").status_code == 200
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
        database.run("INSERT INTO recovery_codes (user_id, code_mac) VALUES (%(user)s, 'x')", user=person.id)
        database.run(
            "INSERT INTO api_keys (id, user_id, name, key_mac, scopes)"
            " VALUES (gen_random_uuid(), %(user)s, 'CI', %(mac)s, '{}')",
            user=person.id,
            mac=deployment.parts.api_keys.macs("lk_")[0],
        )
        old = rotated()
        needed = {"2 TOTP secrets", "1 recovery codes", "1 API keys"}
        assert needed <= set(deployment.keys("secret")[1]["needed_by"])
        assert "1 API keys; 1 recovery codes" in deployment.run("remove", old, status=3)
        database.run("UPDATE recovery_codes SET used_at = now(); UPDATE api_keys SET expires_at = now()")
        deployment.run("remove", old)
        restorable = (
            "SELECT removed_secret(t) FROM one_time_tokens AS t WHERE restores ->> 'provider' = 'factor'"
        )
        for app, query in ((kept, "SELECT secret FROM factors"), (removed, restorable)):
            assert deployment.parts.sealer.open(bytes(database.value(query)), app.id) == app.secret

    def test_sign_in_with_a_provider_under_way_needs_the_key(self, deployment, rotated, database):
        sealed = deployment.parts.sealer.seal("{}", "0190a5b4-6d7e-7c3a-9f00-0123456789ab")
        database.run(
            "INSERT INTO oauth_flows (id, state_hash, provider, secrets, expires_at)"
            " VALUES ('0190a5b4-6d7e-7c3a-9f00-0123456789ab', '', 'acme', %(sealed)s, now() + interval '1 minute')",
            sealed=sealed,
        )
        assert "1 sign-ins with a provider" in deployment.run("remove", rotated(), status=3)

    def test_signing_key_is_needed_while_its_access_tokens_are_valid(self, deployment, person):
        session = open_session(deployment, person)
        deployment.run("rotate", "signing")
        deployment.move_time(A_DAY + 60)
        old = deployment.keys("signing")[1]["id"]
        assert "access tokens until " in deployment.run("remove", old, status=3)
        assert session.get("/user").status_code == 200
        deployment.move_time(2 * AN_HOUR)
        deployment.run("remove", old)
        assert session.get("/user").status_code == 401

    def test_key_without_a_time_of_its_replacement_is_taken_for_needed(self, deployment, person):
        open_session(deployment, person)
        path = deployment.directory / "secret_key"
        path.write_text(f"{OTHER_SECRET},{path.read_text()}")
        deployment.parts.key_ring.refresh()
        assert "1 sessions" in deployment.run("remove", deployment.keys("secret")[1]["id"], status=3)

    def test_id_of_no_key_or_of_several_is_refused(self, deployment):
        assert "matches no key" in deployment.run("remove", "nothing", status=1)
        assert "matches several keys" in deployment.run("remove", "", status=1)


@pytest.mark.usefixtures("no_openid_keys")
class TestOpenIdKeys:
    @pytest.fixture
    def old(self, deployment, database):
        """The id of the first key, which is made with the first client."""
        insert_client(database)
        return worker(deployment).make_first()[0].kid

    @pytest.fixture
    def rotated(self, deployment, old, database):
        """Return a function that rotates the key and makes the new key older, and returns the id of the new key."""

        def rotated(seconds):
            deployment.run("rotate", "openid")
            move = "UPDATE openid_keys SET active_from = active_from - make_interval(secs => %(seconds)s)"
            database.run(move, seconds=seconds)
            return deployment.keys("openid")[0]["id"]

        return rotated

    def test_new_key_is_published_and_signs_when_its_time_has_come(self, deployment, old, rotated):
        new = rotated(A_DAY - 60)
        assert deployment.states("openid") == ["waiting", "in use"]
        assert [key.kid for key in worker(deployment).all()] == [old, new]
        assert signing_keys.signing_key(worker(deployment).all()).kid == old
        assert f"latchkey keys remove {new}" in deployment.run("rotate", "openid", status=1)

    def test_old_key_is_needed_while_its_tokens_are_valid(self, deployment, old, rotated, database):
        new = rotated(A_DAY + 600)
        assert deployment.states("openid") == ["in use", "accepted"]
        assert signing_keys.signing_key(worker(deployment).all()).kid == new
        assert "latchkey keys rotate openid" in deployment.run("remove", new, status=1)
        assert "ID tokens until " in deployment.run("remove", old, status=3)
        database.run("UPDATE openid_keys SET active_from = active_from - interval '1 hour'")
        database.run("UPDATE oauth_clients SET token_lifetime = 7200")
        assert "ID tokens until " in deployment.run("remove", old, status=3)
        database.run("UPDATE openid_keys SET active_from = active_from - interval '1 hour'")
        deployment.run("remove", old)
        assert [key.kid for key in worker(deployment).all()] == [new]
        entries = database.all("SELECT action, details FROM audit_log WHERE action LIKE 'key_%%' ORDER BY at")
        details = {"kind": "openid", "key_id": new, "system_user": SYSTEM_USER}
        assert entries == [("key_rotated", details), ("key_removed", details | {"key_id": old})]

    def test_signing_key_is_needed_by_the_longest_tokens_of_clients(self, deployment, old, database):
        database.run("UPDATE oauth_clients SET token_lifetime = 7200")
        deployment.run("rotate", "signing")
        deployment.move_time(A_DAY + AN_HOUR + 600)
        id = deployment.keys("signing")[1]["id"]
        assert "access tokens until " in deployment.run("remove", id, status=3)
        deployment.move_time(AN_HOUR)
        deployment.run("remove", id)

    def test_leaked_key_is_replaced_in_half_a_minute(self, deployment, old, database):
        assert "within 20 seconds" in deployment.run("rotate", "openid", "--now")
        database.run("UPDATE openid_keys SET active_from = active_from - interval '31 seconds'")
        deployment.run("remove", old, "--force")
        assert deployment.states("openid") == ["in use"]

    def test_keys_are_resealed_when_the_secret_key_is_removed(self, deployment, old):
        deployment.run("rotate", "secret")
        deployment.move_time(A_DAY + 60)
        secret_id = deployment.keys("secret")[1]["id"]
        assert deployment.keys("secret")[1]["needed_by"] == ["1 OpenID keys"]
        deployment.run("remove", secret_id)
        assert [key.kid for key in worker(deployment).all()] == [old]


class TestAddition:
    def test_tokens_of_another_service_verify_and_its_key_never_signs(self, deployment, tmp_path):
        files.write(tmp_path / "other.json", signing_keys.new_jwk_set())
        deployment.run("add", "signing", str(tmp_path / "other.json"))
        (own, other) = json.loads((deployment.directory / "jwt_keys.json").read_text())["keys"]
        assert other["key_ops"] == ["verify"]
        assert deployment.states("signing") == ["in use", "accepted"]
        published = deployment.client.get("/.well-known/jwks.json").json["keys"]
        assert [key["kid"] for key in published] == [own["kid"], other["kid"]]
        deployment.run("remove", other["kid"])

    def test_key_that_others_can_read_is_refused(self, deployment, tmp_path):
        path = tmp_path / "other"
        for kind, text in (("secret", OTHER_SECRET), ("signing", signing_keys.new_jwk_set())):
            path.write_text(text)
            path.chmod(0o644)
            assert f"chmod 600 {path}" in deployment.run("add", kind, str(path), status=1)
            assert deployment.states(kind) == ["in use"]

    def test_secret_from_standard_input_is_accepted_and_not_used(self, deployment):
        deployment.run("add", "secret", "-", input=f"{OTHER_SECRET}\n")
        assert deployment.states("secret") == ["in use", "accepted"]
        assert "is accepted already" in deployment.run("add", "secret", "-", input=OTHER_SECRET, status=1)

    @pytest.mark.parametrize(
        ("kind", "text"), [("secret", "short"), ("signing", "{}"), ("signing", "nothing"), ("signing", "[1]")]
    )
    def test_unusable_key_is_refused_and_changes_nothing(self, deployment, kind, text):
        before = deployment.run("list")
        assert "Error: " in deployment.run("add", kind, "-", input=text, status=1)
        assert deployment.run("list") == before


class TestEnvironment:
    @pytest.fixture
    def app(self, make_app, database):
        return make_app(fresh=True, AUTH_SECRET_KEY=OTHER_SECRET, AUTH_JWT_KEYS=signing_keys.new_jwk_set())

    @pytest.mark.parametrize("kind", ["secret", "signing", "service-role"])
    def test_value_to_set_is_printed_and_fits_with_the_keys_before(
        self, app, kind, monkeypatch, environment, parts
    ):
        result = run_command(app, "keys", "rotate", kind, "--json")
        name, _, value = json.loads(result.output)["set"].partition("=")
        before = app.extensions["latchkey"].settings
        for variable, text in environment.items():
            monkeypatch.setenv(variable, text)
        monkeypatch.setenv(name, value.strip("'"))
        after = settings.load(os.devnull, missing_secrets="ignore")
        if kind == "signing":
            new, old = ([key.kid for key in signing_keys.all_keys(s.jwt_keys, None)] for s in (after, before))
        else:
            new, old = (list(getattr(s, name.removeprefix("AUTH_").lower())) for s in (after, before))
        assert (len(new), new[1:]) == (2, old)

    def test_value_without_the_removed_key_is_printed(self, make_app):
        app = make_app(
            fresh=True, AUTH_SECRET_KEY=f"{secret('new')}@{format_time(time.time() - 60)},{OTHER_SECRET}"
        )
        rows = [json.loads(line) for line in run_command(app, "keys", "list", "--json").output.splitlines()]
        old = [row["id"] for row in rows if row["kind"] == "secret" and row["state"] == "accepted"]
        result = run_command(app, "keys", "remove", *old, "--json")
        line = json.loads(result.output)["set"]
        assert line.startswith(f"AUTH_SECRET_KEY={secret('new')}@")
        assert OTHER_SECRET not in line

    def test_shared_secret_is_replaced_by_a_key_of_the_same_algorithm(self, make_app, monkeypatch):
        app = make_app(fresh=True, AUTH_JWT_SECRET=OTHER_SECRET)
        result = run_command(app, "keys", "rotate", "signing", "--json")
        name, _, value = json.loads(result.output)["set"].partition("=")
        (jwk,) = json.loads(value.strip("'"))["keys"]
        assert (name, jwk["kty"], jwk["alg"]) == ("AUTH_JWT_KEYS", "oct", "HS256")
        assert (
            "Unset it there, and restart all nodes"
            in run_command(app, "keys", "remove", "AUTH_JWT_SECRET").output
        )
