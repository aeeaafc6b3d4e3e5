"""A customer's provider signs in addresses of its own domains, whose users it made: whom, and whom not."""

import uuid

import pytest

from auth.delivery import janitor
from tests.support import factors, passkeys
from tests.support.answers import NO_ID, assert_error
from tests.support.api_keys import make_key, use
from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.links import hand_in
from tests.support.oauth import FAILED, SITE, STALE, assert_failed, fragment, profile_metadata
from tests.support.pages import Visitor
from tests.support.users import PASSWORD, Person, register

ALICE = "alice@acme.example"
CONFLICT = ("user_sso_conflict", "access_denied")
USERS = "SELECT count(*) FROM users"


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


def new_person() -> tuple[str, str]:
    """Return the subject and the address of a person whom no other case knows."""
    return str(uuid.uuid4()), f"{uuid.uuid4()}@acme.example"


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("door", ["DELETE", "PUT"])
def test_user_of_a_provider_alone_removes_a_passkey_while_the_provider_signs_in(
    sso, acme, make_app, database, door, is_on
):
    session = sso.signed_in(acme.identifier)
    _, passkey = passkeys.register(session)
    if not is_on:
        # A session by mail, in which the passkey was used.
        database.run(
            "UPDATE sessions SET provider_term = NULL; UPDATE identity_providers SET enabled = false"
        )
    session_without_email = session.on(make_app(AUTH_SSO="true", AUTH_EMAIL_ENABLED="false").test_client())
    response = (
        session_without_email.delete(f"/passkeys/{passkey['id']}", json={})
        if door == "DELETE"
        else session_without_email.put("/user", json={"remove": [passkey["id"]]})
    )
    if is_on:
        assert response.status_code == 200, response.text
    else:
        assert_error(response, 422, "single_identity_not_deletable")
    assert database.count("factors") == (0 if is_on else 1)


