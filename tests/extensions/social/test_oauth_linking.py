"""Which user an identity signs in: the user linked to it, or, with a trusted provider, the user of its
address.
"""

from typing import Any

import pytest

from tests.support.answers import assert_error, identity
from tests.support.cases import cases
from tests.support.fake_provider import FakeProvider
from tests.support.links import WITH_CHALLENGE, hand_in
from tests.support.oauth import FAILED, assert_failed, external, fragment, new_user, profile_metadata
from tests.support.server import at_once
from tests.support.users import ALICE, DAVE, PASSWORD

pytest_plugins = ["tests.support.oauth_fixtures"]
NOT_VERIFIED = [False, "false", "False", None, 0, 1, "0", "1", "yes", "", [], {}, [True], {"x": True}]
TABLES = ("users", "identities", "sessions", "authorization_codes", "outbox", "known_networks")


def be(provider: FakeProvider, subject: str, email: Any = None, verified: Any = True, **claims: Any) -> None:
    """Set the person signed in at a provider."""
    provider.person = {"sub": subject, "email": email, "email_verified": verified, **claims}


@pytest.fixture
def alice_at_google(service, google, alice):
    """Alice, whom Google has signed in before."""
    be(google, "alice-at-google", alice.email)
    service.signed_in("google")
    return alice


@pytest.fixture
def assert_untouched(database, alice):
    """Assert that Alice still has only her password and the identity of her address."""

    def check() -> None:
        columns = "email, email_proved, password_hash IS NOT NULL, last_sign_in_at"
        user = database.one(f"SELECT {columns} FROM users WHERE id = %(id)s", id=alice.id)
        assert user == (alice.email, True, True, None)
        providers = database.all("SELECT provider FROM identities WHERE user_id = %(id)s", id=alice.id)
        assert providers == [("email",)]

    return check


