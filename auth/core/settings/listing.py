"""The settings as the console shows them: value and origin, without secrets."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from auth.core.settings import Settings, name_of, state
from auth.core.settings.providers import PROVIDER_PREFIX
from auth.core.settings.values import kinds

DEFAULT = "default"


class Listed(NamedTuple):
    name: str
    # Empty if the setting is unset.
    value: str
    # `environment`, `default`, the path of a file, or `embedded` for the Postgres that the service starts.
    origin: str
    # Whether the console hides the value, or a part of it.
    is_secret: bool


def listed(settings: Settings) -> Iterator[Listed]:
    """Yield each setting in the order of docs/settings.md, then those of the providers."""
    for field in dataclasses.fields(Settings):
        if field.metadata:
            name = name_of(field.name)
            file = settings.key_files.get(field.name)
            origin = str(file) if file else settings.origins.get(name, DEFAULT)
            if field.name == "database_url" and state.is_embedded(settings.state_dir, settings.database_url):
                origin = "embedded"
            yield _listed(name, field, getattr(settings, field.name), origin)
    for provider, values in settings.providers.items():
        for field in dataclasses.fields(values):
            # The field of AUTH_PROVIDER_<NAME>_CLIENT_ID is a tuple of several.
            name = f"{PROVIDER_PREFIX}{provider}_{field.name}".upper().replace("_CLIENT_IDS", "_CLIENT_ID")
            if name in settings.origins:
                yield _listed(name, field, getattr(values, field.name), settings.origins[name])


def _listed(name: str, field: dataclasses.Field, value: object, origin: str) -> Listed:
    return Listed(name, kinds.shown(field, value), origin, field.metadata.get("is_secret", False))
