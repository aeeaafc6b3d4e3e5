"""Shared by the tests of OAuth: a service with many providers, browsers, and expected redirects."""

import re
from typing import Any
from urllib.parse import urlencode, urlsplit

from auth.web.context import EXTENSION
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, identity, token_response, user
from tests.support.fake_provider import Apple, Azure, FakeProvider, GitHub, Twitter
from tests.support.links import SITE, single
from tests.support.user_agent import Page, UserAgent
from tests.support.users import Session

# An application on another site than the service; the allow list has all of its paths but the root.
APPLICATION = "https://app.example.com/signed-in"
ALLOW_LIST = {"AUTH_REDIRECT_ALLOW_LIST": "https://app.example.com/**"}
# Error codes of redirects: the provider failed, and the flow is unknown, over, or that of another browser.
FAILED = ("bad_oauth_callback", "server_error")
STALE = ("bad_oauth_state", "invalid_request")


class Fakes:
    """All providers by the names that the service uses. `google`, `github` and `apple` are trusted to link,
    as by default.
    """

    TRUSTED = ("google", "github", "apple")

    def __init__(self) -> None:
        self.acme, self.google = FakeProvider("acme"), FakeProvider("google")
        self.github, self.apple = GitHub("github"), Apple()
        self.azure, self.twitter = Azure("azure"), Twitter("twitter")
        self.all: tuple[FakeProvider, ...] = tuple(vars(self).values())

    def settings(self) -> dict[str, str]:
        trusted = {f"AUTH_PROVIDER_{name.upper()}_LINK_BY_EMAIL": "true" for name in self.TRUSTED}
        return trusted | {name: value for provider in self.all for name, value in provider.settings().items()}


class Service:
    """The service in this process, with browsers and applications as clients."""

    def __init__(self, app: Any, origin: str = SITE) -> None:
        self.app = app
        self.origin = origin
        self.client: Any = app.test_client()
        self.parts = app.extensions[EXTENSION]

    def browser(self, **options: Any) -> UserAgent:
        """Return a new browser without cookies. Each has its own client, so that threads may have one each."""
        return UserAgent({self.origin: self.app.test_client(use_cookies=False)}, **options)

    def twins(self, browser: UserAgent, count: int) -> list[UserAgent]:
        """Return browsers with the same cookies, to do several things at once."""
        twins = [self.browser() for _ in range(count)]
        for twin in twins:
            twin.cookies = list(browser.cookies)
        return twins

    def authorize(self, provider: str, **query: str) -> str:
        return f"{self.origin}/authorize?{urlencode({'provider': provider, **query})}"

    def leave(self, browser: UserAgent, provider: str, **query: str) -> dict[str, str]:
        """Begin a sign-in and stop before the provider; return the authorization request."""
        page = browser.visit(
            self.authorize(provider, **query), stop=lambda url: not url.startswith(self.origin)
        )
        return single(urlsplit(page.url).query)

    def return_url(self, browser: UserAgent, provider: str, **query: str) -> str:
        """Begin a sign-in, agree, and stop before the callback; return its URL with the code and the state."""
        page = browser.visit(self.authorize(provider, **query), stop=self.is_callback)
        assert self.is_callback(page.url), page.trail
        return page.url

    def sign_in(self, provider: str, browser: UserAgent | None = None, **query: str) -> Page:
        """Complete a sign-in, in a new or a given browser, and return the last page."""
        return (browser or self.browser()).visit(self.authorize(provider, **query))

    def is_callback(self, url: str) -> bool:
        return re.match(rf"{self.origin}(/providers/[\w-]+)?/callback\b", url) is not None

    def callback(self, provider: str) -> str:
        """Return the redirect URI of a generic provider, as all are here."""
        return f"{self.origin}/providers/{provider}/callback"

    def session(self, page: Page, target: str = SITE) -> Session:
        """Return the session that a sign-in started."""
        tokens = fragment(page, target)
        expected = token_response({})
        del expected["user"]
        assert tokens == expected | {"expires_in": "3600"}, tokens
        return Session(self.client, tokens["access_token"], tokens["refresh_token"], {})

    def signed_in(self, provider: str, browser: UserAgent | None = None, **query: str) -> Session:
        """Sign in, and return the session; the user must exist already."""
        session = self.session(self.sign_in(provider, browser, **query), query.get("redirect_to", SITE))
        assert session.get("/user").status_code == 200
        return session

    def user(self, provider: str, **query: str) -> dict[str, Any]:
        """Sign in, with Apple by pressing the button of its page too, and return the user."""
        browser = self.browser()
        page = self.sign_in(provider, browser, **query)
        session = self.session(browser.submit() if provider == "apple" else page)
        return session.get("/user").json

    def age(self, provider: str, seconds: float) -> None:
        """Age the cached metadata and keys of providers."""
        id_tokens = self.parts.providers[provider]._id_tokens
        id_tokens._cache = {url: (value, end - seconds) for url, (value, end) in id_tokens._cache.items()}
        id_tokens._keys_asked_at -= seconds