class TestWhom:
    def test_first_sign_in_makes_a_user_whose_identity_names_the_providers_id(self, sso, acme, database):
        acme.be("1", "Alice@Acme.example", name="Alice")
        session = sso.signed_in(acme.identifier)
        user = session.get("/user").json
        assert (user["email"], user["user_metadata"]) == (ALICE, profile_metadata(name="Alice"))
        assert [each["provider"] for each in user["identities"]] == [f"sso:{acme.id}", "email"]
        data = {"sub": "1", "email": ALICE, "email_verified": True, "provider_name": "Acme-Idp"}
        assert user["identities"][0]["identity_data"] == data | profile_metadata(name="Alice")
        assert session.claims["aal"] == "aal1"
        assert sso.signed_in(acme.identifier).get("/user").json["id"] == user["id"]
        assert database.value(USERS) == 1

    def test_requests_have_a_nonce_pkce_and_the_providers_own_redirect_uri(self, sso, acme):
        sso.change(
            acme, skip_nonce_check=True, pkce_enabled=False, authorization_params={"prompt": "select_account"}
        )
        sso.signed_in(acme.identifier)
        parameters = acme.provider.parameters("/authorize")
        assert {"nonce", "code_challenge", "state"} <= parameters.keys()
        assert (
            parameters["redirect_uri"]
            == f"{SITE}/providers/{acme.id}/callback"
            == acme.object["redirect_uri"]
        )
        assert (parameters["prompt"], parameters["scope"]) == ("select_account", "openid email profile")

    @cases("verified", ["absent", True, "true"])
    def test_email_is_taken_from_a_provider_that_does_not_say_whether_it_is_verified(
        self, sso, acme, verified
    ):
        acme.be(*new_person())
        if verified != "absent":
            acme.provider.person["email_verified"] = verified
        assert sso.signed_in(acme.identifier).claims["email"] == acme.provider.person["email"]

    def test_mapped_attributes_and_allowed_claims_are_kept(self, sso, acme):
        sso.change(acme, attribute_mapping={"department": "dept"}, custom_claims_allowlist=["groups"])
        acme.be("1", ALICE, dept="Sales", groups=["staff"], secret="x")
        user = sso.signed_in(acme.identifier).get("/user").json
        assert user["user_metadata"] == {"department": "Sales", "custom_claims": {"groups": ["staff"]}}

    def test_longest_claims_are_left_out_beside_the_longest_attributes(self, sso, acme):
        names = [f"{number}{'a' * 62}" for number in range(10)]
        sso.change(
            acme, attribute_mapping=dict(zip(names, names, strict=True)), custom_claims_allowlist=["groups"]
        )
        texts = {"name": "😀" * 200, "picture": "x" * 1000, "preferred_username": "😀" * 100}
        acme.be("1", ALICE, **texts, **dict.fromkeys(names, "y" * 200), groups="z" * 2000)
        metadata = sso.signed_in(acme.identifier).get("/user").json["user_metadata"]
        assert metadata["picture"] == "x" * 1000
        assert set(names) < metadata.keys()
        assert "custom_claims" not in metadata

    @cases(
        "claim",
        ["a\0b", {"a\0b": 1}, "\ud800", float("nan"), float("inf"), nested(33), nested(300), "x" * 2048],
    )
    def test_allowed_claims_that_cannot_be_stored_are_left_out(self, sso, acme, claim):
        sso.change(acme, custom_claims_allowlist=["groups"])
        acme.be(*new_person(), name="Alice", groups=claim)
        assert sso.signed_in(acme.identifier).get("/user").json["user_metadata"] == profile_metadata(
            name="Alice"
        )

    def test_address_that_somebody_only_typed_is_proved_and_nothing_else_stays(
        self, sso, acme, database, client
    ):
        stranger = {"email": ALICE, "password": PASSWORD}
        assert client.post("/signup", json=stranger).status_code == 201
        session = sso.signed_in(acme.identifier)
        assert database.one("SELECT email_proved, password_hash FROM users") == (True, None)
        assert_error(client.post("/token?grant_type=password", json=stranger), 401, "invalid_credentials")
        assert session.get("/user").json["email"] == ALICE

    def test_users_own_factor_is_asked_after_the_sign_in(self, sso, acme):
        session = sso.signed_in(acme.identifier)
        factors.set_up(session)
        second = sso.session(sso.sign_in(acme.identifier))
        assert (second.claims["aal"], second.claims["aud"]) == ("aal1", "second_step")
        assert_error(second.put("/user", json={"data": {"x": 1}}), 403, "insufficient_aal")


class TestWhomNot:
    """Attacks of a customer, or of a person with an account at a customer's provider."""

    @cases(
        ("email", "claims"),
        [
            ("alice@globex.example", {}),
            ("alice@sub.acme.example", {}),
            ("alice@acme.example.evil.example", {}),
            ("alice@notacme.example", {}),
            (None, {}),
            (None, {"preferred_username": ALICE, "upn": ALICE, "unique_name": ALICE}),
            (None, {"emails": [ALICE]}),
            (ALICE, {"email_verified": False}),
            (ALICE, {"email_verified": "false"}),
            (ALICE, {"email_verified": 1}),
            ([ALICE], {}),
        ],
    )
    def test_address_that_the_provider_may_not_sign_in_makes_no_user(
        self, sso, acme, database, email, claims
    ):
        acme.be("1", email, **claims)
        assert_failed(sso.sign_in(acme.identifier), *FAILED)
        assert (database.value(USERS), database.count("sessions")) == (0, 0)

    def test_subject_of_one_provider_opens_no_user_of_another(self, sso, acme, globex, database):
        alice = sso.signed_in(acme.identifier).get("/user").json["id"]
        globex.be("1", "bob@globex.example")
        bob = sso.signed_in(globex.identifier).get("/user").json["id"]
        globex.be("1", ALICE)
        assert_failed(sso.sign_in(globex.identifier), *FAILED)
        assert alice != bob
        assert database.value(USERS) == 2

    def test_user_who_has_proved_the_address_is_not_opened(self, sso, acme, service_role, database):
        person = register(sso.client, service_role, ALICE)
        database.run("UPDATE users SET email_proved = true")
        assert_failed(sso.sign_in(acme.identifier), *CONFLICT)
        assert database.value("SELECT count(*) FROM identities WHERE provider LIKE 'sso:%%'") == 0
        assert person.try_to_sign_in().status_code == 200

    def test_domain_that_was_given_to_another_provider_is_lost_at_once(self, sso, acme, globex):
        sso.signed_in(acme.identifier)
        assert sso.change(acme, domains=["acme2.example"]).status_code == 200
        assert sso.change(globex, domains=["acme.example"]).status_code == 200
        assert_failed(sso.sign_in(acme.identifier), *FAILED)
        globex.be("1", ALICE)
        assert_failed(sso.sign_in(globex.identifier), *CONFLICT)

    def test_user_cannot_link_a_customers_provider(self, sso, acme, alice):
        session = alice.sign_in(client=sso.client)
        query = {"provider": acme.identifier}
        response = session.get("/user/identities/authorize", query_string=query)
        assert_error(response, 404, "manual_linking_disabled")
        body = {"provider": acme.identifier, "id_token": acme.provider.id_token(), "link_identity": True}
        assert_error(session.post("/token?grant_type=id_token", json=body), 404, "manual_linking_disabled")


