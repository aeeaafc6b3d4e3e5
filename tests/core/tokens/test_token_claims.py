"""AUTH_TOKEN_CLAIMS and AUTH_ID_CLAIMS: claims without code, which users cannot influence."""

import json

import pytest

from auth.core.tokens.claim_rules import ACCESS_TOKEN_RULES, ID_TOKEN_RULES, MAX_BYTES, MOST, read
from tests.support.answers import A_TIMESTAMP
from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.factors import raised, set_up
from tests.support.openid import bearer, claims_of, granted_code, make_client, tokens_of

pytest_plugins = ["tests.support.oauth_fixtures"]
CLAIMS = {"roles": "app_metadata.roles", "plan": "app_metadata.plan", "org": "app_metadata.org.id"}
EVERY = {
    "https://example.com/id": "id",
    "mail": "email",
    "mobile": "phone",
    "guest": "is_anonymous",
    "since": "created_at",
    "level": "session.aal",
    "methods": "session.amr",
    "provider": "session.provider",
}
ID_CLAIMS = {"department": "app_metadata.department", "name": "user_metadata.title", "mail": "email"}
METADATA = {"roles": ["editor"], "plan": "team", "org": {"id": 7, "secret": "x"}}


@pytest.fixture
def set_metadata(database):
    """Set the app_metadata of a user."""

    def set_metadata(user, metadata):
        statement = "UPDATE users SET app_metadata = %(metadata)s WHERE id = %(id)s"
        database.run(statement, id=user.id, metadata=json.dumps(metadata))

    return set_metadata


@pytest.fixture
def client_with(make_app):
    """Return a client of an application that adds claims to its tokens."""
    return lambda claims=CLAIMS, **others: make_app(
        AUTH_TOKEN_CLAIMS=json.dumps(claims), **others
    ).test_client()


def added_claims(session, names=CLAIMS):
    return {name: value for name, value in session.claims.items() if name in names}


