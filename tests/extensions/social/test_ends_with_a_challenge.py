"""Flows with a code_challenge that end without a code: the server behind the target reads the query, and old clients
the fragment (RFC 6749, section 4.1.2.1, and GoTrue).
"""

import pytest

from tests.support.answers import A_SENTENCE, assert_ok
from tests.support.fake_provider import Answer
from tests.support.links import EXPIRED, ON_ITS_WAY, WITH_CHALLENGE, fragment, location, single
from tests.support.oauth import APPLICATION, FAILED, SITE, STALE, assert_failed, link
from tests.support.users import NEW_EMAIL

pytest_plugins = ["tests.support.oauth_fixtures"]
TO_APPLICATION = {"redirect_to": APPLICATION, **WITH_CHALLENGE}


def parsed(url: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the target of a redirect, the parameters of its query, and those of its fragment."""
    url, _, in_fragment = url.partition("#")
    url, _, in_query = url.partition("?")
    return url, single(in_query) if in_query else {}, single(in_fragment)


def test_refusal_of_the_provider_is_in_the_query_too(service, google):
    google.response = {"error": "access_denied", "code": None}
    page = service.sign_in("google", **TO_APPLICATION)
    assert_failed(page, "bad_oauth_callback", "access_denied", APPLICATION, has_challenge=True)
    google.response = {"error": "access_denied", "code": None}
    assert_failed(
        service.sign_in("google", redirect_to=APPLICATION), "bad_oauth_callback", "access_denied", APPLICATION
    )


def test_provider_that_does_not_answer_is_in_the_query_too(make_service, google):
    google.instead[google.DISCOVERY] = Answer(503)
    page = make_service().sign_in("google", **TO_APPLICATION)
    assert_failed(page, "bad_oauth_callback", "temporarily_unavailable", APPLICATION, has_challenge=True)


def test_answer_replaces_an_earlier_one_in_the_query_of_the_target(service, google):
    """An application may ask to return to the page that got the last error."""
    target = f"{APPLICATION}?page=2&error=access_denied&error_code=x&code=old#error=old"
    google.response = {"error": "access_denied", "code": None}
    page = service.sign_in("google", redirect_to=target, **WITH_CHALLENGE)
    _, in_query, in_fragment = parsed(page.url)
    assert in_query.pop("page") == "2"
    assert (
        in_query
        == in_fragment
        == {"error": "access_denied", "error_code": "bad_oauth_callback"} | {"error_description": A_SENTENCE}
    )
    google.response = {}
    google.person = {"sub": "dave", "email": "dave@example.com", "email_verified": True}
    url = service.sign_in("google", redirect_to=page.url, **WITH_CHALLENGE).url.partition("#")[0]
    assert single(url.partition("?")[2]).keys() == {"page", "code"}


class TestLostCookie:
    """The flow is read by its state, and not spent: only an error goes to its target, and never a code."""

    def test_error_goes_to_the_target_of_the_flow_which_stays(self, service, google, database):
        google.person = {"sub": "dave", "email": "dave@example.com", "email_verified": True}
        browser = service.browser()
        url = service.return_url(browser, "google", **TO_APPLICATION)
        for stranger in (service.browser(), service.browser()):
            assert_failed(stranger.visit(url), *STALE, APPLICATION, has_challenge=True)
        assert (database.count("oauth_flows"), database.count("users")) == (1, 0)
        assert "?code=" in browser.visit(url).url

    def test_error_without_a_challenge_is_in_the_fragment_alone(self, service):
        url = service.return_url(service.browser(), "google", redirect_to=APPLICATION)
        assert_failed(service.browser().visit(url), *STALE, APPLICATION)

    def test_target_that_is_no_longer_allowed_gets_nothing(self, service, database):
        url = service.return_url(service.browser(), "google", **TO_APPLICATION)
        database.run("UPDATE oauth_flows SET redirect_to = 'https://evil.example/'")
        assert_failed(service.browser().visit(url), *STALE, has_challenge=True)

    def test_linking_that_no_browser_has_agreed_to_is_unknown(self, service, alice, database):
        session = alice.open_session(service.client)
        session.get(f"/user/identities/authorize?provider=google&redirect_to={APPLICATION}")
        flows = database.value("SELECT count(*) FROM oauth_flows WHERE browser_hash IS NULL")
        assert flows == 1
        assert_failed(
            service.browser().visit(f"{service.callback('google')}?state={'x' * 43}&code=x"), *STALE
        )


def test_linked_identity_is_said_in_the_query_too(service, google, alice, database):
    google.person = {"sub": "alice", "email": "else@example.com", "email_verified": True}
    page = link(service, alice.open_session(), "google", None, **TO_APPLICATION)
    parameters = {"message": "Identity linked", "type": "identity_linked"}
    assert parsed(page.url) == (APPLICATION, parameters, parameters)
    assert database.count("identities", "provider = 'google'") == 1


def test_linking_takes_the_challenge_of_react_native(service, alice):
    """Its method is plain: the challenge is the verifier itself."""
    session = alice.open_session(service.client)
    query = {"provider": "google", "code_challenge": "a" * 56, "code_challenge_method": "plain"}
    assert session.get("/user/identities/authorize", query_string=query).status_code == 200


class TestMailedLinks:
    def test_dead_link_is_said_in_the_query_while_its_row_stands(self, client, alice, outbox, database):
        body = {"email": alice.email, "redirect_to": f"{SITE}/there", **WITH_CHALLENGE}
        assert_ok(client.post("/magiclink", json=body), ON_ITS_WAY)
        path = f"/verify?token={outbox.last().token}&type=magiclink"
        assert "?code=" in location(client.get(path))
        assert parsed(location(client.get(path))) == (f"{SITE}/there", EXPIRED, EXPIRED)
        database.run("DELETE FROM one_time_tokens")
        assert fragment(client.get(path)) == EXPIRED

    def test_confirmed_change_is_said_in_the_query_too(self, client, alice, outbox):
        session = alice.open_session()
        change = {"email": NEW_EMAIL, "redirect_to": f"{SITE}/there", **WITH_CHALLENGE}
        assert session.put("/user", json=change).status_code == 200
        response = client.get(f"/verify?token={outbox.last(NEW_EMAIL).token}&type=email_change")
        parameters = {"message": A_SENTENCE, "type": "email_change"}
        assert parsed(location(response)) == (f"{SITE}/there", parameters, parameters)


@pytest.mark.parametrize("challenge", [{}, WITH_CHALLENGE], ids=["tokens", "code"])
def test_unknown_code_ends_at_the_target(service, challenge):
    browser = service.browser()
    parameters = service.leave(browser, "google", redirect_to=APPLICATION, **challenge)
    page = browser.visit(f"{service.callback('google')}?state={parameters['state']}&code=made-up")
    assert_failed(page, *FAILED, APPLICATION, has_challenge=bool(challenge))