def fragment(page: Page, target: str = SITE) -> dict[str, str]:
    """Return the parameters in the fragment of a redirect to a target."""
    url, _, parameters = page.url.partition("#")
    assert url == target, page.url
    return single(parameters)


def query(page: Page, target: str = SITE) -> dict[str, str]:
    """Return the parameters in the query of a redirect to a target, which must have no fragment."""
    url, _, parameters = page.url.partition("?")
    assert url == target, page.url
    assert "#" not in parameters
    return single(parameters)


def assert_failed(
    page: Page,
    error_code: str,
    error: str = "access_denied",
    target: str = SITE,
    *,
    has_challenge: bool = False,
) -> None:
    """Assert that the browser was redirected with only an error: in the fragment, with a challenge in the query too."""
    url, _, in_fragment = page.url.partition("#")
    url, _, in_query = url.partition("?")
    members = {"error": error, "error_code": error_code, "error_description": A_SENTENCE}
    assert (url, single(in_fragment)) == (target, members), page.url
    assert (single(in_query) if has_challenge else in_query) == (members if has_challenge else ""), page.url


def assert_turned_back(page: Page) -> None:
    """Assert that the browser was redirected to the site with an error, before it reached the provider."""
    assert_failed(page, "bad_oauth_callback", "temporarily_unavailable")


def profile_metadata(*, name: str = "", picture: str = "", handle: str = "") -> dict[str, Any]:
    """Return the members of metadata for what a provider tells of a user, by the names that clients read."""
    members = dict.fromkeys(("name", "full_name"), name) | dict.fromkeys(("avatar_url", "picture"), picture)
    members |= dict.fromkeys(("user_name", "preferred_username"), handle)
    return {member: value for member, value in members.items() if value}


def external(
    provider: str, subject: str, email: str | None = None, verified: bool = False, **data: Any
) -> dict[str, Any]:
    """Return the expected identity of a provider."""
    data_of_identity = {"sub": subject, "email": email, "email_verified": verified} | data
    return identity(provider, "", identity_data=data_of_identity, last_sign_in_at=A_TIMESTAMP)


def new_user(
    provider: str, subject: str, email: str | None, verified: bool = True, **data: Any
) -> dict[str, Any]:
    """Return the expected user object after a first sign-in by a provider."""
    has_email = email is not None and verified
    identities = [external(provider, subject, email, has_email, **data)]
    if has_email:
        identities.append(identity("email", email or "", last_sign_in_at=None))
    providers = [provider, "email"] if has_email else [provider]
    confirmed = (
        {"email_confirmed_at": A_TIMESTAMP, "confirmed_at": A_TIMESTAMP}
        if has_email
        else {"email_confirmed_at": None, "confirmed_at": None}
    )
    changes = {
        "email": email if has_email else None,
        "identities": identities,
        "app_metadata": {"provider": provider, "providers": providers},
        "user_metadata": data,
        "last_sign_in_at": A_TIMESTAMP,
    }
    return user("") | confirmed | changes


def identities_of(session: Session) -> dict[str, str]:
    """Return the ids of a user's identities, by provider."""
    return {each["provider"]: each["id"] for each in session.get("/user").json["identities"]}


def begin_linking(service: Service, session: Session, provider: str, **query: str) -> str:
    """Begin a linking, and return the URL of its confirmation page."""
    response = session.on(service.client).get(
        "/user/identities/authorize", query_string={"provider": provider, **query}
    )
    assert response.status_code == 200, response.text
    assert set(response.json) == {"url"}
    return response.json["url"]


def link(
    service: Service, session: Session, provider: str, browser: UserAgent | None = None, **query: str
) -> Page:
    """Link an identity: press the button of the page, and agree at the provider."""
    browser = browser or service.browser()
    browser.visit(begin_linking(service, session, provider, **query))
    return browser.submit()
