"""Which user an identity signs in: the user linked to it, or, with a trusted provider, the user of its
address.
"""

import pytest

from tests.support.answers import ANYTHING, assert_error, identity
from tests.support.cast import PASSWORD, register
from tests.support.fake_provider import FakeProvider
from tests.support.oauth import assert_failed, external, fragment, identities_of, link, new_user
from tests.support.server import at_once

pytest_plugins = ["tests.support.oauth_fixtures"]
NOT_VERIFIED = [
    False,
    "false",
    "False",
    None,
    0,
    1,
    "0",
    "1",
    "yes",
    "",
    [],
    {},
    [True],
    {"email_verified": True},
]
FAILED = ("bad_oauth_callback", "server_error")


def be(
    provider: FakeProvider, subject: str, email: str | None = None, verified: object = True, **claims: object
) -> None:
    """Set the person signed in at a provider."""
    provider.person = {"sub": subject, "email": email, "email_verified": verified, **claims}


def untouched(database, person) -> bool:
    """Whether a user still has only its password and the identity of its address."""
    user = database.one(
        "SELECT email, email_proved, password_hash, last_sign_in_at FROM users WHERE id = %(id)s",
        id=person.id,
    )
    owned = database.all("SELECT provider FROM identities WHERE user_id = %(id)s", id=person.id)
    return (user.email, user.email_proved, user.password_hash is not None, user.last_sign_in_at, owned) == (
        person.email,
        True,
        True,
        None,
        [("email",)],
    )


class TestVerifiedAddressOfATrustedProvider:
    def test_verified_address_signs_in_its_user(self, service, google, alice, database):
        be(
            google,
            "alice-at-google",
            alice.email,
            name="Alice Liddell",
            picture="https://pictures.example/alice",
        )
        session = service.signed_in("google")
        user = session.get("/user").json
        data = {"name": "Alice Liddell", "avatar_url": "https://pictures.example/alice"}
        assert user["id"] == alice.id
        assert user["identities"] == [
            identity("email", alice.email),
            external("google", "alice-at-google", alice.email, True, **data),
        ]
        assert user["app_metadata"] == {"provider": "email", "providers": ["email", "google"]}
        assert session.claims["app_metadata"] == user["app_metadata"]
        assert user["user_metadata"] == {}
        assert database.count("users") == 1

    def test_linking_by_address_keeps_the_account(self, service, google, alice):
        before = alice.open_session()
        be(google, "alice-at-google", alice.email)
        service.signed_in("google")
        assert before.get("/user").status_code == 200
        assert before.refresh().status_code == 200
        assert alice.try_to_sign_in().status_code == 200

    def test_linking_by_address_mails_one_notice(self, service, google, alice, outbox):
        be(google, "alice-at-google", alice.email)
        for _ in range(2):
            service.signed_in("google")
        (message,) = outbox.sent()
        assert (message.kind, message.to, message.variables["provider"]) == (
            "identity_linked",
            alice.email,
            "google",
        )

    @pytest.mark.parametrize("email", ["ALICE@example.com", "Alice@EXAMPLE.COM"])
    def test_address_may_be_spelled_differently(self, service, google, alice, email):
        be(google, "alice-at-google", email)
        assert service.signed_in("google").get("/user").json["id"] == alice.id

    # The third and the last contain a letter that only looks like an a: fullwidth, and Cyrillic.
    @pytest.mark.parametrize(
        "email",
        [
            "alice+1@example.com",
            "alice@examp1e.com",
            "\uff41lice@example.com",
            "alice@example.com.evil.example",
            "alice@ex\u0430mple.com",
        ],
    )
    def test_address_that_only_looks_alike_is_another_user(self, service, google, alice, database, email):
        be(google, "mallory-at-google", email)
        assert service.signed_in("google").get("/user").json["id"] != alice.id
        assert untouched(database, alice)

    @pytest.mark.parametrize(
        "email",
        [
            "alice@example.com\0",
            "alice@example.com\n",
            "<alice@example.com>",
            "alice@example.com,mallory@example.com",
            " alice@example.com",
        ],
    )
    def test_malformed_address_is_ignored(self, service, google, alice, database, email):
        be(google, "mallory-at-google", email)
        page = service.sign_in("google")
        if "access_token" in page.url:
            assert service.session(page).get("/user").json["id"] != alice.id
        else:
            assert_failed(page, *FAILED)
        assert untouched(database, alice)

    @pytest.mark.parametrize("verified", [True, "true"])
    def test_email_verified_may_be_a_string(self, service, google, alice, verified):
        be(google, "alice-at-google", alice.email, verified)
        assert service.signed_in("google").get("/user").json["id"] == alice.id

    def test_apple_is_trusted(self, service, fakes, alice):
        be(fakes.apple, "001.alice", alice.email, "true")
        browser = service.browser()
        service.sign_in("apple", browser)
        assert service.session(browser.submit()).get("/user").json["id"] == alice.id

    def test_verified_address_may_come_from_userinfo(self, service, google, alice):
        # The id_token has only the subject.
        be(google, "alice-at-google", alice.email)
        google.claims = {"email": None, "email_verified": None}
        assert service.signed_in("google").get("/user").json["id"] == alice.id


