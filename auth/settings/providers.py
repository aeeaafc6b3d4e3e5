"""`AUTH_PROVIDER_<NAME>_…`: the providers that a deployment configures."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from environs import Env
from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from marshmallow import ValidationError
from marshmallow.validate import Length

from auth.net.networks import is_loopback
from auth.settings.presets import PRESETS

PROVIDER_PREFIX = "AUTH_PROVIDER_"
SUFFIXES = (
    "CLIENT_ID", "CLIENT_SECRET", "ISSUER", "AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL", "EMAILS_URL", "SCOPES",
    "LINK_BY_EMAIL", "TEAM_ID", "KEY_ID", "PRIVATE_KEY",
)  # fmt: skip
_NAME = re.compile(rf"{PROVIDER_PREFIX}([A-Z0-9]+(?:_[A-Z0-9]+)*?)_({'|'.join(SUFFIXES)})")


@dataclass(frozen=True, repr=False)
class ProviderSettings:
    """The settings of one provider; empty ones are the preset's. No repr: it would show secrets."""

    client_ids: tuple[str, ...]
    client_secret: str
    issuer: str
    authorize_url: str
    token_url: str
    userinfo_url: str
    emails_url: str
    scopes: str
    link_by_email: bool | None
    team_id: str
    key_id: str
    private_key: str


def read_providers(env: Env, environment: Mapping[str, str | None]) -> dict[str, ProviderSettings]:
    """Read every provider that the environment names; `env` collects the errors."""
    names = set()
    for variable in sorted(environment):
        if not variable.startswith(PROVIDER_PREFIX):
            continue
        match = _NAME.fullmatch(variable)
        if match:
            names.add(match[1])
        else:
            env.str(variable, validate=_refuse_unknown)
    return {name.lower(): _read_provider(env, name) for name in sorted(names)}


def _read_provider(env: Env, name: str) -> ProviderSettings:
    prefix = f"{PROVIDER_PREFIX}{name}_"
    addresses = ("ISSUER", "AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL", "EMAILS_URL")
    urls = {suffix.lower(): env.str(prefix + suffix, "", validate=_url) or "" for suffix in addresses}
    if name.lower() in ("email", "phone"):
        env.str(f"{prefix}CLIENT_ID", validate=_refuse_name)
    is_known = (
        name.lower() in PRESETS
        or urls["issuer"]
        or (urls["authorize_url"] and urls["token_url"] and urls["userinfo_url"])
    )
    client_ids: list[str] = (
        env.list(f"{prefix}CLIENT_ID", validate=_needs_an_id if is_known else _needs_an_issuer) or []
    )
    signing = [f"{prefix}{suffix}" for suffix in ("TEAM_ID", "KEY_ID", "PRIVATE_KEY")]
    is_signing = any(env.str(variable, "") for variable in signing)
    for variable in signing if is_signing else ():
        env.str(variable, validate=Length(min=1, error=f"Set all of {', '.join(signing)}, or none."))
    return ProviderSettings(
        client_ids=tuple(client_ids),
        client_secret=env.str(f"{prefix}CLIENT_SECRET", "") or "",
        scopes=env.str(f"{prefix}SCOPES", "") or "",
        link_by_email=env.bool(f"{prefix}LINK_BY_EMAIL", None),
        team_id=env.str(f"{prefix}TEAM_ID", "") or "",
        key_id=env.str(f"{prefix}KEY_ID", "") or "",
        private_key=(env.str(f"{prefix}PRIVATE_KEY", "", validate=_ec_key) or "").replace("\\n", "\n"),
        **urls,
    )


def _refuse_name(_value: str) -> None:
    raise ValidationError("A provider can't be called email or phone: these are the identities of addresses.")


def _refuse_unknown(_value: str) -> None:
    raise ValidationError(f"Must end in one of {', '.join(SUFFIXES)}.")


def _needs_an_id(client_ids: list[str]) -> None:
    if not client_ids or not all(client_ids):
        raise ValidationError("Must be the client id that the provider issued.")


def _needs_an_issuer(_client_ids: list[str]) -> None:
    raise ValidationError(
        "This provider is not built in: set its _ISSUER, or its _AUTHORIZE_URL, _TOKEN_URL and _USERINFO_URL."
    )


def _ec_key(value: str) -> None:
    try:
        if value:
            ECKey.import_key(value.replace("\\n", "\n"))
    except (JoseError, ValueError, TypeError):
        problem = "Must be a private EC key in PEM form; line ends may be written as \\n."
        raise ValidationError(problem) from None


def _url(value: str) -> None:
    problem = ValidationError("Must be an https URL without user and fragment; http only to this machine.")
    try:
        parts = urlsplit(value)
        _port = parts.port
    except ValueError:
        raise problem from None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if value and (not is_safe or not parts.hostname or parts.fragment or parts.username):
        raise problem
