from typing import Any

from flask import Blueprint, Response, json, jsonify
from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Nested

from auth.core import json_bodies
from auth.core.json_bodies import JsonObject
from auth.flows import failure_counts, organizations, totals
from auth.flows.account import removal
from auth.flows.admin import links, messages, searches, users
from auth.flows.admin.schemas import AnyUser, AnyUserChange
from auth.flows.history import timeline
from auth.flows.history.mentions import mentions_of
from auth.web import counted, dialect, fields, g, guard, schemas, takes_metadata
from auth.web.application import JsonResponse, paginated
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from auth.web.input import canonical_id, json_body, read_body, read_query
from auth.web.schemas import MOST_EVENTS, AdminPageQuery, bounds
from sql import queries

blueprint = Blueprint("admin", __name__)

_CHANGES = ("email_change", "email_change_current", "email_change_new")
_LINKS = ("signup", "magiclink", "recovery", "invite", *_CHANGES)
_InviteOptions = schemas.AdminInput.of(captcha_token=fields.Text(), data=fields.Metadata(load_default=dict))
_Deletion = schemas.AdminInput.of(should_soft_delete=fields.NotTrue())


class _NewLink(schemas.AdminInput):
    type = fields.Choice(*_LINKS, required=True)
    email = fields.Email(required=True)
    new_email = fields.Email()
    password = fields.Password()
    data = fields.Metadata(load_default=dict)
    redirect_to = fields.Text()

    @validates_schema
    def has_what_its_type_needs(self, data: JsonObject, **_kwargs: object) -> None:
        if data.get("type") in _CHANGES and "new_email" not in data:
            raise ValidationError("must be given for a change of email", "new_email")
        if data.get("type") == "signup" and "password" not in data:
            raise ValidationError("must be given for a sign-up", "password")


class _Invitation(schemas.AdminInput):
    email = fields.Email(required=True)
    data = fields.Metadata(load_default=dict)
    options = Nested(_InviteOptions, load_default=lambda: {"data": {}})
    redirect_to = fields.Text()


class _NewUserWithPhone(AnyUser):
    id = fields.Uuid()
    email_confirm = fields.Flag(load_default=False)
    phone_confirm = fields.Flag(load_default=False)


class _NewUserBody(_NewUserWithPhone):
    email = fields.Email(required=True)


class _UsersQuery(AdminPageQuery):
    email = fields.Email()
    role = fields.Text()
    is_anonymous = fields.Choice("true", "false")
    q = fields.Text()
    filter = fields.Text()  # the dialect's name of `q`
    sort = fields.Choice("created_at", "updated_at", "last_sign_in_at", "email", load_default="created_at")
    order = fields.Choice("asc", "desc", load_default="desc")

    @validates_schema
    def has_filter_in_the_dialect(self, data: JsonObject, **_kwargs: object) -> None:
        if "filter" in data and not g.in_dialect:
            raise ValidationError("is not a parameter of this list; use q", "filter")


class _AuditQuery(AdminPageQuery):
    user = fields.Uuid()
    action = fields.Text()
    since = fields.Timestamp()
    until = fields.Timestamp()
    request_id = fields.Text()
    organization = fields.Text()


@blueprint.post("/admin/users")
@takes_metadata
@guard.admin("users:write")
def create_user() -> Response:
    # Clients of the dialect may create a user with only a phone.
    may_lack_email = g.in_dialect and json_body().get("phone")
    body = read_body(_NewUserWithPhone if may_lack_email else _NewUserBody)
    return JsonResponse(users.create_user(current_asked(), body))


@blueprint.get("/admin/users")
@guard.admin("users:read")
@dialect.translated(writes=dialect.list_of_users)
def list_users() -> Response:
    query = read_query(_UsersQuery)
    prefix = query.get("q", query.get("filter", "")).strip().lower().removeprefix("@")
    filters: dict[str, Any] = {name: query.get(name) for name in ("email", "role")} | {"q": prefix or None}
    filters["is_anonymous"] = query["is_anonymous"] == "true" if "is_anonymous" in query else None
    order: dict[str, Any] = {"sort": query["sort"], "descending": query["order"] == "desc"}
    row = searches.list_users(latchkey.db, filters, most=totals.EXACT, **order, **bounds(query))
    total = totals.total_of(row.total, searches.count_users, latchkey.db, tuple(filters.items()))
    return paginated(row.users, total, query)


