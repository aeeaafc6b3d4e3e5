"""Signing in with GitHub, and what is in its manner: plain OAuth 2, a user without id_token, and addresses in
a list of their own.
"""

import secrets
from typing import Any

import pytest

from tests.support.answers import assert_error, identity
from tests.support.links import VERIFIER, WITH_CHALLENGE
from tests.support.oauth import assert_failed, external, new_user, query

pytest_plugins = ["tests.support.oauth_fixtures"]
FAILED = ("bad_oauth_callback", "server_error")
OCTOCAT: dict[str, Any] = {"name": "The Octocat", "avatar_url": "https://avatars.example/u/1"}


def test_a_new_person_becomes_a_user_with_the_primary_address(service, github):
    github.be(583231, "Octocat@GitHub.com", "other@example.com")
    session = service.signed_in("github")
    assert session.get("/user").json == new_user("github", "583231", "octocat@github.com", **OCTOCAT)
    assert session.claims["amr"] == [{"method": "oauth", "timestamp": session.claims["iat"]}]


def test_it_is_asked_as_its_documentation_says(service, github):
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


def test_the_secret_is_told_to_the_token_endpoint_alone(service, github):
    service.signed_in("github")
    elsewhere = [asked for asked in github.asked if asked.path != github.TOKEN]
    assert not any(github.client_secret in str(asked) for asked in elsewhere)


def test_whoever_comes_again_is_the_same_user_whatever_else_has_changed(service, github, database):
    first = service.signed_in("github").get("/user").json
    github.be(583231, "renamed@example.com", login="renamed", name="Renamed")
    again = service.signed_in("github").get("/user").json
    assert (again["id"], again["email"]) == (first["id"], "octocat@github.com")
    data = {"name": "Renamed", "avatar_url": "https://avatars.example/u/1"}
    assert again["identities"][0] == external("github", "583231", "renamed@example.com", True, **data)
    # What a user has made of the name is the user's own.
    assert again["user_metadata"] == first["user_metadata"]
    assert database.count("users") == 1


def test_another_account_with_the_same_name_is_somebody_else(service, github):
    first = service.signed_in("github").get("/user").json
    github.be(1, "second@example.com")
    assert service.signed_in("github").get("/user").json["id"] != first["id"]


@pytest.mark.parametrize("verified", [False, "false", None, 0, 1, "1", "yes", "", [], {}])
def test_an_address_that_it_does_not_call_verified_is_nobodys(service, github, alice, database, verified):
    github.be(583231, alice.email, verified=verified)
    user = service.signed_in("github").get("/user").json
    assert user == new_user("github", "583231", alice.email, verified=False, **OCTOCAT)
    assert user["id"] != alice.id
    assert database.count("identities", "user_id = %(id)s", id=alice.id) == 1


def test_an_address_that_says_nothing_of_it_is_nobodys(service, github, alice):
    github.documents["/user/emails"] = [{"email": alice.email, "primary": True}]
    assert service.signed_in("github").get("/user").json["email"] is None


def test_a_verified_address_that_is_not_the_primary_one_is_nobodys(service, github, alice):
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
def test_a_list_without_a_good_address_gives_none(service, github, alice, entries):
    github.documents["/user/emails"] = entries
    user = service.signed_in("github").get("/user").json
    assert (user["id"] != alice.id, user["email"], user["app_metadata"]["providers"]) == (
        True,
        None,
        ["github"],
    )


def test_the_public_address_of_the_profile_is_not_believed(service, github, alice):
    github.be(583231, "octocat@github.com", email=alice.email)
    user = service.signed_in("github").get("/user").json
    assert (user["id"] != alice.id, user["email"]) == (True, "octocat@github.com")


def test_a_verified_address_leads_to_the_user_who_has_it(service, github, alice):
    github.be(583231, alice.email)
    user = service.signed_in("github").get("/user").json
    assert (user["id"], user["app_metadata"]) == (
        alice.id,
        {"provider": "email", "providers": ["email", "github"]},
    )