class TestAccessTokens:
    def test_claims_follow_the_user_at_each_issue(self, client_with, alice, set_metadata):
        set_metadata(alice, METADATA)
        session = alice.sign_in(client=client_with())
        assert added_claims(session) == {"roles": ["editor"], "plan": "team", "org": 7}
        set_metadata(alice, {"plan": None, "org": "no object"})
        assert added_claims(session.refreshed()) == {}
        set_metadata(alice, {"roles": [], "plan": False})
        lacking, app = session.refreshed(), set_up(session.refreshed())[0]
        assert added_claims(lacking) == {"roles": [], "plan": False}
        assert added_claims(raised(alice.sign_in(client=session.client), app)) == added_claims(lacking)

    def test_each_path_is_that_of_the_user_and_the_session(self, client_with, alice):
        session = alice.sign_in(client=client_with(EVERY))
        assert added_claims(session, EVERY) == {
            "https://example.com/id": alice.id,
            "mail": alice.email,
            "guest": False,
            "since": A_TIMESTAMP,
            "level": "aal1",
            "methods": session.claims["amr"],
        }

    def test_provider_of_the_session_is_that_of_its_sign_in(self, make_service, google, alice):
        service = make_service(AUTH_TOKEN_CLAIMS='{"idp": "session.provider"}')
        google.person = {"sub": "alice-at-google", "email": alice.email, "email_verified": True}
        by_google, by_password = service.signed_in("google"), alice.sign_in(client=service.client)
        for session, expected in ((by_google, {"idp": "google"}), (by_password, {})):
            assert added_claims(session, ["idp"]) == added_claims(session.refreshed(), ["idp"]) == expected
        _app, complete = set_up(by_google)
        assert (complete.claims["aal"], complete.claims["idp"]) == ("aal2", "google")

    def test_users_cannot_write_the_claims(self, client_with, alice, set_metadata):
        set_metadata(alice, {})
        session = alice.sign_in(client=client_with())
        forged = {**METADATA, "app_metadata": METADATA, "app_metadata.roles": ["admin"]}
        assert session.put("/user", json={"data": forged}).status_code == 200
        assert added_claims(session.refreshed()) == {}

    def test_too_large_claims_are_left_out_and_explained(self, client_with, alice, set_metadata):
        client = client_with(CLAIMS)
        set_metadata(alice, {"roles": ["editor"], "plan": "é" * (MAX_BYTES // 2)})
        session = alice.sign_in(client=client)
        assert (added_claims(session), session.get("/user").status_code) == ({}, 200)
        problem = "left out of access tokens, as they are larger than 4,096 bytes (AUTH_TOKEN_CLAIMS)"
        explained = run_command(client.application, "explain", alice.email)
        assert f"claims        {problem}" in explained.output.splitlines()
        report = json.loads(run_command(client.application, "explain", alice.email, "--json").output)
        assert (report["claims"], report["claims_problem"]) == ({}, problem)


class TestIdTokens:
    @pytest.fixture
    def claims_for(self, make_app, database, alice):
        """Return the claims of userinfo and the ID token."""
        application = make_client(database)

        def claims_for(scopes, paths=ID_CLAIMS):
            client = make_app(AUTH_ID_CLAIMS=json.dumps(paths)).test_client()
            tokens = tokens_of(client, database, application, alice, f"openid {scopes}")
            answer = client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).json
            claims = claims_of(tokens["id_token"])
            assert {name: claims.get(name) for name in answer} == answer
            assert not set(paths) & set(claims) - set(answer)
            assert not set(paths) & set(claims_of(tokens["access_token"]))
            supported = client.get("/.well-known/openid-configuration").json["claims_supported"]
            assert (set(paths) <= set(supported), len(supported)) == (True, len(set(supported)))
            return {name: value for name, value in answer.items() if name in paths}

        return claims_for

    def test_scopes_decide_which_claims_an_id_token_has(self, claims_for, alice, set_metadata, database):
        set_metadata(alice, {"department": "sales"})
        database.run('UPDATE users SET user_metadata = \'{"title": "Al", "name": "Alice"}\'')
        assert claims_for("") == {}
        assert claims_for("profile") == {"department": "sales", "name": "Al"}
        assert claims_for("profile email") == {"department": "sales", "name": "Al", "mail": alice.email}
        database.run("UPDATE users SET email_proved = false")
        assert claims_for("profile email") == {"department": "sales", "name": "Al"}

    @cases("title", [{"evil": True}, ["x"], 1, "", "x" * 2001, None])
    def test_name_that_is_no_text_is_left_out_alone(self, claims_for, alice, set_metadata, database, title):
        metadata = json.dumps({"title": title, "name": "Not this either"})
        database.run("UPDATE users SET user_metadata = %(metadata)s", metadata=metadata)
        set_metadata(alice, {"department": "x" * (MAX_BYTES - 20)})
        assert list(claims_for("profile")) == ["department"]

    def test_username_that_administrators_choose_never_falls_back_to_the_users(self, claims_for, database):
        database.run('UPDATE users SET user_metadata = \'{"username": "root"}\'')
        assert claims_for("profile", {"preferred_username": "app_metadata.username"}) == {}


UNKNOWN = (
    "factors identities password_hash role aud app_metadata app_metadata. app_metadata..x * session"
    " session.session_id session.ip id.x Id"
)


class TestRules:
    @cases("rules", [ACCESS_TOKEN_RULES, ID_TOKEN_RULES])
    @cases(
        ("path", "problem"),
        [
            *((f"user_metadata{rest}", "users write themselves") for rest in ("", ".roles", ".name.x")),
            *((path, "has an unknown path") for path in (*UNKNOWN.split(), "", 7, None, ["id"], {"x": "id"})),
        ],
    )
    def test_path_elsewhere_is_refused(self, rules, path, problem):
        with pytest.raises(ValueError, match=problem):
            read(json.dumps({"claim": path}), rules)

    def test_claims_of_tokens_are_reserved(self, client, database, alice):
        session = alice.sign_in()
        _, raised = set_up(session)
        lacking = alice.sign_in()
        names = {*session.claims, *lacking.claims, "client_id", "nonce", "scope", "nbf", "api_key_id"}
        assert names <= ACCESS_TOKEN_RULES.reserved
        grafana = make_client(database)
        code = granted_code(database, grafana, raised, "openid email phone groups roles")
        tokens = grafana.redeem(client, code).json
        names |= {*claims_of(tokens["access_token"]), *claims_of(tokens["id_token"])}
        assert names <= ID_TOKEN_RULES.reserved
        for rules in (ACCESS_TOKEN_RULES, ID_TOKEN_RULES):
            for name in (*rules.reserved, "SUB", "App_Metadata"):
                with pytest.raises(ValueError, match=f"{name} is reserved"):
                    read(json.dumps({name: "app_metadata.x"}), rules)

    @cases("text", ["[]", "{", "null", "[" * 100_000, json.dumps(dict.fromkeys(range(MOST + 1), "id"))])
    def test_anything_but_a_small_object_is_refused(self, text):
        with pytest.raises(ValueError, match="must"):
            read(text, ACCESS_TOKEN_RULES)