class TestUnverifiedAddress:
    @pytest.mark.parametrize("verified", NOT_VERIFIED, ids=repr)
    def test_unverified_address_does_not_link_to_a_user(
        self, service, google, alice, database, outbox, verified
    ):
        be(google, "mallory-at-google", alice.email, verified)
        session = service.signed_in("google")
        assert session.get("/user").json == new_user(
            "google", "mallory-at-google", alice.email, verified=False
        )
        assert session.claims["email"] == ""
        assert untouched(database, alice)
        assert outbox.sent() == []

    def test_free_unverified_address_is_not_taken(self, service, google, client, database):
        be(google, "mallory-at-google", "dave@example.com", False)
        assert service.signed_in("google").get("/user").json == new_user(
            "google", "mallory-at-google", "dave@example.com", verified=False
        )
        # The owner of the address can still sign up with it.
        assert (
            client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD}).status_code
            == 201
        )
        assert database.count("users", "email = 'dave@example.com' AND made_by = 'signup'") == 1

    def test_email_verified_without_an_address_is_ignored(self, service, google, alice, database):
        google.person = {"sub": "mallory-at-google", "email_verified": True}
        assert service.signed_in("google").get("/user").json["email"] is None
        assert untouched(database, alice)

    def test_email_verified_counts_only_for_the_address_it_comes_with(self, service, google, alice, database):
        google.person = {"sub": "mallory-at-google", "email": alice.email, "email_verified": False}
        google.claims = {"email": None, "email_verified": True}
        assert service.signed_in("google").get("/user").json["id"] != alice.id
        assert untouched(database, alice)

    def test_userinfo_of_another_subject_is_ignored(self, service, google, alice, database):
        google.person = {"sub": "alice-at-google", "email": alice.email, "email_verified": True}
        google.claims = {"sub": "mallory-at-google", "email": None, "email_verified": None}
        assert service.signed_in("google").get("/user").json["id"] != alice.id
        assert untouched(database, alice)

    def test_address_outside_the_signed_token_is_ignored(self, service, fakes, alice, database):
        fakes.apple.person = {"sub": "001.mallory"}
        fakes.apple.user = '{"email": "alice@example.com", "email_verified": true, "name": {"firstName": "Alice", "lastName": "L."}}'
        browser = service.browser()
        service.sign_in("apple", browser)
        user = service.session(browser.submit()).get("/user").json
        assert (user["id"] != alice.id, user["email"], user["user_metadata"]) == (
            True,
            None,
            {"name": "Alice L."},
        )
        assert untouched(database, alice)

    @pytest.mark.parametrize(
        "sent",
        [
            "",
            "x",
            "[]",
            '"x"',
            "null",
            '{"name": "Alice"}',
            '{"name": {"firstName": {}}}',
            '{"name": null}',
            '{"name":{"firstName":"\\u0000"}}',
        ],
    )
    def test_malformed_user_parameter_does_not_prevent_sign_in(self, service, fakes, sent):
        fakes.apple.person = {"sub": "001.alice"}
        fakes.apple.user = sent
        browser = service.browser()
        service.sign_in("apple", browser)
        service.session(browser.submit())


