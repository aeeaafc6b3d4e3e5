"""Claims that settings add to tokens. The value of each is a path into the data of the user.

Users write `user_metadata` themselves, so no path may use it, except for the name and picture of an ID token.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST, MAX_BYTES = 20, 4096

Paths = Mapping[str, str]

_NAME = re.compile(r"[!-~]{1,100}")
_USER_MEMBERS = ("id", "email", "phone", "is_anonymous", "created_at")
_SESSION_MEMBERS = ("aal", "amr", "provider")
_USER_METADATA = "user_metadata"
_LONGEST_TEXT = 2000  # a URL
# RFC 7519, RFC 7800, RFC 8693, RFC 9068, OpenID Connect Core, OpenID Connect Logout.
_STANDARD_CLAIMS = {
    "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "cnf", "act", "may_act", "scope", "client_id", "azp",
    "nonce", "auth_time", "acr", "amr", "at_hash", "c_hash", "s_hash", "sid", "events",
    "_claim_names", "_claim_sources", "email", "email_verified", "phone_number", "phone_number_verified",
}  # fmt: skip
_PERSON_CLAIMS = {
    "name", "given_name", "family_name", "middle_name", "nickname", "preferred_username", "profile",
    "picture", "website", "gender", "birthdate", "zoneinfo", "locale", "address", "updated_at",
}  # fmt: skip
_OUR_CLAIMS = {
    "phone", "role", "app_metadata", "user_metadata", "is_anonymous", "session_id", "aal", "next_aal",
    "api_key_id",
}  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """The claims and paths allowed for a kind of token. `written_by_users` may come from `user_metadata`."""

    reserved: frozenset[str]
    has_session: bool
    written_by_users: tuple[str, ...] = ()


ACCESS_TOKEN_RULES = Rules(frozenset(_STANDARD_CLAIMS | _PERSON_CLAIMS | _OUR_CLAIMS), has_session=True)
ID_TOKEN_RULES = Rules(
    # The claims of scopes, also with the names of userinfo.
    frozenset(_STANDARD_CLAIMS | _OUR_CLAIMS | {"phone_verified", "groups", "roles", "updated_at"}),
    has_session=False,
    written_by_users=("name", "picture"),
)


def read(text: str, rules: Rules) -> Paths:
    """Return the paths of a setting by their claims. Raises `ValueError` with all problems."""
    if not text.strip():
        return {}
    try:
        # Read objects as tuples of pairs, which keep repeated names.
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, tuple):
        raise ValueError('must be a JSON object such as {"plan": "app_metadata.plan"}')
    if len(pairs) > MOST:
        raise ValueError(f"must have at most {MOST} claims")
    problems = dict.fromkeys(_problems(pairs, rules))
    if problems:
        raise ValueError(". ".join(problems))
    return dict(pairs)


def _problems(pairs: tuple[tuple[str, object], ...], rules: Rules) -> Iterator[str]:
    names = [name for name, _ in pairs]
    for name, path in pairs:
        if not _NAME.fullmatch(name):
            yield "Names of claims must be 1 to 100 characters of ASCII without spaces"
        # Some libraries ignore case.
        elif name.lower() in rules.reserved:
            yield f"The claim {name} is reserved. Use another name"
        elif names.count(name) > 1:
            yield f"The claim {name} comes twice. Remove one"
        elif problem := _problem(name, path, rules):
            yield f"The claim {name} {problem}"


def _problem(name: str, path: object, rules: Rules) -> str | None:
    match path.split(".") if isinstance(path, str) else None:
        case [member] if member in _USER_MEMBERS:
            return None
        case ["app_metadata", _, *_] as parts if all(parts):
            return None
        case ["session", member] if member in _SESSION_MEMBERS and rules.has_session:
            return None
        case ["user_metadata", *parts]:
            if parts and all(parts) and name in rules.written_by_users:
                return None
            return "comes from user_metadata, which users write themselves. Use app_metadata"
    session_members = _SESSION_MEMBERS if rules.has_session else ()
    paths = [*_USER_MEMBERS, *(f"session.{member}" for member in session_members)]
    return f"has an unknown path. Use {', '.join(paths)}, or one below app_metadata"


def evaluate(paths: Paths, user: Mapping[str, object], session: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the claims that have a value, or None if those that users do not write exceed `MAX_BYTES`
    together.
    """
    if not paths:
        return {}
    source = {name: user[name] for name in (*_USER_MEMBERS, "app_metadata", "user_metadata")}
    providers = (method.get("provider") for method in session.get("amr", ()))
    source["session"] = {"provider": next(filter(None, providers), None), **session}
    values = {name: _value(source, path) for name, path in paths.items()}
    claims = {name: value for name, value in values.items() if value is not None}
    # Users must not be able to push out the other claims, which may restrict them.
    bounded = {name: value for name, value in claims.items() if root(paths[name]) != _USER_METADATA}
    size = len(json.dumps(bounded, ensure_ascii=False, separators=(",", ":")).encode())
    return claims if size <= MAX_BYTES else None


def root(path: str) -> str:
    return path.partition(".")[0]


def _value(value: object, path: str) -> object:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if root(path) == _USER_METADATA and not (isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT):
        return None
    return value