@blueprint.get("/admin/users/<user_id>")
@guard.admin("users:read")
def get_any_user(user_id: str) -> Response:
    row = queries.select_any_user(latchkey.db, id=canonical_id(user_id, "user_not_found"))
    return JsonResponse(found(row, "user_not_found").user_object)


@blueprint.get("/admin/users/<user_id>/recent_changes")
@guard.admin("users:read")
def list_recent_changes(user_id: str) -> Response:
    """Return a user's additions of the last seven days, which PUT /admin/users/{id} can remove."""
    user_id = canonical_id(user_id, "user_not_found")
    found(queries.select_addresses(latchkey.db, id=user_id), "user_not_found")
    return jsonify(recent_changes=removal.list_recent(latchkey.db, user_id))


@blueprint.put("/admin/users/<user_id>")
@takes_metadata
@guard.operator("users:write")
def update_any_user(user_id: str) -> Response:
    asked, body = current_asked(), read_body(AnyUserChange)
    user_id = canonical_id(user_id, "user_not_found")
    return JsonResponse(users.update_user(asked, user_id, body, users.hash_of(asked, body, user_id)))


@blueprint.delete("/admin/users/<user_id>")
@guard.operator("users:write")
def delete_any_user(user_id: str) -> Response:
    read_body(_Deletion)
    users.delete_user(current_asked(), canonical_id(user_id, "user_not_found"))
    return jsonify({})


@blueprint.post("/admin/users/<user_id>/logout")
@guard.operator("sessions:end")
def logout_any_user(user_id: str) -> Response:
    read_body(schemas.AdminInput)
    moment = users.end_sessions(current_asked(), canonical_id(user_id, "user_not_found")).moment
    return jsonify(message="User signed out", timestamp=moment)


@blueprint.post("/admin/generate_link")
@takes_metadata
@guard.operator("links")
def generate_link() -> Response:
    """Create a link, and the code that goes with it, without sending them."""
    return JsonResponse(json.dumps(links.generate(current_asked(), read_body(_NewLink))))


@blueprint.post("/admin/invite")
@blueprint.post("/invite")
@takes_metadata
@guard.operator("invites")
@counted("invite")
@dialect.translated(writes=lambda body: body["user"])
def invite() -> Response:
    """Invite a user by email, once or again until the user accepts."""
    user, message_id = messages.invite(current_asked(), read_body(_Invitation))
    return JsonResponse(json_bodies.encode_with({"message_id": message_id}, user=user))


@blueprint.get("/admin/audit")
@guard.admin("audit:read")
@dialect.translated(writes=dialect.list_of_entries)
def list_audit() -> Response:
    query = read_query(_AuditQuery)
    filters = {name: query.get(name) for name in ("action", "since", "until", "request_id")}
    filters["subject"] = query.get("user")
    filters["organization"] = _organization_of(query.get("organization"))
    total = queries.count_audit(latchkey.db, most=MOST_EVENTS, **filters).total
    place, entries = bounds(query), "[]"
    if place["page_offset"] < total:
        entries = queries.list_audit(latchkey.db, **place, **filters).entries
    return paginated(entries, total, query)


def _organization_of(name: str | None) -> str | None:
    """Return the id of a short name. Accepts any id, also of an organization that has ended."""
    if name is None or is_uuid(name):
        return name and name.lower()
    row = queries.select_organization(latchkey.db, **organizations.named(name))
    if row is None:
        details = (
            "organization: must be the ID of an organization, or the short name of one that has not ended"
        )
        raise ApiError("validation_failed", details)
    return row.id


@blueprint.get("/admin/users/<user_id>/timeline")
@guard.admin("audit:read")
def get_timeline(user_id: str) -> Response:
    """List the events of a user, even a deleted one, newest first, with the counts of limits."""
    query = read_query(AdminPageQuery)
    user_id = canonical_id(user_id, "user_not_found")
    counts = queries.count_timeline(latchkey.db, user_id=user_id, most=MOST_EVENTS)
    if counts.addresses is None and not counts.total:
        raise ApiError("user_not_found")
    place = bounds(query)
    is_within = place["page_offset"] < counts.total
    rows = queries.list_timeline(latchkey.db, user_id=user_id, **place) if is_within else []
    mentions = mentions_of(latchkey.db, [row.details for row in rows])
    items = json.dumps([timeline.item(row, mentions) for row in rows])
    holders = [user_id, *(counts.addresses or [])]
    limits = json.dumps(failure_counts.against(latchkey.settings, latchkey.db, holders))
    return paginated(items, counts.total, query, limits=limits)