class TestUntrustedProvider:
    def test_verified_address_of_an_untrusted_provider_does_not_link_to_a_user(
        self, service, acme, alice, database, outbox
    ):
        be(acme, "mallory-at-acme", alice.email)
        user = service.signed_in("acme").get("/user").json
        assert (user["id"] != alice.id, user["email"], user["app_metadata"]) == (
            True,
            None,
            {"provider": "acme", "providers": ["acme"]},
        )
        assert user["identities"] == [external("acme", "mallory-at-acme", alice.email, True)]
        assert untouched(database, alice)
        assert outbox.sent() == []

    def test_free_address_is_confirmed_but_not_proved(self, service, acme, database):
        be(acme, "dave-at-acme", "dave@example.com")
        assert service.signed_in("acme").get("/user").json == new_user(
            "acme", "dave-at-acme", "dave@example.com"
        )
        assert database.value("SELECT email_proved FROM users") is False

    def test_proof_by_mail_takes_the_address_over(self, service, client, acme, outbox, database):
        be(acme, "mallory-at-acme", "dave@example.com")
        mallory = service.signed_in("acme")
        assert mallory.put("/user", json={"password": "Mallorys-Own-1"}).status_code == 200
        client.post("/magiclink", json={"email": "dave@example.com"})
        response = client.post(
            "/verify", json={"type": "magiclink", "token_hash": outbox.last("dave@example.com").token}
        )
        assert response.status_code == 200
        assert response.json["user"]["app_metadata"]["providers"] == ["email"]
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(
            client.post(
                "/token?grant_type=password", json={"email": "dave@example.com", "password": "Mallorys-Own-1"}
            ),
            401,
            "invalid_credentials",
        )
        # When Mallory returns, she signs in to a user of her own.
        again = service.signed_in("acme").get("/user").json
        assert (again["id"] != response.json["user"]["id"], again["email"]) == (True, None)

    def test_proof_by_a_trusted_provider_takes_the_address_over(self, service, acme, google, database):
        be(acme, "mallory-at-acme", "dave@example.com")
        mallory = service.signed_in("acme")
        be(google, "dave-at-google", "dave@example.com")
        dave = service.signed_in("google").get("/user").json
        assert dave["app_metadata"]["providers"] == ["email", "google"]
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert service.signed_in("acme").get("/user").json["id"] != dave["id"]

    def test_azure_is_not_trusted(self, service, fakes, alice, database):
        be(fakes.azure, "mallory-at-azure", alice.email, xms_edov=True)
        assert service.signed_in("azure").get("/user").json["email"] is None
        assert untouched(database, alice)


class TestTrustSetting:
    def test_setting_can_trust_a_provider(self, make_service, acme, alice):
        be(acme, "alice-at-acme", alice.email)
        assert (
            make_service(AUTH_PROVIDER_ACME_LINK_BY_EMAIL="true").signed_in("acme").get("/user").json["id"]
            == alice.id
        )

    @pytest.mark.parametrize("provider", ["google", "github"])
    def test_setting_can_distrust_a_provider(self, make_service, fakes, alice, database, provider):
        be(fakes.google, "mallory-at-google", alice.email)
        fakes.github.be(666, alice.email)
        service = make_service(**{f"AUTH_PROVIDER_{provider.upper()}_LINK_BY_EMAIL": "false"})
        assert service.signed_in(provider).get("/user").json["id"] != alice.id
        assert untouched(database, alice)

    def test_trusted_provider_must_still_verify_the_address(self, make_service, acme, alice, database):
        be(acme, "mallory-at-acme", alice.email, "false")
        assert (
            make_service(AUTH_PROVIDER_ACME_LINK_BY_EMAIL="true").signed_in("acme").get("/user").json["id"]
            != alice.id
        )
        assert untouched(database, alice)

    @pytest.mark.parametrize(
        ("claims", "links"),
        [
            ({"xms_edov": True}, True),
            ({"xms_edov": "true"}, True),
            ({"email_verified": True}, False),
            ({"xms_edov": 0}, False),
        ],
    )
    def test_azure_verifies_by_its_own_claim(self, make_service, fakes, alice, claims, links):
        fakes.azure.person = {"sub": "alice-at-azure", "email": alice.email, **claims}
        user = make_service(AUTH_PROVIDER_AZURE_LINK_BY_EMAIL="true").signed_in("azure").get("/user").json
        assert (user["id"] == alice.id) is links


