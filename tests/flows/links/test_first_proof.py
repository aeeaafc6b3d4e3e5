"""The first proof of an address removes everything on the account that it does not prove.

Mallory signs up with Dave's address and waits. Nothing that she set before Dave proves the address may give
her access afterwards. And a sign-up never changes a user that it did not create.
"""

import re
from typing import Any

import pytest

from sql import load_statements, schema
from tests.source.test_structure import SOURCES
from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.factors import has_no_mail_proof, prove_mail_elsewhere, set_up
from tests.support.links import EXPIRED, OTHER_PHONE, PHONE, fragment, hand_in, press, type_in
from tests.support.oauth import Service, external
from tests.support.users import DAVE, MALLORYS_PASSWORD, PASSWORD, session_of, sign_in

pytest_plugins = ["tests.support.oauth_fixtures"]
# Settings under which a sign-up is signed in before any proof.
LAX = {"AUTH_EMAIL_CONFIRM_REQUIRED": "false", "AUTH_PHONE_CONFIRM_REQUIRED": "false"}
AUTOCONFIRM = {"AUTH_AUTOCONFIRM": "true"}


@pytest.fixture
def lax(make_app):
    """A client of a service that signs in unconfirmed sign-ups."""
    return make_app(**LAX).test_client()


def sign_up(lax, **address):
    """Sign up as Mallory, and return the session."""
    body = address | {"password": MALLORYS_PASSWORD}
    assert lax.post("/signup", json=body).status_code == 201
    return session_of(lax, lax.post("/token?grant_type=password", json=body))


def by_magiclink(client, outbox, service_role):
    client.post("/magiclink", json={"email": DAVE})
    return hand_in(client, "magiclink", outbox.last(DAVE, "magiclink").token)


def by_code(client, outbox, service_role):
    client.post("/otp", json={"email": DAVE})
    return type_in(client, "email", DAVE, outbox.last(DAVE, "magiclink").code)


def by_recovery(client, outbox, service_role):
    client.post("/recover", json={"email": DAVE})
    return hand_in(client, "recovery", outbox.last(DAVE, "recovery").token)


def by_generated_link(client, outbox, service_role):
    body = {"type": "magiclink", "email": DAVE}
    link = client.post("/admin/generate_link", json=body, headers=service_role).json
    return hand_in(client, "magiclink", link["hashed_token"])


def add_identity(database, provider):
    database.run(
        "INSERT INTO identities (user_id, provider, subject, identity_data)"
        f" SELECT id, '{provider}', '1', '{{\"sub\": \"1\"}}' FROM users"
    )


def test_password_of_the_sign_up_is_removed(lax, outbox, service_role, database):
    mallory = sign_up(lax, email=DAVE)
    set_up(mallory)
    database.run("UPDATE known_networks SET network = '192.0.2.66'")
    prove_mail_elsewhere(database)
    dave = session_of(lax, by_magiclink(lax, outbox, service_role))
    assert_error(sign_in(lax, DAVE, MALLORYS_PASSWORD), 401, "invalid_credentials")
    assert_error(mallory.get("/user"), 401, "session_not_found")
    assert database.count("sessions", "ended_at IS NULL") == 1
    assert database.count("factors") == 0
    assert database.count("known_networks", "network = '192.0.2.66' AND passed_at IS NOT NULL") == 0
    assert has_no_mail_proof(database)
    # A second proof removes nothing.
    assert dave.put("/user", json={"password": PASSWORD}).status_code == 200
    second_session = session_of(lax, by_recovery(lax, outbox, service_role))
    assert sign_in(lax, DAVE, PASSWORD).status_code == 200
    assert (dave.get("/user").status_code, second_session.get("/user").status_code) == (200, 200)


def by_the_sign_ups_own_link(client, outbox, service_role):
    client.post("/resend", json={"type": "signup", "email": DAVE})
    return hand_in(client, "signup", outbox.last(DAVE, "signup").token)


