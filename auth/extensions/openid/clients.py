"""OAuth clients: applications that sign users in here, with the metadata of RFC 7591 and ours."""

import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from auth.core import constants
from auth.core.tokens import one_time
from auth.extensions.openid import audience, uris
from auth.extensions.openid.client_object import as_object
from auth.flows import ends, organizations
from auth.flows.admin import targets
from auth.web import audit, fields
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from auth.web.input import Shape, check
from auth.web.schemas import AdminInput, bounds
from sql import acts, queries
from sql.acts import Act

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
GRANT_TYPES = ("authorization_code", "refresh_token", "client_credentials", DEVICE_CODE)
PUBLIC = "none"
AUTH_METHODS = (PUBLIC, "client_secret_basic", "client_secret_post")
ALGORITHMS = ("RS256", "ES256")
MOST_URIS = 10
OVERLAP = timedelta(seconds=constants.SECRET_OVERLAP)
_BATCH = 500  # the most rows of users that one statement locks
_OF_USERS = ("authorization_code", "refresh_token")
# A change that excludes some users, or all users of a resource, ends their sessions.
_ADMITTING = ("allowed_roles", "is_blocked", "organization_id", "resources")
# The members that decide which codes a client gets without asking the user: codes of users who have allowed
# it or, with `skip_consent`, of all users.
_OF_GRANTS = ("redirect_uris", "resources")
_UNASKED = (*_OF_GRANTS, "scopes", "allowed_roles", "organization_id")
# The members that decide which tokens a client gets for itself.
_OF_ITSELF = ("resources", "scopes")
# A change to these values only takes from a client.
_DISTRUST = {"is_blocked": True, "skip_consent": False, "introspects_sessions": False}
# Members that a dynamic client may set.
_DYNAMIC = {
    "client_name", "client_uri", "logo_uri", "policy_uri", "tos_uri", "redirect_uris",
    "post_logout_redirect_uris", "grant_types", "client_type", "token_endpoint_auth_method",
    "id_token_signed_response_alg",
}  # fmt: skip


class ClientChange(AdminInput):
    """Load it by `_CLIENT_CHANGE`. Otherwise absent members get the values of a new client."""

    name = fields.ClientName(data_key="client_name", load_default="")
    uri = fields.Text(data_key="client_uri", load_default="")
    logo_uri = fields.Text(load_default="")
    policy_uri = fields.Text(load_default="")
    tos_uri = fields.Text(load_default="")
    redirect_uris = fields.Texts(load_default=list)
    post_logout_redirect_uris = fields.Texts(load_default=list)
    grant_types = fields.Choices(*GRANT_TYPES, load_default=lambda: list(_OF_USERS))
    token_endpoint_auth_method = fields.Choice(*AUTH_METHODS)
    scopes = fields.Scopes(load_default=list)
    resources = fields.Texts(load_default=list)
    allowed_roles = fields.ShortTexts(load_default=list)
    require_pkce = fields.Flag(load_default=True)
    skip_consent = fields.Flag(load_default=False)
    introspects_sessions = fields.Flag(load_default=False)
    is_blocked = fields.Flag(load_default=False)
    token_lifetime = fields.TokenLifetime(load_default=None)
    id_token_signed_response_alg = fields.Choice(*ALGORITHMS, load_default="RS256")
    backchannel_logout_uri = fields.Text(load_default="")
    # The id or the short name of an organization.
    organization_id = fields.Text(load_default=None, allow_none=True)


_CLIENT_CHANGE = ClientChange(partial=True)


class NewClient(ClientChange):
    client_type = fields.Choice("public", "confidential")
    # Clients of other servers send these. They are ignored.
    response_types = fields.Texts()
    scope = fields.Text()