class TestEnds:
    @pytest.mark.parametrize("action", ["disable", "delete"])
    def test_everything_of_its_users_ends_and_nothing_of_others(
        self, sso, acme, globex, alice, database, action
    ):
        session, other = sso.signed_in(acme.identifier), alice.sign_in(client=sso.client)
        key = session.post("/user/api_keys", json={"name": "x"})
        assert key.status_code == 201
        if action == "disable":
            assert sso.change(acme, enabled=False).json["enabled"] is False
        else:
            sso.delete(acme)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
        response = sso.client.post("/token?grant_type=api_key", json={"api_key": key.json["key"]})
        assert_error(response, 401, "invalid_credentials")
        assert other.get("/user").status_code == 200
        end_reason = "SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL"
        assert database.value(end_reason) == "provider_disabled"
        assert database.count("identities", "provider LIKE 'sso:%%'") == (action == "disable")
        assert database.count("api_keys") == 0

    def test_janitor_ends_what_an_interruption_has_left(self, sso, acme, alice, database):
        session, other = sso.signed_in(acme.identifier), alice.sign_in(client=sso.client)
        database.run("UPDATE identity_providers SET enabled = false")
        janitor.keep_house(sso.parts.settings, sso.parts.db, sso.parts.sealer)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert other.get("/user").status_code == 200

    def test_janitor_that_goes_on_leaves_what_its_users_made_since(self, sso, acme, database, outbox):
        old_session = sso.signed_in(acme.identifier)
        user = old_session.get("/user").json
        old_key = make_key(old_session)[1]
        database.run(
            "UPDATE identity_providers SET enabled = false WHERE id = %(id)s",
            id=acme.id,
        )
        new_session = Person(sso.client, user["id"], ALICE).open_session()
        key = make_key(new_session)[1]
        assert sso.client.post("/magiclink", json={"email": ALICE}).status_code == 200
        assert new_session.put("/user", json={"email": "new@example.com"}).status_code == 200
        janitor.keep_house(sso.parts.settings, sso.parts.db, sso.parts.sealer)
        assert_error(old_session.get("/user"), 401, "session_not_found")
        assert use(sso.client, old_key).status_code == 401
        assert new_session.get("/user").json["new_email"] == "new@example.com"
        assert use(sso.client, key).status_code == 200
        assert hand_in(sso.client, "magiclink", outbox.last(ALICE).token).status_code == 200

    def test_end_is_not_repeated_for_what_its_users_made_since(self, sso, acme, globex, database):
        old_session = sso.signed_in(acme.identifier)
        user = old_session.get("/user").json
        sso.change(acme, enabled=False)
        assert_error(old_session.get("/user"), 401, "session_not_found")
        new_session = Person(sso.client, user["id"], ALICE).open_session()
        key = make_key(new_session)[1]
        for repeat in (
            lambda: janitor.keep_house(sso.parts.settings, sso.parts.db, sso.parts.sealer),
            lambda: sso.change(acme, name="Acme Inc."),
            lambda: sso.change(globex, enabled=False),
            lambda: janitor.keep_house(sso.parts.settings, sso.parts.db, sso.parts.sealer),
            lambda: sso.delete(acme),
        ):
            repeat()
            assert new_session.get("/user").status_code == 200
            assert use(sso.client, key).status_code == 200
        assert database.value("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL") == 1

    def test_disabled_provider_signs_in_nobody_until_it_is_enabled(self, sso, acme):
        user_id = sso.signed_in(acme.identifier).get("/user").json["id"]
        browser = sso.browser()
        url = sso.return_url(browser, acme.identifier)
        sso.change(acme, enabled=False)
        assert_failed(browser.visit(url), *STALE)
        token = acme.provider.id_token()
        body = {"provider": acme.identifier, "id_token": token}
        assert_error(sso.client.post("/token?grant_type=id_token", json=body), 404, "sso_provider_disabled")
        assert_error(sso.client.get(f"/authorize?provider={acme.identifier}"), 404, "sso_provider_disabled")
        assert_error(sso.client.post("/sso", json={"domain": "acme.example"}), 404, "sso_provider_disabled")
        sso.change(acme, enabled=True)
        response = sso.client.post("/token?grant_type=id_token", json=body)
        assert (response.status_code, response.json["user"]["id"]) == (200, user_id)

    def test_provider_that_is_made_again_under_its_name_opens_no_user_of_the_old_one(
        self, sso, acme, database
    ):
        old_id = sso.signed_in(acme.identifier).get("/user").json["id"]
        sso.delete(acme)
        sso.add(acme)
        assert_failed(sso.sign_in(acme.identifier), *CONFLICT)
        acme.be("1", "new@acme.example")
        assert sso.signed_in(acme.identifier).get("/user").json["id"] != old_id
        assert database.value(USERS) == 2


