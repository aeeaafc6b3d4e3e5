"""Providers of organizations, by HTTP: what their owners connect, and what they may not."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.admin_keys import make_admin_key
from tests.support.answers import A_TIMESTAMP, ANYTHING, assert_error
from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.commands import run_command
from tests.support.links import CHALLENGE, VERIFIER
from tests.support.oauth import ALLOW_LIST
from tests.support.own_providers import A_REDIRECT_URI, ALICE, DOMAIN, PATH, SignIn, page_of_press
from tests.support.pages import Visitor, words
from tests.support.server import at_once
from tests.support.users import PASSWORD

# More than the threads of a worker that look names up.
_FLOOD = 12
REFUSED = re.compile("error_code=(sso_provider_disabled|oauth_provider_not_supported)")
KEPT_OFF = "enabled: a provider that is off stays off"


def test_provider_is_off_when_connected_and_is_changed_and_deleted(
    sign_in, provider, owner, acme, customers, database, outbox
):
    path = f"{acme}/providers/{provider}"
    answer = owner.get(path).json
    assert answer | {"redirect_uri": ""} == {
        **{"id": provider, "identifier": f"custom:{provider}", "provider_type": "oidc", "name": "Acme-Idp"},
        **{"issuer": customers.acme.provider.url, "client_id": customers.acme.provider.client_id},
        **{"organization_id": acme.rpartition("/")[2], "member_role": "member", "domains": [DOMAIN]},
        **{name: [] for name in ("acceptable_client_ids", "scopes", "custom_claims_allowlist")},
        **{name: {} for name in ("authorization_params", "attribute_mapping")},
        **{"pkce_enabled": True, "skip_nonce_check": False, "email_optional": False, "enabled": False},
        **{"created_at": A_TIMESTAMP, "updated_at": A_TIMESTAMP, "redirect_uri": ""},
    }
    listed = owner.get(f"{acme}/providers").json
    assert listed == {"providers": [answer], "next_redirect_uri": A_REDIRECT_URI}
    assert sign_in.change(provider, name="Acme Inc.", member_role=None).json["name"] == "Acme Inc."
    assert "member_role" not in owner.get(path).json
    assert owner.delete(path, json={}).status_code == 204
    assert_error(owner.get(path), 404, "custom_provider_not_found")
    rows = database.all("SELECT action FROM audit_log WHERE action LIKE 'provider%%' ORDER BY at")
    assert [action for (action,) in rows] == ["provider_added", "provider_changed", "provider_deleted"]


def test_owner_reads_in_the_log_who_changed_the_own_sign_in(
    sign_in, provider, owner, acme, client, service_role, database
):
    assert sign_in.change(provider, name="Acme Inc.").status_code == 200
    database.run("UPDATE identity_providers SET is_on = true")
    path = f"/admin/custom-providers/{provider}"
    assert client.put(path, json={"enabled": False}, headers=service_role).status_code == 200
    assert client.delete(path, headers=service_role).status_code == 204
    entries = owner.get(f"{acme}/audit").json["data"]
    actions = [(entry["action"], entry["actor"]) for entry in entries if "provider" in entry["details"]]
    assert actions == [
        ("provider_deleted", "service_role"),
        ("provider_disabled", "service_role"),
        ("provider_changed", "user"),
        ("provider_added", "user"),
    ]
    assert all(entry["details"]["organization"]["slug"] == "acme" for entry in entries)


class TestNotices:
    """What owners are mailed about a provider that others change."""

    OFF, CHANGED = "was turned off. Nobody can sign in with it.", "has a new or changed identity provider"

    @pytest.fixture
    def new_mails(self, provider, acme, join, alice, bob, database, mailbox):
        """Return the mails that Alice and Bob get from now on. Both own Acme, whose provider is on."""
        join(bob, acme, "owner")
        database.run("UPDATE identity_providers SET is_on = true")
        before = {user: len(mailbox.messages_to(user.email)) for user in (alice, bob)}
        return lambda: [
            [letter.text for letter in mailbox.messages_to(user.email)[number:]]
            for user, number in before.items()
        ]

    def test_other_owners_are_told_that_a_provider_is_off(self, new_mails, sign_in, provider):
        assert sign_in.change(provider, enabled=False).status_code == 200
        mails_of_alice, (mail_of_bob,) = new_mails()
        assert (mails_of_alice, self.OFF in mail_of_bob) == ([], True)

    @pytest.mark.parametrize("is_of_acme", [True, False])
    def test_owners_are_told_what_the_operator_turns_off(
        self, new_mails, provider, acme, client, service_role, is_of_acme
    ):
        path = f"{acme}/providers/{provider}" if is_of_acme else f"/admin/custom-providers/{provider}"
        assert client.put(path, json={"enabled": False}, headers=service_role).status_code == 200
        assert [self.OFF in letter for (letter,) in new_mails()] == [True, True]

    def test_owners_are_told_what_the_operator_turns_on(
        self, new_mails, provider, client, service_role, database
    ):
        database.run("UPDATE identity_providers SET is_on = false, is_blocked = true")
        path = f"/admin/custom-providers/{provider}"
        assert client.put(path, json={"enabled": True}, headers=service_role).status_code == 200
        assert [self.CHANGED in letter for (letter,) in new_mails()] == [True, True]

    def test_owners_are_told_that_the_operator_deletes_what_is_on(
        self, new_mails, provider, client, service_role
    ):
        assert client.delete(f"/admin/custom-providers/{provider}", headers=service_role).status_code == 204
        assert [self.OFF in letter for (letter,) in new_mails()] == [True, True]

    @pytest.mark.parametrize(
        "changes",
        [
            {"client_id": "another", "client_secret": "another"},
            {"client_secret": "another"},
            {"acceptable_client_ids": ["another"], "client_secret": "another"},
            {"domains": [DOMAIN, "other.example"]},
            {"domains": []},
        ],
    )
    def test_other_owners_are_told_what_decides_who_signs_in(self, new_mails, sign_in, provider, changes):
        assert sign_in.prove("other.example").status_code == 200
        assert sign_in.change(provider, **changes).status_code == 200
        mails_of_alice, (mail_of_bob,) = new_mails()
        assert (mails_of_alice, self.CHANGED in mail_of_bob) == ([], True)

    def test_other_owners_are_told_that_its_keys_come_from_another_document(
        self, new_mails, sign_in, provider, customers
    ):
        changes = {"discovery_url": customers.acme.other_document(), "client_secret": "another"}
        assert sign_in.change(provider, **changes).status_code == 200
        mails_of_alice, (mail_of_bob,) = new_mails()
        assert (mails_of_alice, self.CHANGED in mail_of_bob) == ([], True)

    def test_one_mail_tells_what_one_request_changes(self, new_mails, sign_in, provider):
        assert sign_in.change(provider, client_secret="another", enabled=False).status_code == 200
        mails_of_alice, (mail_of_bob,) = new_mails()
        assert (mails_of_alice, self.OFF in mail_of_bob, "times" in mail_of_bob) == ([], True, False)

    def test_nobody_is_told_of_a_name_or_a_provider_that_is_off(self, new_mails, sign_in, provider, database):
        assert sign_in.change(provider, name="Renamed", domains=[DOMAIN]).status_code == 200
        database.run("UPDATE identity_providers SET is_on = false")
        assert sign_in.change(provider, client_secret="another").status_code == 200
        assert new_mails() == [[], []]


def test_refused_acts_are_in_the_log_with_their_reasons(
    sign_in, provider, owner, acme, mallory, client, database
):
    stranger = mallory.open_session(client)
    assert_error(stranger.put(acme, json={"name": "Evil"}), 404, "organization_not_found")
    assert_error(sign_in.change(provider, enabled=True), 403, "provider_not_tried")
    response = owner.put(acme, json={"requires": {"own_provider": True}})
    assert_error(response, 403, "organization_sign_in_needed", providers=[])
    rows = database.all("SELECT reason, user_id FROM audit_log WHERE action = 'change_refused' ORDER BY at")
    assert [(row.reason, row.user_id) for row in rows] == [
        ("organization_not_found", mallory.id),
        ("provider_not_tried", owner.user["id"]),
        ("organization_sign_in_needed", owner.user["id"]),
    ]


def test_log_has_no_change_of_a_provider_that_is_only_turned_off(on, sign_in, provider, database):
    database.run("TRUNCATE audit_log")
    # The body has a proof besides.
    assert sign_in.change(provider, enabled=False).status_code == 200
    entries = database.all("SELECT action FROM audit_log WHERE action LIKE 'provider%%'")
    assert [entry.action for entry in entries] == ["provider_disabled"]


def test_change_needs_a_fresh_proof(sign_in, provider, owner, acme, database):
    database.run("UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL")
    path = f"{acme}/providers/{provider}"
    for response in (
        owner.post(
            f"{acme}/providers",
            json={"name": "x", "client_id": "x", "client_secret": "x", "issuer": "https://x.example"},
        ),
        owner.put(path, json={"name": "Evil"}),
        owner.delete(path, json={}),
    ):
        assert_error(response, 400, "reauthentication_needed", details=ANYTHING)
    assert database.value("SELECT name FROM identity_providers") == "Acme-Idp"


def test_domain_that_is_not_proved_or_is_lost_is_refused(sign_in, customers, owner, acme, database):
    sign_in.name(DOMAIN)
    assert_error(sign_in.connect(customers.acme), 422, "domain_not_proved")
    assert database.count("identity_providers") == 0
    sign_in.prove(DOMAIN)
    id = sign_in.connect(customers.acme).json["id"]
    assert_error(sign_in.change(id, domains=[DOMAIN, "globex.example"]), 422, "domain_not_proved")
    assert owner.delete(f"{acme}/domains/{DOMAIN}").status_code == 204
    assert owner.get(f"{acme}/providers/{id}").json["domains"] == []
    assert database.value("SELECT count(*) FROM audit_log WHERE action = 'domain_lost'") == 1


def test_service_asks_no_issuer_for_those_who_may_not_connect_it(
    sign_in, provider, customers, owner, acme, join, bob, client, database
):
    """Otherwise, anybody who founds an organization could have the service connect anywhere."""
    issuer, requests = customers.globex.provider.url, customers.globex.provider.requests
    elsewhere = {"domains": ["globex.example"]}
    document = f"{customers.acme.provider.url}/other/openid-configuration"
    join(bob, acme, "owner")
    session_of_bob, requests_before = bob.open_session(client), len(customers.acme.provider.requests)
    assert_error(sign_in.connect(customers.globex, **elsewhere), 422, "domain_not_proved")
    assert_error(
        sign_in.change(provider, issuer=issuer, client_secret="x", **elsewhere), 422, "domain_not_proved"
    )
    assert_error(
        sign_in.change(provider, discovery_url=document, client_secret="x", **elsewhere),
        422,
        "domain_not_proved",
    )
    # The session has no proof of the last 15 minutes.
    database.run("UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL")
    body = {"issuer": issuer, "client_secret": "x"}
    response = session_of_bob.put(f"{acme}/providers/{provider}", json=body)
    assert_error(response, 400, "reauthentication_needed", details=ANYTHING)
    assert (requests, len(customers.acme.provider.requests)) == ([], requests_before)


def test_owner_still_manages_a_provider_to_which_the_operator_has_given_a_domain(
    on, sign_in, provider, alice, acme, client, service_role
):
    body = {"domains": ["acme.test", DOMAIN]}

    def give():
        path = f"/admin/custom-providers/{provider}"
        assert client.put(path, json=body, headers=service_role).status_code == 200

    give()
    assert sign_in.change(provider, name="Acme Inc.").json["domains"] == body["domains"]
    response = sign_in.change(provider, domains=[*body["domains"], "globex.example"])
    assert_error(response, 422, "domain_not_proved")
    assert sign_in.change(provider, domains=[DOMAIN]).json["domains"] == [DOMAIN]
    assert_error(sign_in.change(provider, **body), 422, "domain_not_proved")
    give()
    assert sign_in.change(provider, enabled=False).json["enabled"] is False
    session = alice.open_session(client)
    assert session.delete(f"{acme}/providers/{provider}", json={}).status_code == 204


@pytest.mark.parametrize("role", ["owner", "admin", "Member"])
def test_provider_adds_nobody_who_manages(sign_in, provider, role):
    response = sign_in.change(provider, member_role=role)
    assert_error(response, 400, "validation_failed", details=ANYTHING)
    assert response.json["details"].startswith("member_role: ")


def test_owner_does_not_turn_on_what_nobody_has_tested(sign_in, provider, database):
    assert_error(sign_in.change(provider, enabled=True), 403, "provider_not_tried")
    assert database.value("SELECT is_on FROM identity_providers") is False


def test_owner_who_has_signed_in_with_a_provider_deletes_it(
    on, provider, sign_in, service, customers, database
):
    path = f"{sign_in.path}/providers/{provider}"
    of_provider = service.signed_in(f"custom:{provider}")
    assert of_provider.delete(path, json={}).status_code == 204
    assert (database.count("identity_providers"), database.count("identities", "provider LIKE 'sso:%%'")) == (
        0,
        0,
    )
    assert of_provider.refresh().status_code == 400
    assert sign_in.owner.refresh().status_code == 200
    assert database.count("audit_log", "action = 'provider_deleted' AND actor_id IS NOT NULL") == 1


def test_owner_deletes_a_provider_on_its_page(on, press, alice, provider, database):
    press(alice, "delete", on)
    assert database.count("identity_providers") == 0


class TestDisabledByTheOperator:
    """The provider stays off until the operator enables it, whatever its owners do."""

    @pytest.fixture(params=["while on", "while off", "of its organization"])
    def admin_path(self, on, provider, acme, client, service_role, database, request) -> str:
        """The path at which the operator administers it."""
        if request.param == "while off":
            database.run("UPDATE identity_providers SET is_on = false")
        is_of_acme = request.param == "of its organization"
        path = f"{acme}/providers/{provider}" if is_of_acme else f"/admin/custom-providers/{provider}"
        answer = client.put(path, json={"enabled": False}, headers=service_role).json
        assert (answer["enabled"], answer["is_blocked"]) == (False, True)
        assert database.count("audit_log", "action = 'provider_disabled'") == 1
        return path

    @pytest.fixture
    def session(self, admin_path, alice, client, provider, database):
        """A new session of Alice, as if the provider had opened it."""
        session = alice.open_session(client)
        database.run(
            "UPDATE sessions SET amr = jsonb_build_array(jsonb_build_object('method', 'oauth', 'timestamp', 1,"
            " 'provider', 'sso:' || %(id)s::text))",
            id=provider,
        )
        return session.refreshed()

    def test_owner_changes_nothing(self, sign_in, provider, acme, database, session):
        before = database.everything("identity_providers", "identity_provider_domains")
        for response in (
            sign_in.change(provider, session, enabled=True),
            sign_in.change(provider, session, name="Evil"),
            session.delete(f"{acme}/providers/{provider}", json={"current_password": PASSWORD}),
        ):
            assert_error(response, 403, "sso_provider_disabled")
        assert session.get(f"{acme}/providers/{provider}").json["is_blocked"] is True
        assert database.everything("identity_providers", "identity_provider_domains") == before

    def test_owner_takes_no_domain_from_a_disabled_provider_for_another(
        self, sign_in, acme, database, session, customers, browse, alice
    ):
        tables = ("organization_domains", "identity_provider_domains", "identity_providers")
        before = database.everything(*tables)
        response = session.delete(f"{acme}/domains/{DOMAIN}", json={"current_password": PASSWORD})
        assert_error(response, 403, "sso_provider_disabled")
        visitor, path = browse(alice), f"{PATH}/sign-in/domains/{DOMAIN}/remove"
        visitor.visit(path)
        visitor.press(path[1:])
        assert "turned this identity provider off" in words(visitor.page)
        sign_in.owner = session
        assert_error(sign_in.connect(customers.acme), 400, "conflict", "Another provider has this domain")
        assert database.everything(*tables) == before
        # The provider of another subsidiary is none of the operator's concern.
        assert sign_in.prove("subsidiary.example").status_code == 200
        other = customers.globex
        other.domain = "subsidiary.example"
        assert sign_in.connect(other).status_code == 201

    def test_page_names_the_operator_and_nobody_tests_the_provider(
        self, admin_path, press, browse, alice, provider, database
    ):
        visitor = browse(alice)
        page = visitor.visit(f"{PATH}/sign-in")
        assert "Turned off by the operator of this service" in words(page)
        assert f"providers/{provider}" not in page.text
        for action in ("test", "on", "delete"):
            result = press(alice, action, visitor).page
            assert (result.status, "turned this identity provider off" in words(result)) == (403, True), (
                action
            )
        assert database.count("oauth_flows") == 0
        assert database.value("SELECT is_blocked AND NOT is_on FROM identity_providers")

    def test_disabled_provider_ends_what_its_users_have(self, admin_path, database):
        is_by_provider = (
            "EXISTS (SELECT FROM jsonb_array_elements(amr) AS each WHERE each ->> 'provider' LIKE 'sso:%%')"
        )
        assert database.count("sessions", f"ended_at IS NULL AND {is_by_provider}") == 0

    def test_key_of_a_program_enables_a_disabled_provider_no_more_than_an_owner(
        self, admin_path, service, provider, database
    ):
        key = make_admin_key(service.parts, "providers").headers
        before = database.everything("identity_providers", "identity_provider_domains")
        path = f"/admin/custom-providers/{provider}"
        for body in ({"enabled": True}, {"enabled": True, "name": "Evil"}):
            response = service.client.put(path, json=body, headers=key)
            assert_error(response, 403, "insufficient_permissions", details=KEPT_OFF)
        assert database.everything("identity_providers", "identity_provider_domains") == before
        assert service.client.put(path, json={"name": "Acme"}, headers=key).json["is_blocked"] is True

    def test_operator_enables_a_disabled_provider(
        self, admin_path, sign_in, client, service_role, provider, session
    ):
        for name in ("Acme Inc.", "Acme"):
            answer = client.put(admin_path, json={"name": name}, headers=service_role).json
            assert (answer["enabled"], answer["is_blocked"]) == (False, True)
        answer = client.put(admin_path, json={"enabled": True}, headers=service_role).json
        assert (answer["enabled"], "is_blocked" in answer) == (True, False)
        answer = sign_in.change(provider, session, enabled=False).json
        assert (answer["enabled"], "is_blocked" in answer) == (False, False)


@pytest.mark.parametrize("is_tested", [True, False])
def test_key_of_a_program_enables_no_provider_that_its_owners_have_off(
    provider, service, customers, database, is_tested
):
    key = make_admin_key(service.parts, "providers").headers
    if is_tested:
        database.run("UPDATE identity_providers SET tried_at = now()")
    path = f"/admin/custom-providers/{provider}"
    refused = service.client.put(path, json={"enabled": True}, headers=key)
    assert_error(refused, 403, "insufficient_permissions", details=KEPT_OFF)
    customers.acme.be("1", "eve@example.com")
    assert "is turned off" in words(service.sign_in(f"custom:{provider}"))
    # One that is on may be named so.
    database.run("UPDATE identity_providers SET is_on = true")
    response = service.client.put(path, json={"enabled": True, "name": "Acme"}, headers=key)
    assert (response.status_code, response.json["enabled"]) == (200, True)


def test_owner_who_returns_from_a_test_is_refused_once_the_operator_has_disabled_the_provider(
    browse, alice, provider, service, database
):
    visitor = browse(alice)
    visitor.visit(f"{PATH}/sign-in/providers/{provider}/test")
    page = visitor.submit(stop=service.is_callback)
    # Disabling deletes the flow, but not one that is running.
    database.run("UPDATE identity_providers SET is_blocked = true")
    assert "error_code=sso_provider_disabled" in visitor.visit(page.url).url
    assert database.count("identities", "provider LIKE 'sso:%%'") == 0
    assert database.value("SELECT tried_at FROM identity_providers") is None


def test_provider_that_is_off_signs_in_nobody(sign_in, provider, service, customers, database):
    customers.acme.be("1", "eve@example.com")
    assert "is turned off" in words(service.sign_in(f"custom:{provider}"))
    body = {"provider": f"custom:{provider}", "id_token": customers.acme.provider.id_token()}
    assert_error(service.client.post("/token?grant_type=id_token", json=body), 404, "sso_provider_disabled")
    for body in ({"domain": DOMAIN}, {"provider_id": provider}):
        assert_error(service.client.post("/sso", json=body), 404, "sso_provider_disabled")
    assert database.count("users") == 1


class TestOthers:
    """Owners touch no provider of the operator, nor of another organization."""

    @pytest.fixture
    def rival(self, bob, client, names) -> SignIn:
        session = bob.open_session(client)
        organization = session.post("/organizations", json={"name": "Globex"}).json
        return SignIn(session, f"/organizations/{organization['id']}", names)

    @pytest.fixture
    def foreign(self, customers, client, service_role) -> str:
        body = customers.globex.body(domains=["globex.example"])
        return client.post("/admin/custom-providers", json=body, headers=service_role).json["id"]

    def test_owner_cannot_touch_providers_of_others(self, rival, provider, foreign, database):
        before = database.everything("identity_providers", "identity_provider_domains")
        for id in (provider, foreign, "custom:globex-idp"):
            path = f"{rival.path}/providers/{id}"
            for response in (
                rival.owner.get(path),
                rival.change(id, name="Evil"),
                rival.owner.delete(path, json={}),
            ):
                assert_error(response, 404, "custom_provider_not_found")
        assert rival.owner.get(f"{rival.path}/providers").json["providers"] == []
        assert database.everything("identity_providers", "identity_provider_domains") == before

    def test_members_and_strangers_see_no_provider(self, acme, provider, join, bob, mallory, client):
        admin, stranger = join(bob, acme, "admin"), mallory.open_session(client)
        for session, status, code in (
            (admin, 403, "insufficient_permissions"),
            (stranger, 404, "organization_not_found"),
        ):
            for method in ("get", "put", "delete"):
                response = getattr(session, method)(f"{acme}/providers/{provider}", json={})
                assert_error(response, status, code)

    def test_administrative_api_shows_and_disables_providers_of_organizations(
        self, provider, client, service_role, database
    ):
        path = f"/admin/custom-providers/{provider}"
        assert client.get(path, headers=service_role).json["enabled"] is False
        database.run("UPDATE identity_providers SET is_on = true")
        assert client.get(path, headers=service_role).json["enabled"] is True
        assert client.put(path, json={"enabled": False}, headers=service_role).json["enabled"] is False


def test_owner_names_no_issuer_in_a_private_network_whatever_the_setting(
    sign_in, service, customers, names, database
):
    assert service.parts.settings.webhook_private_networks
    sign_in.prove(DOMAIN)
    details = "issuer: must be an OpenID provider that this service can reach"
    # Only a host that is this machine for everybody may have its address.
    names.addresses["login.acme.example"] = "127.0.0.1"
    for issuer in (
        customers.acme.provider.url.replace("127.0.0.1", "login.acme.example"),
        "http://169.254.169.254",
        "https://[fd00::1]",
        "https://10.0.0.1",
    ):
        assert_error(
            sign_in.connect(customers.acme, issuer=issuer), 400, "validation_failed", details=details
        )
    assert (customers.acme.provider.requests, database.count("identity_providers")) == ([], 0)


def test_owner_gets_one_message_for_every_failed_discovery(sign_in, customers):
    sign_in.prove(DOMAIN)
    details = "issuer: must be an OpenID provider that this service can reach"
    provider = customers.acme.provider
    for metadata in ({"issuer": customers.globex.provider.url}, {"token_endpoint": None}, {"jwks_uri": None}):
        provider.metadata = metadata
        assert_error(sign_in.connect(customers.acme), 400, "validation_failed", details=details)
    for issuer in ("https://nowhere.invalid", f"{provider.url}/nothing", "http://127.0.0.1:9"):
        assert_error(
            sign_in.connect(customers.acme, issuer=issuer), 400, "validation_failed", details=details
        )


def test_silent_names_of_owners_keep_neither_other_organizations_nor_the_operators_customers_waiting(
    on, provider, service, customers, mallory, database, names, client, service_role, monkeypatch
):
    """Organizations name many issuers that no name server answers for."""
    # A name of theirs leads to this machine, as those of the internet do elsewhere.
    monkeypatch.setattr(
        "auth.core.providers.customers.allowed_addresses_of", lambda *_: lambda _address: True
    )
    provider_of_acme, host = customers.acme.provider, "login.acme.example"
    names.addresses[host], names.silent = "127.0.0.1", {"silent.example"}
    issuer = provider_of_acme.url.replace("127.0.0.1", host)
    assert issuer != provider_of_acme.url
    database.run("UPDATE identity_providers SET issuer = %(issuer)s", issuer=issuer)
    provider_of_acme.metadata, provider_of_acme.claims = {"issuer": issuer}, {"iss": issuer}
    session = mallory.open_session(client)
    organization_ids = [
        session.post("/organizations", json={"name": f"Rival {number}"}).json["id"] for number in range(5)
    ]
    body = customers.globex.body(issuer="https://silent.example", domains=[]) | {"current_password": PASSWORD}
    body = {name: value for name, value in body.items() if name not in ("provider_type", "identifier")}
    finished = []

    def send(number):
        if number < _FLOOD:
            path = f"/organizations/{organization_ids[number % len(organization_ids)]}/providers"
            status = session.on(service.app.test_client()).post(path, json=body).status_code
            finished.append(number)
            return status
        for _ in range(_FLOOD):
            assert names.ignored.acquire(timeout=60)
        customers.acme.be("7", "eve@example.com")
        assert "access_token" in service.sign_in(f"custom:{provider}").url
        domain_body = customers.globex.body(domains=["globex.example"])
        response = client.post("/admin/custom-providers", json=domain_body, headers=service_role)
        assert response.status_code == 201
        still_waiting = _FLOOD - len(finished)
        names.silent = set()  # the resolver asks again, and learns that the name does not exist
        return still_waiting

    assert at_once(_FLOOD + 1, send) == [400] * _FLOOD + [_FLOOD]


def test_provider_signs_in_nobody_while_organizations_are_off_and_a_change_keeps_it_on(
    provider, make_app, customers, service_role, database
):
    database.run("UPDATE identity_providers SET is_on = true")
    client = make_app(AUTH_SSO="true").test_client()
    body = {"provider": f"custom:{provider}", "id_token": customers.acme.provider.id_token()}
    assert_error(client.post("/token?grant_type=id_token", json=body), 404, "sso_provider_disabled")
    assert_error(client.post("/sso", json={"domain": DOMAIN}), 404, "sso_provider_disabled")
    # A change keeps it on, for when the setting is on again.
    path = f"/admin/custom-providers/{provider}"
    assert client.put(path, json={"name": "Acme Inc."}, headers=service_role).json["enabled"] is True
    assert client.put(path, json={"enabled": False}, headers=service_role).status_code == 200
    assert database.count("outbox", "kind = 'organization_sign_in'") == 0


class TestRestart:
    """The operator turns organizations or customers' providers off while users are at a provider."""

    OFF = (
        {"AUTH_SSO": "true", "AUTH_ORGANIZATIONS": "off"},
        {"AUTH_SSO": "false", "AUTH_ORGANIZATIONS": "users"},
    )

    @pytest.fixture(params=OFF, ids=["organizations", "sso"])
    def restarted(self, request, make_app):
        return make_app(AUTH_CONSOLE="true", **ALLOW_LIST, **request.param)

    @pytest.fixture
    def go_on(self, restarted):
        """Let a browser come back to the service with the other settings."""

        def go_on(browser, url):
            later = Visitor(restarted)
            later.cookies = browser.cookies
            return later.visit(url, stop=lambda target: target != url)

        return go_on

    @pytest.mark.parametrize("press", ["test", "move"])
    def test_press_from_before_signs_nobody_in(
        self, provider, browse, alice, service, database, go_on, press
    ):
        if press == "move":
            database.run("UPDATE identity_providers SET is_on = true")
        visitor = browse(alice)
        visitor.visit(f"/{page_of_press(press, provider)}")
        page = visitor.submit(stop=service.is_callback)
        before = database.everything("sessions", "identities", "identity_providers", "memberships")
        assert REFUSED.search(go_on(visitor, page.url).url)
        assert database.everything("sessions", "identities", "identity_providers", "memberships") == before

    @pytest.mark.parametrize("query", [{}, {"code_challenge": CHALLENGE}], ids=["page", "code"])
    def test_sign_in_from_before_signs_nobody_in(self, provider, service, customers, database, go_on, query):
        database.run("UPDATE identity_providers SET is_on = true")
        customers.acme.be("7", "eve@example.com")
        browser = service.browser()
        url = service.return_url(browser, f"custom:{provider}", **query)
        assert REFUSED.search(go_on(browser, url).url)
        assert (database.count("users"), database.count("authorization_codes")) == (1, 0)

    def test_id_token_signs_nobody_in(self, provider, restarted, customers, database):
        database.run("UPDATE identity_providers SET is_on = true")
        body = {"provider": f"custom:{provider}", "id_token": customers.acme.provider.id_token()}
        response = restarted.test_client().post("/token?grant_type=id_token", json=body)
        assert response.status_code in (400, 404)
        assert response.json["error_code"] in ("sso_provider_disabled", "provider_disabled")
        assert database.count("users") == 1

    def test_code_from_before_stays_good(self, provider, service, customers, database, restarted):
        """A setting refuses new sign-ins only."""
        database.run("UPDATE identity_providers SET is_on = true")
        customers.acme.be("7", "eve@example.com")
        browser = service.browser()
        url = service.return_url(browser, f"custom:{provider}", code_challenge=CHALLENGE)
        code = parse_qs(urlsplit(browser.visit(url).url).query)["code"][0]
        body = {"auth_code": code, "code_verifier": VERIFIER}
        response = restarted.test_client().post("/token?grant_type=pkce", json=body)
        assert (response.status_code, response.json["user"]["email"]) == (200, "eve@example.com")


