"""AUTH_SIGNUP_DOMAINS and AUTH_SIGNUP_BLOCKED_DOMAINS: who may sign up, on every path."""

import pytest

from tests.support import passkeys
from tests.support.answers import assert_error, assert_ok
from tests.support.authenticator import Authenticator
from tests.support.cases import cases
from tests.support.fake_provider import FakeProvider
from tests.support.links import ON_ITS_WAY, PHONE, WITH_CHALLENGE
from tests.support.oauth import assert_failed
from tests.support.users import PASSWORD, sign_up_anonymously

pytest_plugins = ["tests.support.oauth_fixtures"]
REFUSED = (422, "email_address_not_authorized")
ALLOWED = {"AUTH_SIGNUP_DOMAINS": "corp.example,Bücher.example"}
BLOCKED = {"AUTH_SIGNUP_BLOCKED_DOMAINS": "example.com,throwaway.example"}
OUTSIDE = "dave@example.com"


@pytest.fixture
def listing_client(make_app):
    return make_app(**ALLOWED).test_client()


@pytest.fixture(params=[ALLOWED, BLOCKED], ids=["allow list", "block list"])
def setting(request):
    return request.param


@pytest.fixture
def closed(make_app, setting):
    """A client of an application where no address at example.com may sign up."""
    return make_app(**setting).test_client()


def sign_up(client, email):
    return client.post("/signup", json={"email": email, "password": PASSWORD})


def set_person(provider: FakeProvider, email: str, *, verified: bool = True) -> None:
    provider.person = {"sub": f"{email} there", "email": email, "email_verified": verified}


class TestSignUp:
    @cases(("email", "is_allowed"), [
        ("Dave@CORP.example", True),
        ("dave@bücher.example", True),
        ("dave@xn--bcher-kva.example", True),
        ("dave@mail.corp.example", False),
        ("dave@evilcorp.example", False),
        ("corp.example@example.com", False),
        ('"x@corp.example"@example.com', None),
    ])  # fmt: skip
    def test_allowed_domain_is_exact(self, listing_client, email, is_allowed):
        response = sign_up(listing_client, email)
        assert response.status_code == {True: 201, False: 422, None: 400}[is_allowed], response.json

    def test_address_alone_decides_whether_it_is_taken_or_not(self, closed, alice, database, outbox):
        before = database.everything("users", "identities", "one_time_tokens", "outbox", "audit_log")
        answers = [sign_up(closed, email) for email in (alice.email, OUTSIDE)]
        for answer in answers:
            assert_error(answer, *REFUSED, "Signups with this address are not allowed")
        assert answers[0].json == answers[1].json
        assert database.everything("users", "identities", "one_time_tokens", "outbox", "audit_log") == before

    def test_links_sign_in_those_who_have_a_user_and_create_none(self, closed, alice, database, outbox):
        answers = []
        for email in (alice.email, OUTSIDE):
            for path in ("/otp", "/magiclink"):
                answers.append(closed.post(path, json={"email": email, "create_user": True}))
        for answer in answers:
            assert_ok(answer, ON_ITS_WAY)
        assert [message.to for message in outbox.sent()] == [alice.email] * 2
        assert database.count("users", f"email = '{OUTSIDE}'") == 0

    def test_administrators_and_invitations_pass(self, closed, service_role, database):
        for path, body in (
            ("/admin/users", {"email": "one@example.com"}),
            ("/admin/invite", {"email": "two@example.com"}),
            ("/admin/generate_link", {"email": "three@example.com", "type": "signup", "password": PASSWORD}),
        ):
            answer = closed.post(path, json=body, headers=service_role)
            assert answer.status_code in (200, 201), answer.json
        assert database.count("users") == 3


class TestChanges:
    def test_user_cannot_change_the_email_to_an_address_outside(self, closed, alice, database):
        session = alice.sign_in(client=closed)
        assert_error(session.put("/user", json={"email": OUTSIDE}), *REFUSED)
        assert session.put("/user", json={"email": alice.email, "data": {"x": 1}}).status_code == 200
        assert session.put("/user", json={"email": "alice@corp.example"}).status_code == 200
        assert session.put("/user", json={"phone": PHONE}).status_code == 200

    def test_anonymous_user_gets_no_address_outside(self, make_app, service_role, database, listing_client):
        """The anonymous user is older than the setting."""
        visitor = sign_up_anonymously(make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()).on(
            listing_client
        )
        for body in ({"phone": PHONE}, {"email": OUTSIDE}):
            assert_error(visitor.put("/user", json=body), *REFUSED)
        assert_error(passkeys.register_response(visitor, Authenticator()), *REFUSED)
        assert database.value("SELECT converted_at FROM users") is None
        assert database.count("factors") == 0
        assert visitor.put("/user", json={"email": "dave@corp.example"}).status_code == 200


class TestProviders:
    @pytest.fixture
    def service(self, make_service, setting):
        return make_service(**setting)

    def test_provider_creates_no_user_outside(self, service, google, database):
        set_person(google, OUTSIDE)
        before = database.everything("users", "identities", "sessions")
        for query in ({}, WITH_CHALLENGE):
            page = service.sign_in("google", **query)
            assert_failed(page, "email_address_not_authorized", has_challenge=bool(query))
        body = {"provider": "google", "id_token": google.id_token()}
        assert_error(service.client.post("/token?grant_type=id_token", json=body), *REFUSED)
        assert database.everything("users", "identities", "sessions") == before
        reasons = database.all("SELECT DISTINCT reason FROM audit_log WHERE reason IS NOT NULL")
        assert reasons == [("email_address_not_authorized",)]

    def test_provider_signs_in_a_user_outside_and_creates_one_inside(self, service, google, alice):
        set_person(google, alice.email)
        assert service.signed_in("google").claims["sub"] == alice.id
        set_person(google, "dave@corp.example")
        assert service.signed_in("google").claims["email"] == "dave@corp.example"

    def test_allow_list_needs_an_email_that_a_trusted_provider_verified(self, make_service, google, acme):
        service = make_service(**ALLOWED)
        set_person(google, "dave@corp.example", verified=False)
        assert_failed(service.sign_in("google"), "email_address_not_authorized")
        set_person(acme, "dave@corp.example")
        assert_failed(service.sign_in("acme"), "email_address_not_authorized")