class TestAdoption:
    @pytest.fixture
    def person(self, sso, service_role, database):
        person = register(sso.client, service_role, ALICE)
        database.run("UPDATE users SET email_proved = true")
        return person

    def test_administrator_moves_a_user_who_is_told_and_keeps_the_password(
        self, sso, acme, person, database, outbox
    ):
        result = run_command(sso.app, "providers", "adopt", "acme-idp", ALICE)
        assert (result.exit_code, result.output) == (0, f"{ALICE} can sign in with custom:acme-idp.\n")
        assert [each.kind for each in outbox.sent(ALICE)] == ["identity_linked"]
        assert sso.signed_in(acme.identifier).get("/user").json["id"] == person.id
        assert person.try_to_sign_in().status_code == 200
        assert database.count("identity_provider_adoptions") == 0
        # Once: another subject with this address is another person.
        acme.be("2", ALICE)
        assert_failed(sso.sign_in(acme.identifier), *CONFLICT)

    def test_explain_says_whether_the_provider_signs_the_user_in(self, sso, acme, person):
        output = run_command(sso.app, "explain", ALICE).output
        assert "leads to the provider Acme-Idp, which does not sign in this user" in output
        assert f"Run: latchkey providers adopt custom:acme-idp {ALICE}" in output
        acme.be("1", "bob@acme.example")
        sso.signed_in(acme.identifier)
        sso.change(acme, enabled=False)
        output = run_command(sso.app, "explain", "bob@acme.example").output
        assert "the provider Acme-Idp is disabled" in output

    def test_move_to_one_provider_opens_the_user_to_no_other(self, sso, acme, globex, person):
        run_command(sso.app, "providers", "adopt", "acme-idp", ALICE)
        sso.change(acme, domains=["acme2.example"])
        sso.change(globex, domains=["acme.example"])
        globex.be("1", ALICE)
        assert_failed(sso.sign_in(globex.identifier), *CONFLICT)

    def test_user_keeps_the_identity_of_a_move_at_every_door(self, sso, acme, person, database):
        run_command(sso.app, "providers", "adopt", "acme-idp", ALICE)
        session = sso.signed_in(acme.identifier)
        recent = session.get("/user/recent_changes").json["recent_changes"]
        (id,) = [each["id"] for each in recent if each["type"] == "identity"]
        refusal = (404, "manual_linking_disabled", "Users can't link or unlink a customer's provider")
        assert_error(session.delete(f"/user/identities/{id}"), *refusal)
        for body in ({"remove": [id]}, {"remove": [id.upper()], "data": {"x": 1}}):
            assert_error(session.put("/user", json=body), *refusal)
        visitor = Visitor(sso.app).with_session_of(person)
        for kind in ("identity", "change"):
            visitor.visit("/account")
            visitor.send("/account/remove", kind=kind, id=id)
            assert visitor.page.status in (403, 404)
        user = session.get("/user").json
        assert (len(user["identities"]), user["user_metadata"].get("x")) == (2, None)

    def test_move_ends_with_what_takes_the_account_back(self, sso, acme, person, database):
        run_command(sso.app, "providers", "adopt", "acme-idp", ALICE)
        database.run("SELECT end_held(id, NULL, 'recovered', 'all', 'aal2', true, now()) FROM users")
        assert_failed(sso.sign_in(acme.identifier), *CONFLICT)

    def test_neither_an_administrator_nor_an_address_of_another_domain_is_moved(
        self, sso, person, alice, database
    ):
        other = run_command(sso.app, "providers", "adopt", "acme-idp", alice.email)
        assert (other.exit_code, other.stderr) == (3, "Error: This provider doesn't sign in this address.\n")
        database.run("UPDATE users SET role = 'admin'")
        result = run_command(sso.app, "providers", "adopt", "acme-idp", ALICE)
        assert result.exit_code == 3
        assert "Administrators can't sign in with a customer's provider" in result.stderr
        assert database.count("identity_provider_adoptions") == 0