class ClientColumns(NamedTuple):
    """The columns of a client that the members of its object set."""

    id: str
    name: str
    uri: str
    logo_uri: str
    policy_uri: str
    tos_uri: str
    secret_hash: bytes | memoryview | None
    token_endpoint_auth_method: str
    accepts_either_method: bool
    is_dynamic: bool
    redirect_uris: list[str]
    post_logout_redirect_uris: list[str]
    grant_types: list[str]
    scopes: list[str]
    resources: list[str]
    allowed_roles: list[str]
    require_pkce: bool
    skip_consent: bool
    introspects_sessions: bool
    token_lifetime: int | None
    id_token_signed_response_alg: str
    backchannel_logout_uri: str
    is_blocked: bool
    organization_id: str | None

    @classmethod
    def of(cls, columns: Mapping[str, object]) -> "ClientColumns":
        """Return the client with these columns. Ignores others."""
        return cls._make(columns[name] for name in cls._fields)


def create(asked: Asked, body: Mapping[str, object]) -> dict[str, Any]:
    """Create a client, and return its object, with its secret if it has one."""
    values = _load(asked, NewClient(), body)
    _check_trust(asked, values)
    client, secret = _new(asked, values | {"is_dynamic": False})
    with targets.begin(asked) as act:
        return _insert(act, client, secret)


def register(asked: Asked, body: Mapping[str, object]) -> dict[str, Any]:
    """Create a client that registers itself, without an administrator. Returns its object like `create`."""
    client, secret = _new(asked, load_registration(asked, body))
    with acts.begin(asked.db) as act:
        client_object = _insert(act, client, secret)
        queries.delete_surplus_clients(act)
        return client_object


def _new(asked: Asked, values: Mapping[str, object]) -> tuple[ClientColumns, str | None]:
    client_type, registered = values.get("client_type"), values.get("token_endpoint_auth_method")
    method = registered or (PUBLIC if client_type == "public" else "client_secret_basic")
    if client_type and (method == PUBLIC) != (client_type == "public"):
        raise _refusal(f"token_endpoint_auth_method {method} does not fit client_type {client_type}")
    secret = None if method == PUBLIC else one_time.new_token()
    own = {
        "id": str(uuid.uuid4()),
        "token_endpoint_auth_method": method,
        "accepts_either_method": registered is None and method != PUBLIC,
        "secret_hash": secret and one_time.hash_token(secret),
    }
    client = ClientColumns.of({**values, **own})
    check_members(asked, client)
    asked.parts.openid_keys.make_first()
    return client, secret


def _insert(act: Act, client: ClientColumns, secret: str | None) -> dict[str, Any]:
    audit.record(act, None, None, ["client_created"], [], client_id=client.id, client=client.name)
    return _write(act, client, secret)


def get(asked: Asked, client_id: str) -> dict[str, Any]:
    return as_object(found(queries.select_client(asked.db, id=_known(client_id)), "oauth_client_not_found"))


def listed(asked: Asked) -> list[dict[str, Any]]:
    """Return the clients' objects, newest first."""
    return [as_object(row) for row in queries.list_clients(asked.db, page_size=None, page_offset=0)]


def page(asked: Asked, query: Mapping[str, int]) -> tuple[list[dict[str, Any]], int]:
    """Return one page of the clients' objects, newest first, and the number of all clients.

    `query` has `page` and `per_page`, from 1.
    """
    rows = queries.list_clients(asked.db, **bounds(query))
    return [as_object(row) for row in rows], queries.count_clients(asked.db).total


def update(asked: Asked, client_id: str, body: Mapping[str, object]) -> dict[str, Any]:
    """Change a client, and return its object. Absent members stay."""
    values = _load(asked, _CLIENT_CHANGE, body)
    if not values:
        raise _refusal("No fields provided for update")
    while (changed := _change(asked, client_id, values)) is None:
        _end_lost_access(asked, client_id)
    if {*_ADMITTING} & values.keys():
        _end_lost_access(asked, client_id)
    return changed


