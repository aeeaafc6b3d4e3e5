"""The variables `AUTH_PROVIDER_<NAME>_…`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from environs import Env
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from auth.core import normalize
from auth.core.net.networks import is_loopback
from auth.core.settings.brand import check_logo
from auth.core.settings.presets import PRESETS
from auth.core.settings.values import kinds, texts, urls
from auth.core.settings.values.validators import Validator, flag, validator

PROVIDER_PREFIX = "AUTH_PROVIDER_"


@dataclass(frozen=True, repr=False)
class ProviderSettings:
    """The preset fills in empty fields. No repr: it would show secrets."""

    client_ids: tuple[str, ...]
    client_secret: str = field(metadata=kinds.SECRET)
    issuer: str = ""
    authorize_url: str = ""
    token_url: str = ""
    userinfo_url: str = ""
    emails_url: str = ""
    scopes: str = ""
    title: str = ""
    logo: str = ""
    link_by_email: bool | None = None
    team_id: str = ""
    key_id: str = ""
    private_key: str = field(default="", metadata=kinds.SECRET)


SUFFIXES = ["CLIENT_ID", *(each.name.upper() for each in fields(ProviderSettings)[1:])]
# The variables that are not used as they stand.
_OTHER_TEXTS = {"CLIENT_ID": texts.parts, "PRIVATE_KEY": texts.none, "LINK_BY_EMAIL": texts.none}
_NAME = re.compile(rf"{PROVIDER_PREFIX}([A-Z0-9]+(?:_[A-Z0-9]+)*?)_({'|'.join(SUFFIXES)})")


def read_providers(env: Env, environment: Mapping[str, str | None]) -> dict[str, ProviderSettings]:
    """Read every provider that the environment names, in its order; `env` collects the errors."""
    names: dict[str, None] = {}
    for variable in environment:
        if not variable.startswith(PROVIDER_PREFIX):
            continue
        match = _NAME.fullmatch(variable)
        if match:
            names[match[1]] = None
        else:
            env.str(variable, validate=_refusal(f"must end in one of {', '.join(SUFFIXES)}"))
    return {name.lower(): _read_provider(env, name) for name in names}


def kind_of(variable: str) -> Mapping[str, Any] | None:
    """Return the metadata of a provider's variable, like those that `kinds.setting` declares."""
    match = _NAME.fullmatch(variable)
    if not match:
        return None
    texts_of = _OTHER_TEXTS.get(match[2], texts.whole)
    return {"texts": texts_of, "is_lenient": match[2] == "CLIENT_SECRET"}


def _read_provider(env: Env, name: str) -> ProviderSettings:
    prefix = f"{PROVIDER_PREFIX}{name}_"
    values = {
        suffix.lower(): env.str(prefix + suffix, "", validate=validator(*checks)) or ""
        for suffix, checks in _TEXTS.items()
    }
    if name.lower() in ("email", "phone"):
        problem = "email and phone are not providers. Choose another name"
        env.str(f"{prefix}CLIENT_ID", validate=_refusal(problem))
    is_known = name.lower() in PRESETS or values["issuer"]
    if is_known or all(values[url] for url in ("authorize_url", "token_url", "userinfo_url")):
        needs = validator(_client_ids)
    else:
        needs = _refusal(
            f"names a provider that is not built in. Set {prefix}ISSUER, or {prefix}AUTHORIZE_URL,"
            f" {prefix}TOKEN_URL and {prefix}USERINFO_URL"
        )
    client_ids: list[str] = env.list(f"{prefix}CLIENT_ID", validate=needs) or []
    signing = [f"{prefix}{suffix}" for suffix in ("TEAM_ID", "KEY_ID", "PRIVATE_KEY")]
    is_signing = any(env.str(variable, "") for variable in signing)
    for variable in signing if is_signing else ():
        env.str(variable)
    values["private_key"] = values["private_key"].replace("\\n", "\n")
    link_by_email = flag(env, f"{prefix}LINK_BY_EMAIL", None)
    return ProviderSettings(client_ids=tuple(client_ids), link_by_email=link_by_email, **values)


def _refusal(problem: str) -> Callable[[object], None]:
    def refuse(_value: object) -> None:
        raise ValueError(problem)

    return validator(refuse)


def _title(value: str) -> None:
    if value and normalize.name(value, 40) is None:
        raise ValueError("must be at most 40 visible characters")


def _client_ids(client_ids: list[str]) -> None:
    if not client_ids or not all(client_ids):
        raise ValueError("must be the client id that the provider issued")


def _ec_key(value: str) -> None:
    try:
        ECKey.import_key(value.replace("\\n", "\n"))
    except (JoseError, ValueError, TypeError):
        raise ValueError(
            "must be a private EC key in PEM form, whose line ends may be written as \\n"
        ) from None


def _url(value: str) -> None:
    problem = "must be an https URL without a user or fragment, or an http URL of this machine"
    parts = urls.split_http_url(urls.http_url(value, problem), problem)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ValueError(problem)


# The check of each variable that is a text.
_TEXTS: Mapping[str, tuple[Validator, ...]] = {
    **dict.fromkeys(("ISSUER", "AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL", "EMAILS_URL"), (_url,)),
    **dict.fromkeys(("CLIENT_SECRET", "SCOPES", "TEAM_ID", "KEY_ID"), ()),
    "TITLE": (_title,),
    "LOGO": (check_logo,),
    "PRIVATE_KEY": (_ec_key,),
}