class TestSameSubject:
    def test_same_subject_is_the_same_user_with_any_address(self, service, google, database):
        be(google, "alice-at-google", "alice@example.com")
        first = service.signed_in("google").get("/user").json
        for email, verified in (("new@example.com", True), ("other@example.com", False), (None, None)):
            be(google, "alice-at-google", email, verified)
            again = service.signed_in("google").get("/user").json
            assert (again["id"], again["email"]) == (first["id"], "alice@example.com")
            assert again["identities"][0]["identity_data"]["email"] == email
        assert (database.count("users"), database.count("identities")) == (1, 2)

    def test_same_subject_with_the_address_of_another_user_stays_the_same_user(
        self, service, google, alice, bob, database
    ):
        be(google, "bob-at-google", bob.email)
        service.signed_in("google")
        be(google, "bob-at-google", alice.email)
        user = service.signed_in("google").get("/user").json
        assert (user["id"], user["email"]) == (bob.id, bob.email)
        assert untouched(database, alice)

    def test_same_subject_finds_the_user_after_an_address_change(self, service, google, client, outbox):
        be(google, "alice-at-google", "alice@example.com")
        session = service.signed_in("google")
        session.put("/user", json={"email": "elsewhere@example.org"})
        client.post(
            "/verify", json={"type": "email_change", "token_hash": outbox.last("elsewhere@example.org").token}
        )
        again = service.signed_in("google").get("/user").json
        assert (again["id"], again["email"]) == (session.get("/user").json["id"], "elsewhere@example.org")

    def test_same_subject_at_another_provider_is_another_user(self, service, google, acme):
        be(google, "the-same", "alice@example.com")
        be(acme, "the-same", "alice@example.com")
        assert (
            service.signed_in("google").get("/user").json["id"]
            != service.signed_in("acme").get("/user").json["id"]
        )

    def test_case_and_spaces_distinguish_subjects(self, service, google, database):
        for subject in ("alice", "Alice", "alice ", " alice"):
            be(google, subject)
            service.signed_in("google")
        assert database.count("users") == 4

    def test_subject_equal_to_a_user_id_is_another_user(self, service, acme, alice, database):
        be(acme, alice.id, alice.email)
        assert service.signed_in("acme").get("/user").json["id"] != alice.id
        assert untouched(database, alice)


class TestSecondSubject:
    """A second account of one provider with the same address may belong to another person."""

    def test_second_subject_is_not_linked_by_the_address(self, service, google, alice, database):
        be(google, "alice-at-google", alice.email)
        service.signed_in("google")
        be(google, "another-at-google", alice.email)
        before = database.everything("users", "identities", "sessions", "outbox", "known_networks")
        assert_failed(service.sign_in("google"), "identity_already_exists")
        assert database.everything("users", "identities", "sessions", "outbox", "known_networks") == before

    def test_subject_of_a_second_provider_is_linked_by_the_address(self, service, google, github, alice):
        be(google, "alice-at-google", alice.email)
        service.signed_in("google")
        github.be(1001, alice.email)
        user = service.signed_in("github").get("/user").json
        assert (user["id"], user["app_metadata"]["providers"]) == (alice.id, ["email", "google", "github"])

    def test_second_subject_is_linked_after_the_first_is_unlinked(self, service, google, alice):
        be(google, "alice-at-google", alice.email)
        session = service.signed_in("google")
        assert session.delete(f"/user/identities/{identities_of(session)['google']}").status_code == 200
        be(google, "another-at-google", alice.email)
        assert service.signed_in("google").get("/user").json["id"] == alice.id

    def test_second_subject_is_refused_with_a_code_challenge(self, service, google, alice):
        be(google, "alice-at-google", alice.email)
        service.signed_in("google")
        be(google, "another-at-google", alice.email)
        assert_failed(
            service.sign_in("google", code_challenge="x" * 43, code_challenge_method="s256"),
            "identity_already_exists",
        )


