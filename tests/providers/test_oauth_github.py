"""Signing in with GitHub and Twitter: plain OAuth 2 without id_token, and addresses in a separate list."""

import secrets
from typing import Any

import pytest

from tests.support.answers import assert_error, identity
from tests.support.cases import cases
from tests.support.links import VERIFIER, WITH_CHALLENGE
from tests.support.oauth import assert_failed, external, new_user, query

pytest_plugins = ["tests.support.oauth_fixtures"]
FAILED = ("bad_oauth_callback", "server_error")
OCTOCAT: dict[str, Any] = {"name": "The Octocat", "avatar_url": "https://avatars.example/u/1"}


def test_new_user_gets_the_primary_address(service, github):
    github.be(583231, "Octocat@GitHub.com", "other@example.com")
    session = service.signed_in("github")
    assert session.get("/user").json == new_user("github", "583231", "octocat@github.com", **OCTOCAT)
    assert session.claims["amr"] == [{"method": "oauth", "timestamp": session.claims["iat"]}]


def test_github_is_called_as_its_documentation_requires(service, github):
    sent = service.leave(service.browser(), "github")
    assert {name: sent[name] for name in ("client_id", "redirect_uri", "scope")} == {
        "client_id": github.client_id,
        "redirect_uri": service.callback("github"),
        "scope": "read:user user:email",
    }
    assert "nonce" not in sent
    service.signed_in("github")
    exchanged = github.parameters(github.TOKEN)
    assert {name: exchanged[name] for name in ("client_id", "client_secret", "redirect_uri")} == {
        "client_id": github.client_id,
        "client_secret": github.client_secret,
        "redirect_uri": service.callback("github"),
    }
    assert [asked.path for asked in github.asked] == [github.AUTHORIZE, github.TOKEN, "/user", "/user/emails"]


def test_client_secret_is_sent_only_to_the_token_endpoint(service, github):
    service.signed_in("github")
    elsewhere = [asked for asked in github.asked if asked.path != github.TOKEN]
    assert not any(github.client_secret in str(asked) for asked in elsewhere)


def test_returning_user_is_found_by_number_despite_other_changes(service, github, database):
    first = service.signed_in("github").get("/user").json
    github.be(583231, "renamed@example.com", login="renamed", name="Renamed")
    again = service.signed_in("github").get("/user").json
    assert (again["id"], again["email"]) == (first["id"], "octocat@github.com")
    data = {"name": "Renamed", "avatar_url": "https://avatars.example/u/1"}
    assert again["identities"][0] == external("github", "583231", "renamed@example.com", True, **data)
    # A name that the user changed stays.
    assert again["user_metadata"] == first["user_metadata"]
    assert database.count("users") == 1


def test_other_account_with_the_same_name_is_another_user(service, github):
    first = service.signed_in("github").get("/user").json
    github.be(1, "second@example.com")
    assert service.signed_in("github").get("/user").json["id"] != first["id"]


@pytest.mark.parametrize("verified", [False, "false", None, 0, 1, "1", "yes", "", [], {}])
def test_unverified_address_is_not_used(service, github, alice, database, verified):
    github.be(583231, alice.email, verified=verified)
    user = service.signed_in("github").get("/user").json
    assert user == new_user("github", "583231", alice.email, verified=False, **OCTOCAT)
    assert user["id"] != alice.id
    assert database.count("identities", "user_id = %(id)s", id=alice.id) == 1


def test_address_without_verified_member_is_not_used(service, github, alice):
    github.documents["/user/emails"] = [{"email": alice.email, "primary": True}]
    assert service.signed_in("github").get("/user").json["email"] is None


def test_verified_secondary_address_is_not_used(service, github, alice):
    github.be(583231, "octocat@github.com", alice.email)
    user = service.signed_in("github").get("/user").json
    assert (user["id"] != alice.id, user["email"]) == (True, "octocat@github.com")


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"email": "alice@example.com", "primary": False, "verified": True}],
        [{"email": "alice@example.com", "primary": "true", "verified": True}],
        [{"email": ["alice@example.com"], "primary": True, "verified": True}],
        [{"email": None, "primary": True, "verified": True}],
        [{"email": "alice", "primary": True, "verified": True}],
        [{"email": "alice@example.com, mallory@example.com", "primary": True, "verified": True}],
        ["alice@example.com", None, 7],
        {"email": "alice@example.com", "primary": True, "verified": True},
    ],
)
def test_list_without_a_usable_address_gives_none(service, github, alice, entries):
    github.documents["/user/emails"] = entries
    user = service.signed_in("github").get("/user").json
    assert (user["id"] != alice.id, user["email"], user["app_metadata"]["providers"]) == (
        True,
        None,
        ["github"],
    )