class TestConsole:
    @pytest.fixture
    def app(self, service):
        return service.app

    def test_operator_disables_a_provider_that_its_owners_have_turned_off(
        self, provider, armed, act_at, alice, database
    ):
        path = "/console/providers"
        assert "Provider disabled" in words(act_at(path, f"{provider}/disable"))
        assert database.value("SELECT is_blocked FROM identity_providers")
        page = armed.visit(f"{path}/{provider}")
        assert ("/disable" in page.text, "/enable" in page.text) == (False, True)
        assert "Provider enabled" in words(act_at(path, f"{provider}/enable"))
        assert database.value("SELECT is_on AND NOT is_blocked FROM identity_providers")
        notices = database.all(
            "SELECT recipient, variables ->> 'change' AS change FROM outbox WHERE kind = 'organization_sign_in'"
        )
        assert [(row.recipient, row.change) for row in notices] == [(alice.email, "off"), (alice.email, "on")]


@pytest.mark.parametrize("change", ["acceptable_client_ids", "client_id"])
def test_owner_signs_in_nobody_with_an_id_token_of_a_client_of_his_own(
    on, press, join, bob, acme, sign_in, provider, customers, service, database, change
):
    """The issuer may register clients of everybody, and Bob may have signed in at a website of the owner."""
    join(bob, acme)
    customers.acme.be("9", bob.email)
    press(bob, "move")
    value = "website" if change == "client_id" else ["website"]
    assert sign_in.change(provider, **{change: value}, client_secret="another").status_code == 200
    before = database.count("sessions")
    body = {"provider": f"custom:{provider}", "id_token": customers.acme.provider.id_token(aud="website")}
    response = service.client.post("/token?grant_type=id_token", json=body)
    assert_error(response, 400, "validation_failed", details=ANYTHING)
    assert database.count("sessions") == before


def test_explain_knows_no_sign_in_of_an_organization_while_organizations_are_off(
    on, join, bob, acme, provider, make_app
):
    join(bob, acme)
    app = make_app(AUTH_SSO="true")
    output = run_command(app, "explain", ALICE).output
    assert "the provider Acme-Idp (Acme) is off (AUTH_ORGANIZATIONS)" in output
    # Bob has not moved to it: his account says nothing about it.
    assert provider not in run_command(app, "explain", bob.email).output