def _change(asked: Asked, client_id: str, values: Mapping[str, object]) -> dict[str, Any] | None:
    """Change a client. Return None if sessions that an earlier change must end would come back."""
    with targets.begin(asked) as act:
        before = _lock(act, client_id)
        client = ClientColumns.of({**before._asdict(), **values})
        if "token_endpoint_auth_method" in values:
            client = client._replace(accepts_either_method=False)
        admits_others = any(getattr(client, name) != getattr(before, name) for name in _ADMITTING)
        if admits_others and queries.has_lost_access(act, client_id=before.id).has_lost_access:
            return None
        if (client.token_endpoint_auth_method == PUBLIC) != (before.secret_hash is None):
            problem = "token_endpoint_auth_method does not fit the client's type, which can't change"
            raise _refusal(problem, "token_endpoint_auth_method")
        # Settings may no longer allow its other members. That must not prevent a block, or less trust.
        if not values.items() <= _DISTRUST.items():
            check_members(asked, client)
        _check_trust(asked, client._asdict(), before)
        _check_unasked(asked, act, client, before)
        kept_uris = [] if client.is_blocked else client.redirect_uris
        if kept_uris != before.redirect_uris:
            queries.delete_requests_to_other_uris(act, client_id=before.id, redirect_uris=kept_uris)
        details = {"client_id": before.id, "client": client.name}
        audit.record(act, None, None, ["client_changed"], [], **details)
        return _write(act, client)


def _check_trust(
    asked: Asked, client: Mapping[str, Any], before: "queries.SelectClient | None" = None
) -> None:
    """Refuse an administrative key that trusts a client more."""
    if not asked.is_key:
        return
    for name in ("skip_consent", "introspects_sessions"):
        if client[name] and not (before and getattr(before, name)):
            raise ApiError("insufficient_permissions", f"{name}: must be false")
    acts, acted = "client_credentials" in client["grant_types"], bool(before and _acts_alone(before))
    if acts and not acted:
        raise _must_not_act()
    if acted and not acts:
        # Without the grant, a key could replace the secret, and wait until an operator returns the grant.
        raise ApiError("insufficient_permissions", "grant_types: must keep client_credentials")
    if before and before.is_blocked and not client["is_blocked"]:
        raise ApiError("insufficient_permissions", "is_blocked: must be as before")


def _acts_alone(client: "queries.SelectClient") -> bool:
    return "client_credentials" in client.grant_types


def _must_not_act() -> ApiError:
    return ApiError("insufficient_permissions", "grant_types: must not have client_credentials")


def _check_unasked(asked: Asked, act: Act, client: ClientColumns, before: "queries.SelectClient") -> None:
    """Refuse an administrative key that widens a client which need not ask users again.

    A client with `skip_consent` asks nobody. Users who have allowed another one trust its name when a new
    redirect URI asks again, and are not asked again for a new resource. A client that acts on its own asks
    nobody either: a holder of its secret, who has the key too, would call any API by it.
    """
    if not asked.is_key:
        return
    has_grants = queries.has_grants(act, client_id=before.id).has_grants
    of_users = _UNASKED if client.skip_consent else _OF_GRANTS if has_grants else ()
    for name in dict.fromkeys([*of_users, *(_OF_ITSELF if _acts_alone(before) else ())]):
        new, old = getattr(client, name), getattr(before, name)
        is_less = name in _OF_GRANTS and {*new} <= {*old}
        if new != old and not is_less:
            raise ApiError("insufficient_permissions", f"{name}: must be as before")


def _end_lost_access(asked: Asked, client_id: str) -> None:
    """End the sessions of users who may no longer use a client. It already refuses them."""
    place: dict[str, Any] = {"after": "-infinity", "after_id": client_id}
    lost = ends.of("access_lost", has_session=True)
    while row := queries.end_lost_access(asked.db, client_id=client_id, size=_BATCH, **place, **lost):
        place = row._asdict()