class TestBannedUser:
    @pytest.fixture
    def banned(self, service, google, github, alice, database):
        be(google, "alice-at-google", alice.email)
        service.signed_in("google")
        database.run("UPDATE users SET banned_until = now() + interval '1 hour'")
        return database.everything("users", "identities", "sessions", "authorization_codes")

    @pytest.mark.parametrize("query", [{}, {"code_challenge": "x" * 43}])
    def test_banned_user_cannot_sign_in_by_an_identity(self, service, banned, database, query):
        assert_failed(service.sign_in("google", **query), "user_banned")
        assert database.everything("users", "identities", "sessions", "authorization_codes") == banned

    def test_banned_user_cannot_sign_in_by_its_address(self, service, github, alice, banned, database):
        github.be(1001, alice.email)
        assert_failed(service.sign_in("github"), "user_banned")
        assert database.everything("users", "identities", "sessions", "authorization_codes") == banned

    def test_banned_user_cannot_sign_in_by_a_second_subject(self, service, google, alice, banned, database):
        be(google, "another-at-google", alice.email)
        assert_failed(service.sign_in("google"), "user_banned")
        assert database.everything("users", "identities", "sessions", "authorization_codes") == banned

    def test_banned_user_cannot_sign_in_by_an_id_token(self, service, google, banned, database):
        body = {"provider": "google", "id_token": google.id_token()}
        assert_error(service.client.post("/token?grant_type=id_token", json=body), 403, "user_banned")
        assert database.everything("users", "identities", "sessions", "authorization_codes") == banned

    def test_user_can_sign_in_after_the_ban(self, service, banned, database):
        database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        service.signed_in("google")

    def test_ban_during_the_redirect_refuses_the_sign_in(self, service, google, alice, database):
        be(google, "alice-at-google", alice.email)
        browser = service.browser()
        url = service.return_url(browser, "google")
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_failed(browser.visit(url), "user_banned")
        assert database.count("sessions") == 0


class TestDisabledSignUp:
    @pytest.fixture
    def closed(self, make_service):
        return make_service(AUTH_DISABLE_SIGNUP="true")

    @pytest.mark.parametrize("provider", ["google", "github", "acme", "twitter"])
    def test_new_user_is_refused_when_sign_up_is_disabled(self, closed, google, acme, database, provider):
        be(google, "dave", "dave@example.com")
        be(acme, "dave", "dave@example.com")
        assert_failed(closed.sign_in(provider), "signup_disabled")
        assert [database.count(table) for table in ("users", "identities", "sessions", "outbox")] == [
            0,
            0,
            0,
            0,
        ]

    def test_new_user_with_an_id_token_is_refused_when_sign_up_is_disabled(self, closed, google, database):
        be(google, "dave", "dave@example.com")
        body = {"provider": "google", "id_token": google.id_token()}
        assert_error(closed.client.post("/token?grant_type=id_token", json=body), 403, "signup_disabled")
        assert database.count("users") == 0

    def test_existing_user_signs_in_when_sign_up_is_disabled(self, closed, google, github, alice):
        be(google, "alice-at-google", alice.email)
        assert closed.signed_in("google").get("/user").json["id"] == alice.id
        assert closed.signed_in("google").get("/user").json["id"] == alice.id

    def test_unlinked_address_creates_no_user_when_sign_up_is_disabled(self, closed, acme, alice, database):
        be(acme, "mallory", alice.email)
        assert_failed(closed.sign_in("acme"), "signup_disabled")
        assert database.count("users") == 1


class TestConcurrency:
    def test_concurrent_sign_ins_of_a_new_subject_create_one_user(self, service, google, database):
        be(google, "dave", "dave@example.com")
        pages = at_once(8, lambda _: service.sign_in("google"))
        ids = {service.session(page).get("/user").json["id"] for page in pages}
        assert (
            len(ids),
            database.count("users"),
            database.count("identities"),
            database.count("sessions"),
        ) == (1, 1, 2, 8)

    def test_concurrent_first_sign_ins_by_an_address_link_once(
        self, service, google, alice, database, outbox
    ):
        be(google, "alice-at-google", alice.email)
        pages = at_once(8, lambda _: service.sign_in("google"))
        assert {service.session(page).get("/user").json["id"] for page in pages} == {alice.id}
        assert (database.count("identities"), [message.kind for message in outbox.sent()]) == (
            2,
            ["identity_linked"],
        )

    def test_one_of_two_concurrent_subjects_with_one_address_is_linked(
        self, service, google, alice, database
    ):
        browsers = [service.browser() for _ in range(2)]
        urls = []
        for browser, subject in zip(browsers, ("one", "other"), strict=True):
            be(google, subject, alice.email)
            urls.append(service.return_url(browser, "google"))
        pages = at_once(2, lambda number: browsers[number].visit(urls[number]))
        assert sorted(fragment(page).get("error_code", "") for page in pages) == [
            "",
            "identity_already_exists",
        ]
        assert database.count("identities", "provider = 'google'") == 1

    def test_concurrent_sign_ins_by_two_providers_with_a_new_address_create_one_user(
        self, service, google, github, database
    ):
        be(google, "dave", "dave@example.com")
        github.be(1001, "dave@example.com")
        pages = at_once(2, lambda number: service.sign_in(("google", "github")[number]))
        assert len({service.session(page).get("/user").json["id"] for page in pages}) == 1
        assert (database.count("users"), database.count("identities")) == (1, 3)

    def test_concurrent_sign_up_and_sign_in_by_a_provider_create_one_user(
        self, service, google, client, database
    ):
        be(google, "dave", "dave@example.com")
        browser = service.browser()
        url = service.return_url(browser, "google")
        body = {"email": "dave@example.com", "password": PASSWORD}
        pages = at_once(2, lambda number: browser.visit(url) if number else client.post("/signup", json=body))
        assert pages[0].status_code == 201
        service.session(pages[1])
        row = database.one("SELECT email, password_hash, email_proved FROM users")
        assert row == ("dave@example.com", None, True)