def by_a_provider(client, outbox, service_role):
    return Service(client.application).signed_in("google").get("/user")


def by_an_administrator(client, outbox, service_role):
    return confirm(client, service_role, email_confirm=True)


def by_an_administrators_date(client, outbox, service_role):
    return confirm(client, service_role, email_confirmed_at="2026-01-31T12:00:00Z")


def confirm(client, service_role, **body):
    (created,) = client.get(f"/admin/users?email={DAVE}", headers=service_role).json["data"]
    return client.put(f"/admin/users/{created['id']}", json=body, headers=service_role)


@pytest.mark.parametrize(
    "prove",
    [
        by_the_sign_ups_own_link,
        by_magiclink,
        by_code,
        by_recovery,
        by_generated_link,
        by_a_provider,
        by_an_administrator,
        by_an_administrators_date,
    ],
)
def test_each_way_of_proof_leaves_the_same_user(make_service, google, outbox, service_role, database, prove):
    client = make_service(**LAX).client
    google.person = {"sub": "dave-at-google", "email": DAVE, "email_verified": True}
    mallory = sign_up(client, email=DAVE)
    mallory.put("/user", json={"phone": PHONE})
    assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
    id = mallory.user["id"]
    add_identity(database, "github")
    change = {"email": "mallory@evil.example", "phone": OTHER_PHONE}
    assert mallory.put("/user", json=change).status_code == 200

    assert prove(client, outbox, service_role).status_code == 200
    proof = [external("google", "dave-at-google", DAVE, True)] if prove is by_a_provider else []
    identities = [identity("email", DAVE, last_sign_in_at=A_TIMESTAMP), *proof]
    expected = user(
        DAVE, id=id, confirmation_sent_at=A_TIMESTAMP, last_sign_in_at=A_TIMESTAMP, identities=identities
    )
    expected["app_metadata"] = {"provider": "email", "providers": [each["provider"] for each in identities]}
    assert_ok(client.get(f"/admin/users/{id}", headers=service_role), expected)
    row = database.one("SELECT email_proved, phone_proved, password_hash IS NOT NULL FROM users")
    assert row == (True, False, prove is by_the_sign_ups_own_link)
    assert database.count("one_time_tokens", "spent_at IS NULL") == 0
    assert_error(mallory.get("/user"), 401, "session_not_found")


def by_sms(client, outbox):
    client.post("/otp", json={"phone": PHONE})
    return session_of(client, type_in(client, "sms", PHONE, outbox.last(PHONE).code))


class TestPhone:
    def test_phone_proved_by_a_sign_in_code_removes_password_sessions_and_an_added_email(self, lax, outbox):
        """Otherwise a link to Mallory's mailbox would open an account that Dave uses."""
        mallory = sign_up(lax, phone=PHONE)
        mallory.put("/user", json={"email": "mallory@evil.example"})
        assert hand_in(lax, "email_change", outbox.last("mallory@evil.example").token).status_code == 200
        dave = by_sms(lax, outbox)
        user_object = dave.get("/user").json
        assert (user_object["email"], user_object["phone_confirmed_at"]) == (None, A_TIMESTAMP)
        assert [each["provider"] for each in user_object["identities"]] == ["phone"]
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(sign_in(lax, "mallory@evil.example", MALLORYS_PASSWORD), 401, "invalid_credentials")
        lax.post("/magiclink", json={"email": "mallory@evil.example"})
        response = hand_in(lax, "magiclink", outbox.last("mallory@evil.example", "magiclink").token)
        assert response.json["user"]["id"] != dave.user["id"]

    def test_first_proof_voids_undo_links_to_a_removed_phone(self, lax, outbox):
        mallory = sign_up(lax, email=DAVE)
        for phone in (PHONE, OTHER_PHONE):
            mallory.put("/user", json={"phone": phone})
            assert type_in(lax, "phone_change", phone, outbox.last(phone).code).status_code == 200
        undo_token = outbox.last(PHONE, "phone_changed").token
        dave = session_of(lax, by_magiclink(lax, outbox, None))
        assert fragment(press(lax, "undo", undo_token)) == EXPIRED
        assert dave.get("/user").json["phone"] is None

    def test_first_proof_of_one_address_removes_the_other_unproved_one(self, client, service_role, outbox):
        created = client.post("/admin/users", json={"email": DAVE, "phone": PHONE}, headers=service_role).json
        user_object = by_sms(client, outbox).get("/user").json
        assert (user_object["id"], user_object["email"], user_object["phone"]) == (created["id"], None, PHONE)
        assert [entry["provider"] for entry in user_object["identities"]] == ["phone"]