def delete(asked: Asked, client_id: str) -> None:
    """Delete a client with its grants, requests and sessions."""
    id = _known(client_id)
    with targets.begin(asked) as act:
        act.lock_client(id)
        act.lock_users(row.user_id for row in queries.list_users_of_client(act, client_id=id))
        deleted = found(queries.delete_client(act, id=id), "oauth_client_not_found")
        audit.record(act, None, None, ["client_deleted"], [], client_id=deleted.id, client=deleted.name)


def replace_secret(asked: Asked, client_id: str, overlap: timedelta | None = None) -> dict[str, Any]:
    """Replace a client's secret, and return its object with the new one.

    The old secret is accepted for the time of `overlap`; one from before ends in any case.
    """
    with targets.begin(asked) as act:
        before = _lock(act, client_id)
        if before.secret_hash is None:
            raise _refusal("Cannot regenerate secret for public client")
        if asked.is_key and before.introspects_sessions:
            # The holder of the secret could introspect tokens, which needs a scope of its own.
            raise ApiError("insufficient_permissions", "introspects_sessions: must be false")
        if asked.is_key and _acts_alone(before):
            # The holder of the secret could call APIs as the client.
            raise _must_not_act()
        secret = one_time.new_token()
        queries.replace_client_secret(
            act,
            id=before.id,
            secret_hash=one_time.hash_token(secret),
            previous_secret_hash=before.secret_hash if overlap else None,
            previous_secret_expires_at=before.now + overlap if overlap else None,
        )
        details = {"client_id": before.id, "client": before.name, "overlap": bool(overlap) or None}
        audit.record(act, None, None, ["client_secret_replaced"], [], **details)
        return as_object(found(queries.select_client(act, id=before.id), "oauth_client_not_found"), secret)


def end_previous_secret(asked: Asked, client_id: str) -> None:
    """End the previous secret if it is still accepted."""
    with targets.begin(asked) as act:
        client = _lock(act, client_id)
        if client.previous_secret_expires_at is not None:
            queries.end_previous_client_secret(act, id=client.id)
            details = {"client_id": client.id, "client": client.name}
            audit.record(act, None, None, ["client_secret_ended"], [], **details)


def _load(asked: Asked, shape: Shape, body: Mapping[str, object]) -> dict[str, Any]:
    try:
        values: dict[str, Any] = check(shape, body, in_dialect=asked.in_dialect)
    except ApiError as error:
        # The clients of the dialect show `msg` alone.
        raise _refusal(error.details or error.msg) from None
    # Checked here, because resolving a name may take long.
    if uri := values.get("backchannel_logout_uri"):
        _check_uri("backchannel_logout_uri", uri, partial(uris.check_backchannel, asked.settings))
    if "organization_id" in values:
        name, row = values["organization_id"], None
        if name and organizations.is_on(asked.settings):
            row = queries.select_organization(asked.db, **organizations.named(name))
        if name and row is None:
            raise _refusal("organization_id: there is no such organization", "organization_id")
        values["organization_id"] = row and row.id
    return values


def load_registration(asked: Asked, body: Mapping[str, object]) -> dict[str, Any]:
    """Return the columns that a dynamic client has chosen.

    It cannot set how far it is trusted. RFC 7591, section 2: unknown members are ignored, and metadata may be
    replaced.
    """
    chosen = {name: value for name, value in body.items() if name in _DYNAMIC}
    if isinstance(grant_types := chosen.get("grant_types"), list):
        chosen["grant_types"] = [name for name in grant_types if name in _OF_USERS]
        if not chosen["grant_types"] and "client_credentials" in grant_types:
            raise _refusal("grant_types: authorization_code is missing, which a registration needs")
    return _load(asked, NewClient(), chosen) | {"is_dynamic": True}


def _refusal(problem: str, field: str = "", rule: str = "", *, uri: str = "", why: str = "") -> ApiError:
    error = ApiError("client.validation_failed", problem=problem)
    # The console shows its own sentence about the field.
    error.values |= {"field": field, "rule": rule or field, "uri": uri, "why": why, "most": str(MOST_URIS)}
    return error