class TestIdentityUnlinkedMeanwhile:
    def test_subject_unlinked_during_the_sign_in_becomes_a_new_user(self, service, twitter, database):
        first = service.signed_in("twitter").claims["sub"]
        browser = service.browser()
        url = service.return_url(browser, "twitter")
        unlinking = f"UPDATE users SET updated_at = now() WHERE id = %s; DELETE FROM identities WHERE user_id = '{first}'"
        with database.locked("users", first, unlinking) as lock:
            page = lock.start(lambda: browser.visit(url))
        assert service.session(page.result()).claims["sub"] != first

    def test_subject_unlinked_at_each_retry_is_a_temporary_error(self, service, twitter, google, database):
        service.signed_in("twitter")
        be(google, "dave", "dave@example.com")
        service.signed_in("google")
        sessions = database.count("sessions")
        # A trigger hides the identity from each retry, as if it were unlinked each time.
        database.run("CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        database.run("CREATE TRIGGER hidden BEFORE UPDATE ON identities FOR EACH ROW EXECUTE FUNCTION hide()")
        try:
            page = service.sign_in("twitter")
            assert (page.status, page.headers["Retry-After"], "Try again shortly" in page.text) == (
                503,
                "2",
                True,
            )
            body = {"provider": "google", "id_token": google.id_token()}
            assert_error(
                service.client.post("/token?grant_type=id_token", json=body), 503, "service_unavailable"
            )
        finally:
            database.run("DROP FUNCTION hide() CASCADE")
        assert database.count("sessions") == sessions
        service.signed_in("twitter")


def test_deleted_user_can_return_as_a_new_one(service, google, service_role):
    be(google, "dave", "dave@example.com")
    first = service.signed_in("google").get("/user").json
    assert service.client.delete(f"/admin/users/{first['id']}", headers=service_role).status_code == 200
    again = service.signed_in("google").get("/user").json
    assert (again["id"] != first["id"], again["email"]) == (True, "dave@example.com")


def test_user_with_only_a_phone_is_not_found_by_an_address(service, google, alice, service_role):
    be(google, "dave", "dave@example.com")
    body = {"email": "erin@example.com", "phone": "+491701234567", "phone_confirm": True}
    erin = service.client.post("/admin/users", json=body, headers=service_role).json
    assert service.signed_in("google").get("/user").json["id"] != erin["id"]


def test_linked_identity_signs_in_its_user_with_any_address(service, google, alice, bob):
    be(google, "the-other-of-alice", bob.email)
    session = alice.sign_in()
    assert fragment(link(service, session, "google")) == {"message": ANYTHING, "type": "identity_linked"}
    assert service.signed_in("google").get("/user").json["id"] == alice.id


def test_administrator_signs_in_with_its_role(service, google, carol):
    be(google, "carol-at-google", carol.email)
    session = service.signed_in("google")
    assert (session.claims["sub"], session.claims["role"]) == (carol.id, "admin")


def test_provider_cannot_set_a_role_or_metadata(service, google, client, service_role):
    register(client, service_role, "alice@example.com")
    claims = {
        "role": "admin",
        "app_metadata": {"is_admin": True},
        "user_metadata": {"x": 1},
        "aud_": "x",
        "phone_number": "+491701234567",
        "phone_number_verified": True,
    }
    be(google, "dave", "dave@example.com", **claims)
    user = service.signed_in("google").get("/user").json
    assert user == new_user("google", "dave", "dave@example.com")