# Requests that make a user with Dave's address without a sign-up.
MAKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "confirmed": ("/admin/users", {"password": PASSWORD, "email_confirm": True}),
    "unconfirmed": ("/admin/users", {"password": PASSWORD}),
    "magiclink": ("/magiclink", {}),
    "invite": ("/admin/invite", {}),
    "generated sign-up": ("/admin/generate_link", {"type": "signup", "password": PASSWORD}),
}


@pytest.mark.parametrize(
    ("maker", "settings"),
    [
        *((maker, {}) for maker in MAKERS),
        *((maker, LAX) for maker in ("unconfirmed", "magiclink")),
        *((maker, AUTOCONFIRM) for maker in ("unconfirmed", "magiclink")),
    ],
)
def test_sign_up_changes_no_other_user(make_app, client, service_role, database, maker, settings):
    """A sign-up changes no user that it did not create, proved or not."""
    path, body = MAKERS[maker]
    assert client.post(path, json={"email": DAVE} | body, headers=service_role).status_code == 200
    tables = ("users", "identities", "sessions", "one_time_tokens", "known_networks")
    before = database.everything(*tables)
    other = make_app(**settings).test_client() if settings else client
    response = other.post("/signup", json={"email": DAVE, "password": MALLORYS_PASSWORD, "data": {"x": 1}})
    assert response.status_code == (409 if settings else 201)
    assert database.everything(*tables) == before
    assert_error(sign_in(other, DAVE, MALLORYS_PASSWORD), 401, "invalid_credentials")


# Other statements than prove_address that mark an address as proved, and why.
PROVED_ELSEWHERE = {
    "create_user": "an administrator creates the user with it",
    "create_user_by_identity": "a trusted provider creates the user with it",
    "convert_by_identity": "a trusted provider gives an anonymous user the first one",
    "import_users": "the operator trusts the exported addresses",
}
_PROVES = re.compile(
    r"\b(email|phone)_proved = (?!false|(email|phone|u\.email|u\.phone)_proved AND)|\bINSERT INTO users\b[^(]*\([^)]*_proved"
)
_SETS_PASSWORD = re.compile(
    r"\bUPDATE (?!one_time_tokens)[^;]*?\bSET\b(?:(?!\bWHERE\b|\bFROM\b)[^;])*?(?<!\.)\bpassword_hash ="
)


def test_only_one_function_proves_an_address():
    statements = {name for name, each in load_statements().items() if _PROVES.search(each.direct)}
    assert statements == {"set_address", *PROVED_ELSEWHERE}
    proving = {source for source, path in SOURCES.items() if "is_proved=True" in path.read_text()}
    assert proving == {"auth/flows/links/proving.py"}
    functions = {path.name for path in schema.FUNCTIONS.glob("*.sql") if _PROVES.search(path.read_text())}
    assert functions == set()


def test_only_one_function_sets_a_password():
    """A rehash at a sign-in stores the same password."""
    statements = {name for name, each in load_statements().items() if _SETS_PASSWORD.search(each.direct)}
    assert statements == {"set_password", "record_sign_in", "dispute_sign_up"}
    functions = {
        path.name for path in schema.FUNCTIONS.glob("*.sql") if _SETS_PASSWORD.search(path.read_text())
    }
    assert functions == set()
