"""Fixtures of the OAuth tests, which load this module as a plugin."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from auth.core.providers.client import Provider
from auth.web.context import EXTENSION
from tests.support.apps import new_app
from tests.support.fake_provider import FakeProvider, GitHub, Twitter
from tests.support.oauth import ALLOW_LIST, SITE, Fakes, Service


@pytest.fixture(scope="session")
def running_fakes() -> Iterator[Fakes]:
    fakes = Fakes()
    with ExitStack() as stack:
        for provider in fakes.all:
            stack.enter_context(provider)
        yield fakes


@pytest.fixture
def fakes(running_fakes: Fakes) -> Fakes:
    """The providers in their initial state."""
    for provider in running_fakes.all:
        provider.reset()
    return running_fakes


@pytest.fixture
def acme(fakes: Fakes) -> FakeProvider:
    """A generic OpenID provider, which is not trusted to link."""
    return fakes.acme


@pytest.fixture
def google(fakes: Fakes) -> FakeProvider:
    """An OpenID provider that is trusted to link."""
    return fakes.google


@pytest.fixture
def github(fakes: Fakes) -> GitHub:
    return fakes.github


@pytest.fixture
def twitter(fakes: Fakes) -> Twitter:
    return fakes.twitter


@pytest.fixture(scope="session")
def app_with_providers(environment: dict[str, str], running_fakes: Fakes) -> Iterator[Any]:
    extensions = dict.fromkeys(("AUTH_API_KEYS", "AUTH_SSO"), "true") | {"AUTH_ORGANIZATIONS": "users"}
    app = new_app({**extensions, **environment, **running_fakes.settings(), **ALLOW_LIST})
    yield app
    app.extensions[EXTENSION].db.close()


@pytest.fixture
def forgetful() -> Iterator[Callable[[Any], None]]:
    """Return a function that makes an application forget its providers' documents, which it may have read in another
    test."""
    with pytest.MonkeyPatch.context() as patch:

        def forget(app: Any) -> None:
            parts = app.extensions[EXTENSION]
            chosen = parts.settings.providers.items()
            new = {name: Provider(name, provider, parts.settings.base_url) for name, provider in chosen}
            patch.setattr(parts, "providers", new)

        yield forget


@pytest.fixture
def service(app_with_providers: Any, fakes: Fakes, database: Any, app: Any, forgetful: Callable) -> Service:
    """The service with all providers and default settings, and the secrets and database of `app`."""
    forgetful(app_with_providers)
    return Service(app_with_providers)


@pytest.fixture
def make_service(make_app: Callable, fakes: Fakes, forgetful: Callable) -> Callable[..., Service]:
    """Make a service with other settings. None unsets a setting."""

    def make(**changes: str | None) -> Service:
        settings = fakes.settings() | ALLOW_LIST | changes
        app = make_app(**{name: value for name, value in settings.items() if value is not None})
        forgetful(app)
        return Service(app, changes.get("AUTH_BASE_URL") or SITE)

    return make