def test_public_address_of_the_profile_is_not_trusted(service, github, alice):
    github.be(583231, "octocat@github.com", email=alice.email)
    user = service.signed_in("github").get("/user").json
    assert (user["id"] != alice.id, user["email"]) == (True, "octocat@github.com")


def test_verified_address_signs_in_its_user(service, github, alice):
    github.be(583231, alice.email)
    user = service.signed_in("github").get("/user").json
    assert (user["id"], user["app_metadata"]) == (
        alice.id,
        {"provider": "email", "providers": ["email", "github"]},
    )


@cases("number", [None, True, False, "", [], {}, 1.5])
def test_profile_without_a_number_is_refused(service, github, database, number):
    github.documents["/user"]["id"] = number
    assert_failed(service.sign_in("github"), *FAILED)
    assert database.count("users") == 0


@pytest.mark.parametrize(
    "subject", ["x\0y", "x\ud800", secrets.token_hex(3000)], ids=["NUL", "half a character", "too long"]
)
def test_profile_with_an_unstorable_number_is_refused(service, github, database, subject):
    github.documents["/user"]["id"] = subject
    assert_failed(service.sign_in("github"), *FAILED)
    assert database.count("users") == 0


def test_error_with_status_200_ends_the_sign_in(service, github, database):
    github.authenticates = lambda _: False
    try:
        assert_failed(service.sign_in("github"), *FAILED)
    finally:
        del github.authenticates
    assert (database.count("users"), github.paths()[-1]) == (0, github.TOKEN)


def test_no_address_is_trusted_without_the_scope_for_addresses(service, github, database, alice):
    github.be(583231, alice.email)
    page = service.sign_in("github", scopes="read:user")
    if "access_token" not in page.url:
        assert_failed(page, *FAILED)
    assert database.count("identities", "user_id = %(id)s", id=alice.id) == 1


def test_same_number_at_two_providers_is_two_users(service, github, twitter):
    github.be(2244994945, "octocat@github.com")
    ids = {service.signed_in(provider).get("/user").json["id"] for provider in ("github", "twitter")}
    assert len(ids) == 2


def test_code_challenge_returns_an_authorization_code(service, github):
    code = query(service.sign_in("github", **WITH_CHALLENGE))["code"]
    response = service.client.post(
        "/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
    )
    assert (response.status_code, response.json["user"]) == (
        200,
        new_user("github", "583231", "octocat@github.com", **OCTOCAT),
    )


def test_github_has_no_id_token_grant(service, google):
    body = {"provider": "github", "id_token": google.id_token(sub="x", nonce=None)}
    assert_error(
        service.client.post("/token?grant_type=id_token", json=body),
        400,
        "bad_oauth_callback",
        details="id_token: must be a fresh one of this provider for this client, with its nonce",
    )


class TestTwitter:
    """Twitter gives no addresses."""

    def test_twitter_user_has_no_address(self, service, twitter):
        session = service.signed_in("twitter")
        data: dict[str, Any] = {"name": "X Dev", "avatar_url": "https://pbs.example/1.jpg"}
        assert session.get("/user").json == new_user("twitter", "2244994945", None, **data)
        assert session.claims["email"] == ""
        assert session.refresh().status_code == 200

    def test_several_twitter_users_have_no_address(self, service, twitter, database):
        service.signed_in("twitter")
        twitter.be("1", "Another")
        service.signed_in("twitter")
        assert database.all("SELECT email FROM users") == [(None,), (None,)]

    def test_twitter_is_called_with_basic_authentication(self, service, twitter):
        service.signed_in("twitter")
        (exchange,) = [asked for asked in twitter.asked if asked.path == twitter.TOKEN]
        assert exchange.headers["authorization"].startswith("Basic ")
        assert "client_secret" not in exchange.parameters

    def test_twitter_user_can_add_an_address(self, service, twitter, outbox):
        session = service.signed_in("twitter")
        assert session.put("/user", json={"email": "x@example.com"}).status_code == 200
        response = service.client.post(
            "/verify", json={"type": "email_change", "token_hash": outbox.last("x@example.com").token}
        )
        assert response.status_code == 200, response.text
        again = service.signed_in("twitter").get("/user").json
        assert (again["email"], again["identities"][1]) == (
            "x@example.com",
            identity("email", "x@example.com"),
        )


class TestSecretWithSpecialCharacters:
    """RFC 6749, section 2.3.1: id and secret are form-encoded before they are joined for Basic."""

    @pytest.mark.parametrize("secret", ["a:b", "a b", "50%25", "a+b/c="])
    def test_secret_with_special_characters_arrives_unchanged(self, make_service, twitter, secret):
        usual, twitter.client_secret = twitter.client_secret, secret
        try:
            make_service().signed_in("twitter")
        finally:
            twitter.client_secret = usual