def _known(client_id: str) -> str:
    if not is_uuid(client_id):
        raise _refusal("client_id: must be a UUID")
    return client_id.lower()


def _lock(act: Act, client_id: str) -> "queries.SelectClient":
    id = _known(client_id)
    act.lock_client(id)
    return found(act.read(queries.select_client, id=id), "oauth_client_not_found")


def _write(act: Act, client: ClientColumns, secret: str | None = None) -> dict[str, Any]:
    queries.write_client(act, **client._asdict())
    return as_object(found(queries.select_client(act, id=client.id), "oauth_client_not_found"), secret)


def check_members(asked: Asked, client: ClientColumns) -> None:
    """Check that the members of a client fit together."""
    _check_uris(asked, client)
    is_dynamic, grants = client.is_dynamic, client.grant_types
    is_limited = is_dynamic or client.token_endpoint_auth_method == PUBLIC
    is_native = any(map(uris.is_native, client.redirect_uris))
    algorithms = asked.parts.client_tokens.id_token_algorithms()
    # The field, the rule, whether the client breaks it, and the rule as a sentence.
    rules = [
        ("grant_types", "device_grant", is_dynamic and DEVICE_CODE in grants,
         f"{DEVICE_CODE} is for clients that an administrator created"),
        ("grant_types", "grant_types", is_limited and "client_credentials" in grants,
         "client_credentials is for confidential clients that an administrator created"),
        ("require_pkce", "require_pkce", is_limited and not client.require_pkce,
         "must be true for public and for dynamic clients"),
        ("introspects_sessions", "introspects_sessions", is_limited and client.introspects_sessions,
         "must be false for public and for dynamic clients"),
        ("organization_id", "organization_id", is_dynamic and client.organization_id is not None,
         "must be null for dynamic clients"),
        ("skip_consent", "skip_consent", client.skip_consent and (is_dynamic or is_native),
         "must be false for dynamic clients, and with loopback or custom-scheme redirect_uris"),
        ("id_token_signed_response_alg", "id_token_signed_response_alg",
         client.id_token_signed_response_alg not in algorithms,
         "must be RS256, because no ES256 key is in use"),
    ]  # fmt: skip
    for field, rule, is_broken, sentence in rules:
        if is_broken:
            raise _refusal(f"{field}: {sentence}", field, rule)


def _check_uris(asked: Asked, client: ClientColumns) -> None:
    grants = {*client.grant_types}
    has_browser = "authorization_code" in grants or grants.isdisjoint({"client_credentials", DEVICE_CODE})
    if has_browser and not client.redirect_uris:
        raise _refusal("redirect_uris is required", "redirect_uris")
    check_redirect = uris.check_redirect
    if client.is_dynamic:
        check_redirect = partial(uris.check_open_redirect, asked.settings)
    for name, listed, check_uri in (
        ("redirect_uris", client.redirect_uris, check_redirect),
        ("post_logout_redirect_uris", client.post_logout_redirect_uris, check_redirect),
        ("resources", client.resources, partial(audience.check, asked.parts)),
    ):
        if len(listed) > MOST_URIS:
            problem = f"{name} cannot exceed {MOST_URIS} items"
            raise _refusal(problem, name, "too_many_uris")
        for uri in listed:
            _check_uri(name, uri, check_uri)
    for name, uri in (
        ("client_uri", client.uri),
        ("logo_uri", client.logo_uri),
        ("policy_uri", client.policy_uri),
        ("tos_uri", client.tos_uri),
    ):
        if uri:
            _check_uri(name, uri, uris.check_web)


def _check_uri(name: str, uri: str, check_uri: Callable[[str], None]) -> None:
    try:
        check_uri(uri)
    except uris.InvalidUri as error:
        problem = f"invalid {name.removesuffix('s')} '{uri}': {error}"
        raise _refusal(problem, name, "uri", uri=uri, why=str(error)) from None