class TestEntrance:
    def test_url_of_post_sso_is_a_page_that_leads_to_the_provider(self, sso, acme):
        for body in ({"domain": "ACME.example"}, {"provider_id": acme.id}):
            full_body = body | {"redirect_to": None, "skip_http_redirect": True, "code_challenge": None}
            response = sso.client.post("/sso", json=full_body)
            assert (response.status_code, set(response.json)) == (200, {"url"})
            assert response.json["url"].startswith(f"{SITE}/authorize?provider=custom")
            assert fragment(sso.browser().visit(response.json["url"]))["token_type"] == "bearer"
            redirect = sso.client.post("/sso", json=body)
            assert (redirect.status_code, redirect.location) == (303, response.json["url"])

    @cases(
        ("body", "status", "error_code", "msg"),
        [
            ({}, 400, "validation_failed", "A provider_id or domain needs to be provided"),
            (
                {"domain": "acme.example", "provider_id": NO_ID},
                *(400, "validation_failed", "Only one of provider_id or domain supported"),
            ),
            (
                {"domain": "sub.acme.example"},
                *(404, "sso_provider_not_found", "No SSO provider assigned for this domain"),
            ),
            ({"provider_id": NO_ID}, 404, "sso_provider_not_found", "No such SSO provider"),
        ],
    )
    def test_wrong_request_gets_the_error_of_gotrue(self, sso, body, status, error_code, msg):
        assert_error(sso.client.post("/sso", json=body), status, error_code, msg)

    @cases("has_user", [True, False])
    def test_sign_in_page_leads_to_the_provider_and_reads_no_password(
        self, sso, acme, service_role, hashes, database, has_user
    ):
        if has_user:
            database.run("DELETE FROM users")
            register(sso.client, service_role, ALICE)
        acme.be("7", "carol@acme.example")
        browser, hashes_before = sso.browser(), hashes.count
        browser.visit(f"{SITE}/sign-in")
        page = browser.press("sign-in", email=ALICE, password=PASSWORD)
        assert acme.provider.paths().count("/authorize") == 1
        assert (hashes.count, PASSWORD in str(acme.provider.requests)) == (hashes_before, False)
        assert page.url.startswith(f"{SITE}/account")
        assert "carol@acme.example" in page.text
        acme.provider.requests.clear()
