import functools
import time
import uuid
from typing import Any

from flask import Blueprint, Response, json, jsonify

from auth.core.passwords import legacy
from auth.core.passwords.policy import check_strength
from auth.flows import admission
from auth.flows.account import removal
from auth.flows.admin import messages, users
from auth.flows.history import timeline
from auth.flows.links.targets import requested_target
from auth.flows.messages import outgoing
from auth.flows.sign_up.sign_up import create_addressed_user
from auth.web import audit, counted, counts, dialect, g, guard, schemas, takes_metadata
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import known_id, read_body, read_query
from auth.web.paging import bounds, paginated
from sql import Transaction, queries

blueprint = Blueprint("admin", __name__)

# The last row of the log and of a timeline that paging reaches. The filter `until` reaches older rows.
MOST_EVENTS = 100_000
# A larger total is cached for `_TOTAL_AGE` seconds.
_EXACT_TOTAL = 1_000
_TOTAL_AGE = 10
# The purposes of links that make a user.
_CREATING = ("signup", "invite")


@blueprint.post("/admin/users")
@takes_metadata
@guard.admin
def create_user() -> Response:
    body = read_body(schemas.NewUser())
    if "role" in body and g.actor != "service_role":
        raise ApiError("role.insufficient_permissions", "role: must be absent")
    if "password_hash" in body:
        body["password_hash"] = _stored_form(body["password_hash"])
    return JsonResponse(users.create_user(current_asked(), body))


def _stored_form(password_hash: str) -> str:
    try:
        return latchkey.passwords.stored_form(password_hash)
    except legacy.UnusableHash as error:
        raise ApiError(
            "validation_failed", str(error).replace("password_hash", "password_hash:", 1)
        ) from None


@blueprint.get("/admin/users")
@guard.admin
@dialect.translated(writes=dialect.list_of_users)
def list_users() -> Response:
    query = read_query(schemas.UsersQuery())
    prefix = query.get("q", query.get("filter", "")).strip().lower().removeprefix("@")
    filters: dict[str, Any] = {name: query.get(name) for name in ("email", "role")} | {"q": prefix or None}
    filters["is_anonymous"] = query["is_anonymous"] == "true" if "is_anonymous" in query else None
    order: dict[str, Any] = {"sort": query["sort"], "descending": query["order"] == "desc"}
    row = queries.list_users(latchkey.db, most=_EXACT_TOTAL, **order, **bounds(query), **filters)
    total = row.total
    if total == _EXACT_TOTAL:
        total = _large_total(tuple(filters.items()), int(time.monotonic() / _TOTAL_AGE))
    return paginated(row.users, total, query)


@functools.lru_cache(maxsize=64)
def _large_total(filters: tuple[tuple[str, Any], ...], _period: int) -> int:
    nobody: dict[str, Any] = {"sort": "created_at", "descending": True, "page_size": 0, "page_offset": 0}
    return queries.list_users(latchkey.db, most=None, **nobody, **dict(filters)).total


@blueprint.get("/admin/users/<user_id>")
@guard.admin
def get_any_user(user_id: str) -> Response:
    row = queries.select_any_user(latchkey.db, id=known_id(user_id, "user_not_found"))
    return JsonResponse(found(row, "user_not_found").user_object)


@blueprint.get("/admin/users/<user_id>/recent_changes")
@guard.admin
def list_recent_changes(user_id: str) -> Response:
    """Return a user's additions of the last seven days, which PUT /admin/users/{id} can remove."""
    user_id = known_id(user_id, "user_not_found")
    found(queries.select_addresses(latchkey.db, id=user_id), "user_not_found")
    return jsonify(recent_changes=removal.list_recent(latchkey.db, user_id))


@blueprint.put("/admin/users/<user_id>")
@takes_metadata
@guard.service_role
def update_any_user(user_id: str) -> Response:
    body = read_body(schemas.AnyUserChange())
    user_id = known_id(user_id, "user_not_found")
    password_hash = _stored_form(body["password_hash"]) if "password_hash" in body else None
    if "password" in body:
        known = found(queries.select_addresses(latchkey.db, id=user_id), "user_not_found")
        others = [known.email, known.phone, body.get("email"), body.get("phone")]
        check_strength(latchkey.settings, body["password"], others, latchkey.leaked_passwords)
        password_hash = latchkey.passwords.hash(body["password"])
    return JsonResponse(users.update_user(current_asked(), user_id, body, password_hash))


@blueprint.delete("/admin/users/<user_id>")
@guard.service_role
def delete_any_user(user_id: str) -> Response:
    read_body(schemas.Deletion())
    users.delete_user(current_asked(), known_id(user_id, "user_not_found"))
    return jsonify({})


@blueprint.post("/admin/users/<user_id>/logout")
@guard.service_role
def logout_any_user(user_id: str) -> Response:
    read_body(schemas.AdminInput())
    moment = users.end_sessions(current_asked(), known_id(user_id, "user_not_found")).moment
    return jsonify(message="User signed out", timestamp=moment)