@pytest.mark.parametrize("number", [None, True, False, "", [], {}, 1.5])
def test_a_profile_that_names_nobody_is_refused(service, github, database, number):
    github.documents["/user"]["id"] = number
    assert_failed(service.sign_in("github"), *FAILED)
    assert database.count("users") == 0


@pytest.mark.parametrize(
    "subject", ["x\0y", "x\ud800", secrets.token_hex(3000)], ids=["NUL", "half a character", "too long"]
)
def test_a_profile_that_names_somebody_whom_nobody_can_store_is_refused(service, github, database, subject):
    github.documents["/user"]["id"] = subject
    assert_failed(service.sign_in("github"), *FAILED)
    assert database.count("users") == 0


def test_an_error_with_status_200_is_an_error(service, github, database):
    github.authenticates = lambda _: False
    try:
        assert_failed(service.sign_in("github"), *FAILED)
    finally:
        del github.authenticates
    assert (database.count("users"), github.paths()[-1]) == (0, github.TOKEN)


def test_without_the_scope_for_addresses_nobody_is_believed_to_have_one(service, github, database, alice):
    github.be(583231, alice.email)
    page = service.sign_in("github", scopes="read:user")
    if "access_token" not in page.url:
        assert_failed(page, *FAILED)
    assert database.count("identities", "user_id = %(id)s", id=alice.id) == 1


def test_two_people_with_one_number_at_different_providers_are_two_users(service, github, twitter):
    github.be(2244994945, "octocat@github.com")
    ids = {service.signed_in(provider).get("/user").json["id"] for provider in ("github", "twitter")}
    assert len(ids) == 2


def test_with_a_code_challenge_the_application_gets_a_code(service, github):
    code = query(service.sign_in("github", **WITH_CHALLENGE))["code"]
    response = service.client.post(
        "/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
    )
    assert (response.status_code, response.json["user"]) == (
        200,
        new_user("github", "583231", "octocat@github.com", **OCTOCAT),
    )


def test_it_has_no_id_tokens(service, google):
    body = {"provider": "github", "id_token": google.id_token(sub="x", nonce=None)}
    assert_error(
        service.client.post("/token?grant_type=id_token", json=body),
        400,
        "bad_oauth_callback",
        details="id_token: must be a fresh one of this provider for this client, with its nonce",
    )


class TestTwitter:
    """Nobody has an address there."""

    def test_a_user_has_none_either(self, service, twitter):
        session = service.signed_in("twitter")
        data: dict[str, Any] = {"name": "X Dev", "avatar_url": "https://pbs.example/1.jpg"}
        assert session.get("/user").json == new_user("twitter", "2244994945", None, **data)
        assert session.claims["email"] == ""
        assert session.refresh().status_code == 200

    def test_several_users_have_none(self, service, twitter, database):
        service.signed_in("twitter")
        twitter.be("1", "Another")
        service.signed_in("twitter")
        assert database.all("SELECT email FROM users") == [(None,), (None,)]

    def test_it_is_asked_by_basic(self, service, twitter):
        service.signed_in("twitter")
        (exchange,) = [asked for asked in twitter.asked if asked.path == twitter.TOKEN]
        assert exchange.headers["authorization"].startswith("Basic ")
        assert "client_secret" not in exchange.parameters

    def test_such_a_user_can_take_an_address(self, service, twitter, outbox):
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


class TestASecretOfAnyCharacters:
    """RFC 6749, section 2.3.1: id and secret are form-encoded before they are joined for Basic."""

    @pytest.mark.parametrize("secret", ["a:b", "a b", "50%25", "a+b/c="])
    def test_it_arrives_as_it_is(self, make_service, twitter, secret):
        usual, twitter.client_secret = twitter.client_secret, secret
        try:
            make_service().signed_in("twitter")
        finally:
            twitter.client_secret = usual