class TestTrustedProvider:
    def test_verified_address_signs_in_its_user_who_is_told(self, service, google, alice, database, outbox):
        before = alice.open_session()
        data = profile_metadata(name="Alice Liddell", picture="https://pictures.example/alice")
        be(google, "alice-at-google", alice.email, name=data["name"], picture=data["picture"])
        session = service.signed_in("google")
        user = session.get("/user").json
        linked = external("google", "alice-at-google", alice.email, True, **data)
        assert (user["id"], user["user_metadata"]) == (alice.id, {})
        assert user["identities"] == [identity("email", alice.email), linked]
        assert user["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
        assert session.claims["app_metadata"] == user["app_metadata"]
        assert database.count("users") == 1
        assert (before.get("/user").status_code, before.refresh().status_code) == (200, 200)
        assert alice.try_to_sign_in().status_code == 200
        service.signed_in("google")
        (message,) = outbox.sent()
        assert (message.kind, message.to) == ("identity_linked", ALICE)
        assert message.variables["provider"] == "google"

    @pytest.mark.parametrize(
        ("provider", "email", "verified", "claims"),
        [
            ("google", "Alice@EXAMPLE.COM", True, {}),
            ("apple", ALICE, "true", {}),
            ("google", ALICE, True, {"email": None, "email_verified": None}),
        ],
        ids=["capitals", "Apple", "userinfo"],
    )
    def test_address_may_be_spelled_otherwise(self, service, fakes, alice, provider, email, verified, claims):
        be(getattr(fakes, provider), "of-alice", email, verified)
        getattr(fakes, provider).claims |= claims
        assert service.user(provider)["id"] == alice.id

    # Two contain a letter that only looks like an a: fullwidth, and Cyrillic.
    @cases(
        "email",
        [
            *("alice+1@example.com", "alice@examp1e.com", "alice@example.com.evil.example"),
            *("\uff41lice@example.com", "alice@ex\u0430mple.com"),
            *("alice@example.com\0", "alice@example.com\n", "<alice@example.com>", " alice@example.com"),
            "alice@example.com,mallory@example.com",
        ],
    )
    def test_similar_or_malformed_address_never_links(self, service, google, alice, assert_untouched, email):
        be(google, f"mallory with {email!r}", email)
        page = service.sign_in("google")
        if "access_token" in page.url:
            assert service.session(page).get("/user").json["id"] != alice.id
        else:
            assert_failed(page, *FAILED)
        assert_untouched()


class TestUnverifiedAddress:
    @cases("verified", NOT_VERIFIED)
    def test_unverified_address_never_links(self, service, google, alice, outbox, assert_untouched, verified):
        subject = f"mallory with {verified!r}"
        be(google, subject, alice.email, verified)
        session = service.signed_in("google")
        assert session.get("/user").json == new_user("google", subject, alice.email, verified=False)
        assert session.claims["email"] == ""
        assert outbox.sent() == []
        assert_untouched()

    @cases(
        ("person", "claims"),
        [
            ({"email": None, "email_verified": True}, {}),
            ({"email_verified": False}, {"email": None, "email_verified": True}),
            # The userinfo of another subject.
            ({"email_verified": True}, {"sub": "mallory", "email": None, "email_verified": None}),
        ],
    )
    def test_verification_counts_only_for_its_address(
        self, service, google, assert_untouched, person, claims
    ):
        google.person, google.claims = {"sub": f"person {claims}", "email": ALICE} | person, claims
        assert service.user("google")["email"] is None
        assert_untouched()

    def test_address_outside_the_signed_token_is_ignored(self, service, fakes, assert_untouched):
        fakes.apple.person = {"sub": "001.mallory"}
        fakes.apple.user = '{"email": "alice@example.com", "email_verified": true, "name": {"firstName": "Alice", "lastName": "L."}}'
        user = service.user("apple")
        assert (user["email"], user["user_metadata"]) == (None, profile_metadata(name="Alice L."))
        assert_untouched()

    @cases(
        "user_parameter",
        [
            "",
            "[]",
            "null",
            '{"name": null}',
            '{"name": {"firstName": 7}}',
            '{"name":{"firstName":"\\u0000"}}',
        ],
    )
    def test_malformed_user_parameter_does_not_prevent_sign_in(self, service, fakes, user_parameter):
        fakes.apple.person, fakes.apple.user = {"sub": "001.alice"}, user_parameter
        service.user("apple")


class TestUntrustedProvider:
    def test_verified_address_of_an_untrusted_provider_does_not_link_to_a_user(
        self, service, acme, alice, outbox, assert_untouched
    ):
        be(acme, "mallory-at-acme", alice.email)
        user = service.user("acme")
        assert (user["id"] != alice.id, user["email"]) == (True, None)
        assert user["app_metadata"] == {"provider": "acme", "providers": ["acme"]}
        assert user["identities"] == [external("acme", "mallory-at-acme", alice.email, True)]
        assert outbox.sent() == []
        assert_untouched()


@pytest.mark.parametrize(
    ("provider", "trusted", "claims", "links"),
    [
        ("google", "false", {"email_verified": True}, False),
        ("github", "false", {}, False),
        ("acme", "true", {"email_verified": True}, True),
        ("azure", "true", {"xms_edov": "true"}, True),
        ("azure", "true", {"email_verified": True}, False),
        ("azure", None, {"xms_edov": True}, False),
    ],
)
def test_setting_trusts_or_distrusts_what_a_provider_verifies(
    make_service, fakes, alice, assert_untouched, provider, trusted, claims, links
):
    if provider == "github":
        fakes.github.be(666, alice.email)
    else:
        getattr(fakes, provider).person = {"sub": "of-alice", "email": alice.email, **claims}
    service = make_service(**{f"AUTH_PROVIDER_{provider.upper()}_LINK_BY_EMAIL": trusted})
    assert (service.user(provider)["id"] == alice.id) is links
    if not links:
        assert_untouched()


class TestSameSubject:
    def test_same_subject_keeps_its_user_with_any_address(
        self, service, google, client, bob, alice, assert_untouched, outbox
    ):
        for email in (bob.email, alice.email):
            be(google, "bob-at-google", email)
            session = service.signed_in("google")
            assert (session.claims["sub"], session.claims["email"]) == (bob.id, bob.email)
            assert session.get("/user").json["identities"][-1]["identity_data"]["email"] == email
        assert_untouched()
        session.put("/user", json={"email": "elsewhere@example.org"})
        hand_in(client, "email_change", outbox.last("elsewhere@example.org").token)
        user = service.user("google")
        assert (user["id"], user["email"]) == (bob.id, "elsewhere@example.org")

    def test_provider_case_and_spaces_tell_subjects_apart(
        self, service, google, acme, alice, database, assert_untouched
    ):
        for subject in ("alice", "Alice", "alice ", " alice"):
            be(google, subject)
            service.signed_in("google")
        for subject in ("alice", alice.id):
            be(acme, subject, alice.email)
            service.signed_in("acme")
        assert database.count("users") == 1 + 4 + 2
        assert_untouched()


class TestSecondSubject:
    """A second account of one provider with the same address may belong to another person."""

    @pytest.mark.parametrize("query", [{}, WITH_CHALLENGE], ids=["tokens", "code"])
    def test_second_subject_is_not_linked_by_address(self, service, google, alice_at_google, database, query):
        be(google, "another-at-google", ALICE)
        before = database.everything(*TABLES)
        page = service.sign_in("google", **query)
        assert_failed(page, "identity_already_exists", has_challenge=bool(query))
        assert database.everything(*TABLES) == before


def test_ban_refuses_every_identity_until_it_ends(service, google, github, alice_at_google, database):
    browser = service.browser()
    url = service.return_url(browser, "google")
    database.run("UPDATE users SET banned_until = now() + interval '1 hour'")
    assert_failed(browser.visit(url), "user_banned")
    before = database.everything(*TABLES)
    github.be(1001, ALICE)
    body = {"provider": "google", "id_token": google.id_token()}
    assert_error(service.client.post("/token?grant_type=id_token", json=body), 403, "user_banned")
    for provider, query in (("google", WITH_CHALLENGE), ("github", {})):
        assert_failed(service.sign_in(provider, **query), "user_banned", has_challenge=bool(query))
    assert database.everything(*TABLES) == before
    database.run("UPDATE users SET banned_until = now() - interval '1 second'")
    service.signed_in("google")


def test_only_existing_users_sign_in_when_sign_up_is_disabled(make_service, google, acme, alice, database):
    closed_service = make_service(AUTH_DISABLE_SIGNUP="true")
    be(google, "dave", DAVE)
    be(acme, "mallory", alice.email)
    before = database.everything(*TABLES)
    for provider in ("google", "github", "acme", "twitter"):
        assert_failed(closed_service.sign_in(provider), "signup_disabled")
    body = {"provider": "google", "id_token": google.id_token()}
    assert_error(closed_service.client.post("/token?grant_type=id_token", json=body), 403, "signup_disabled")
    assert database.everything(*TABLES) == before
    be(google, "alice-at-google", alice.email)
    assert [closed_service.user("google")["id"] for _ in range(2)] == [alice.id, alice.id]


class TestConcurrency:
    @pytest.mark.parametrize(
        ("email", "counts", "kinds"),
        [(DAVE, [2, 3, 8], []), (ALICE, [1, 2, 8], ["identity_linked"])],
        ids=["new", "linked by the address"],
    )
    def test_concurrent_sign_ins_of_a_subject_create_or_link_one_user(
        self, service, google, alice, database, outbox, email, counts, kinds
    ):
        be(google, "somebody", email)
        pages = at_once(8, lambda _: service.sign_in("google"))
        ids = {service.session(page).get("/user").json["id"] for page in pages}
        assert (len(ids), alice.id in ids) == (1, email == ALICE)
        assert [database.count(table) for table in ("users", "identities", "sessions")] == counts
        assert [message.kind for message in outbox.sent()] == kinds

    def test_one_of_two_concurrent_subjects_of_an_address_is_linked(self, service, google, alice, database):
        browsers, urls = [service.browser() for _ in range(2)], []
        for browser, subject in zip(browsers, ("one", "other"), strict=True):
            be(google, subject, alice.email)
            urls.append(service.return_url(browser, "google"))
        pages = at_once(2, lambda number: browsers[number].visit(urls[number]))
        codes = sorted(fragment(page).get("error_code", "") for page in pages)
        assert codes == ["", "identity_already_exists"]
        assert database.count("identities", "provider = 'google'") == 1

    def test_concurrent_sign_up_and_sign_in_create_one_user(self, service, google, client, database):
        be(google, "dave", DAVE)
        browser = service.browser()
        url = service.return_url(browser, "google")
        body = {"email": DAVE, "password": PASSWORD}
        requests = (lambda: client.post("/signup", json=body), lambda: browser.visit(url))
        signed_up, page = at_once(2, lambda number: requests[number]())
        assert signed_up.status_code == 201
        service.session(page)
        assert database.one("SELECT email, password_hash, email_proved FROM users") == (DAVE, None, True)


def test_provider_cannot_set_a_role_metadata_or_phone(service, google, carol):
    claims: dict[str, Any] = {"role": "admin", "app_metadata": {"is_admin": True}, "user_metadata": {"x": 1}}
    claims |= {"phone_number": "+491701234567", "phone_number_verified": True}
    be(google, "dave", DAVE, **claims)
    assert service.user("google") == new_user("google", "dave", DAVE)
    be(google, "carol-at-google", carol.email)
    session = service.signed_in("google")
    assert (session.claims["sub"], session.claims["role"]) == (carol.id, "admin")
