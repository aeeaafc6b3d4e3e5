"""Signing in with GitHub and Twitter: plain OAuth 2 without id_token, and addresses in a separate list."""

import secrets
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.fake_provider import Answer
from tests.support.links import hand_in
from tests.support.oauth import FAILED, assert_failed, new_user, profile_metadata

pytest_plugins = ["tests.support.oauth_fixtures"]
OCTOCAT: dict[str, Any] = profile_metadata(
    name="The Octocat", picture="https://avatars.example/u/1", handle="octocat"
)
ALICES_ADDRESS = {"email": "alice@example.com", "primary": True, "verified": True}


def test_new_user_gets_the_primary_address_and_github_is_called_as_its_documentation_says(service, github):
    github.be(583231, "Octocat@GitHub.com", "other@example.com")
    session = service.signed_in("github")
    assert session.get("/user").json == new_user("github", "583231", "octocat@github.com", **OCTOCAT)
    assert session.claims["amr"] == [
        {"method": "oauth", "timestamp": session.claims["iat"], "provider": "github"}
    ]
    assert [request.path for request in github.requests] == [
        github.AUTHORIZE,
        github.TOKEN,
        "/user",
        "/user/emails",
    ]
    client_parameters = {"client_id": github.client_id, "redirect_uri": service.callback("github")}
    exchange = client_parameters | {"client_secret": github.client_secret}
    assert github.parameters(github.TOKEN).items() >= exchange.items()
    other_requests = [request for request in github.requests if request.path != github.TOKEN]
    assert not any(github.client_secret in str(request) for request in other_requests)
    parameters = service.leave(service.browser(), "github")
    assert parameters.items() >= (client_parameters | {"scope": "read:user user:email"}).items()
    assert "nonce" not in parameters


@cases(
    "entries",
    [
        *(
            [ALICES_ADDRESS | {"verified": verified}]
            for verified in (False, "false", None, 0, 1, "1", "yes", "")
        ),
        *(
            [],
            ["alice@example.com", None, 7],
            ALICES_ADDRESS,
            [{"email": "alice@example.com", "primary": True}],
        ),
        *([ALICES_ADDRESS | {"primary": primary}] for primary in (False, "true")),
        *([ALICES_ADDRESS | {"email": email}] for email in (["alice@example.com"], None, "alice")),
        [ALICES_ADDRESS | {"email": "alice@example.com, mallory@example.com"}],
    ],
)
def test_list_without_a_verified_primary_address_gives_none(service, github, alice, database, entries):
    github.be(secrets.randbelow(10**9), "octocat@github.com", email=alice.email)
    github.documents["/user/emails"] = entries
    user = service.user("github")
    assert (user["id"] != alice.id, user["email"]) == (True, None)
    assert user["app_metadata"]["providers"] == ["github"]
    assert database.count("identities", "user_id = %(id)s", id=alice.id) == 1


@cases(
    ("path", "status", "reason"),
    [
        ("/user/emails", 404, "404 from the list of emails: let the app read emails"),
        ("/user/emails", 403, "403 from the list of emails: let the app read emails"),
        ("/user", 401, "401 from the userinfo endpoint"),
    ],
)
def test_log_names_the_endpoint_that_refused(service, github, database, capfd, path, status, reason):
    github.instead = {path: Answer(status, b"{}")}
    assert_failed(service.sign_in("github"), *FAILED)
    github.instead = {}
    assert f'"reason": "{reason}"' in capfd.readouterr().err
    assert database.count("users") == 0


def test_secondary_address_and_public_address_of_the_profile_are_not_used(service, github, alice):
    github.be(583231, "octocat@github.com", alice.email, email=alice.email)
    user = service.user("github")
    assert (user["id"] != alice.id, user["email"]) == (True, "octocat@github.com")


@cases("number", [None, True, False, "", [], {}, 1.5, "x\0y", "x\ud800", secrets.token_hex(3000)])
def test_profile_without_a_storable_number_is_refused(service, github, database, number):
    github.documents["/user"]["id"] = number
    assert_failed(service.sign_in("github"), *FAILED)
    assert database.count("users") == 0


def test_error_with_status_200_ends_the_sign_in(service, github, database, monkeypatch):
    monkeypatch.setattr(github, "authenticates", lambda _: False)
    assert_failed(service.sign_in("github"), *FAILED)
    assert (database.count("users"), github.paths()[-1]) == (0, github.TOKEN)


class TestTwitter:
    """Twitter gives no addresses."""

    def test_twitter_user_has_no_address_and_can_add_one(self, service, twitter, outbox):
        session = service.signed_in("twitter")
        data: dict[str, Any] = profile_metadata(
            name="X Dev", picture="https://pbs.example/1.jpg", handle="XDevelopers"
        )
        assert session.get("/user").json == new_user("twitter", "2244994945", None, **data)
        assert (session.claims["email"], session.refresh().status_code) == ("", 200)
        (exchange,) = [request for request in twitter.requests if request.path == twitter.TOKEN]
        assert exchange.headers["authorization"].startswith("Basic ")
        assert "client_secret" not in exchange.parameters
        assert session.put("/user", json={"email": "x@example.com"}).status_code == 200
        token = outbox.last("x@example.com").token
        assert hand_in(service.client, "email_change", token).status_code == 200
        assert service.user("twitter")["email"] == "x@example.com"

    # RFC 6749, section 2.3.1: id and secret are form-encoded before they are joined for Basic.
    @pytest.mark.parametrize("secret", ["a:b", "a b", "50%25", "a+b/c="])
    def test_secret_with_special_characters_is_unchanged(self, make_service, twitter, monkeypatch, secret):
        monkeypatch.setattr(twitter, "client_secret", secret)
        make_service().signed_in("twitter")