@blueprint.post("/admin/generate_link")
@takes_metadata
@guard.service_role
def generate_link() -> Response:
    """Create a link, and the code that goes with it, without sending them."""
    asked = current_asked()
    body = read_body(schemas.NewLink())
    # The variant decides to which address the client emails the link. Both confirm the new address.
    purpose = "email_change" if body["type"].startswith("email_change") else body["type"]
    email, new_email = body["email"], body["new_email"] if purpose == "email_change" else None
    password_hash = None
    if "password" in body and purpose in ("signup", "recovery"):
        check_strength(latchkey.settings, body["password"], [email], latchkey.leaked_passwords)
        password_hash = latchkey.passwords.hash(body["password"])
    redirect_to = requested_target(asked, purpose, body) or latchkey.settings.site_url
    message = outgoing.Message(asked, new_email or email)
    new_id = None
    if purpose in _CREATING and queries.select_user_of_address(latchkey.db, address=email) is None:
        new_id = str(uuid.uuid4())
        admission.check(asked, new_id, email, None, data=body["data"], is_vouched=True)
    with latchkey.db.transaction() as tx:
        own = {"is_invited": purpose == "invite", "password_hash": password_hash}
        created_id = create_addressed_user(tx, body, new_id, "link", **own) if new_id else None
        user_id = created_id or _known_user(tx, purpose, body, password_hash)
        if new_email:
            taken = queries.select_user_of_address(tx, address=new_email)
            if taken and not taken.gives_way:
                raise ApiError("email_exists")
            queries.request_email_change(tx, user_id=user_id, new_email=new_email)
        link_password = password_hash if purpose == "recovery" else None
        message.write_token(tx, user_id, purpose, redirect_to=redirect_to, password_hash=link_password)
        acts = ["user_created" if created_id else None, "link_generated"]
        details = {"purpose": purpose, "new_email": new_email, "by": "link" if created_id else None}
        audit.record(tx, user_id, email, acts, ["user.created" if created_id else None], **details)
        user = found(queries.select_any_user(tx, id=user_id), "user_not_found").user_object
    parameters = {"token": str(message.link), "type": purpose, "redirect_to": redirect_to}
    link = {
        "action_link": outgoing.own_url(latchkey.settings, "verify", parameters),
        "email_otp": message.code,
        "hashed_token": message.link,
        "verification_type": body["type"],
        "redirect_to": redirect_to,
    }
    return JsonResponse(json.dumps(json.loads(user) | link))


def _known_user(tx: Transaction, purpose: str, body: dict[str, Any], password_hash: str | None) -> str:
    """Return the id of a link's user. A sign-up or invitation takes over an unconfirmed user."""
    user = found(queries.lock_user_by_email(tx, email=body["email"]), "email.user_not_found")
    if purpose in _CREATING:
        if user.is_confirmed:
            raise ApiError("email_exists")
        own = {"user_metadata": body["data"], "is_invited": purpose == "invite"}
        # A stranger may know the previous one.
        queries.set_password(tx, user_id=user.id, password_hash=password_hash)
        queries.take_over_unconfirmed(tx, user_id=user.id, **own)
        queries.end_access(tx, user_id=user.id, session_id=None, reason="address_proved", voids=True)
    return user.id


@blueprint.post("/admin/invite")
@blueprint.post("/invite")
@takes_metadata
@guard.service_role
@counted("invite")
@dialect.translated(writes=lambda body: body["user"])
def invite() -> Response:
    """Invite a user by email, once or again until the user accepts."""
    user, message_id = messages.invite(current_asked(), read_body(schemas.Invitation()))
    return JsonResponse(f'{{"user": {user}, "message_id": "{message_id}"}}')


@blueprint.get("/admin/audit")
@guard.admin
@dialect.translated(writes=dialect.list_of_entries)
def list_audit() -> Response:
    query = read_query(schemas.AuditQuery())
    filters = {name: query.get(name) for name in ("action", "since", "until", "request_id")}
    filters["subject"] = query.get("user")
    total = queries.count_audit(latchkey.db, most=MOST_EVENTS, **filters).total
    place, entries = bounds(query), "[]"
    if place["page_offset"] < total:
        entries = queries.list_audit(latchkey.db, **place, **filters).entries
    return paginated(entries, total, query)


@blueprint.get("/admin/users/<user_id>/timeline")
@guard.admin
def get_timeline(user_id: str) -> Response:
    """List the events of a user, even a deleted one, newest first, with the counts of limits."""
    query = read_query(schemas.AdminPageQuery())
    user_id = known_id(user_id, "user_not_found")
    known = queries.count_timeline(latchkey.db, user_id=user_id, most=MOST_EVENTS)
    if known.addresses is None and not known.total:
        raise ApiError("user_not_found")
    place = bounds(query)
    is_within = place["page_offset"] < known.total
    rows = queries.list_timeline(latchkey.db, user_id=user_id, **place) if is_within else []
    items = json.dumps([timeline.item(row) for row in rows])
    limits = json.dumps(counts.against(latchkey.settings, latchkey.db, [user_id, *(known.addresses or [])]))
    return paginated(items, known.total, query, limits=limits)
