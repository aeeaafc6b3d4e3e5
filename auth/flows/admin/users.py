import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from auth.core.json_bodies import JsonObject
from auth.core.passwords import legacy
from auth.core.passwords.policy import check_strength
from auth.core.settings import state
from auth.core.text.moments import iso_8601
from auth.flows import ends, memberships
from auth.flows.account import api_keys, grants, pending_addresses, removal
from auth.flows.admin import administrators, targets
from auth.flows.factors import factors
from auth.flows.facts import PersonFacts
from auth.flows.links.proving import person_of, prove_address
from auth.flows.passkeys import unused
from auth.rules.ends import Reason
from auth.rules.users import ADDRESS_KINDS, AddressKind, end_of_ban, is_banned
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import queries
from sql.acts import Act


class SignedOut(NamedTuple):
    """When all sessions of a user were ended, and the number of live API keys, which stay."""

    moment: str | None
    api_keys: int


def create_user(asked: Asked, body: JsonObject) -> str:
    """Create a user from a `NewUser` body, and return the user object as JSON. Raises `WeakPassword`."""
    targets.check_role(asked, body)
    email, role, password_hash = body.get("email"), body.get("role", "authenticated"), hash_of(asked, body)
    addresses = [body[kind] for kind in ADDRESS_KINDS if body.get(kind)]
    with targets.on_holders(asked, addresses) as (act, holders):
        now = act.read(queries.select_holders, addresses=addresses).now
        targets.make_way(act, holders)
        columns = {name: body.get(name) for name in ("id", "email", "phone")}
        columns |= {name: body[name] for name in ("user_metadata", "app_metadata")}
        for kind in ADDRESS_KINDS:
            is_confirmed = kind in body and body[f"{kind}_confirm"]
            columns[f"{kind}_confirmed_at"] = now if is_confirmed else None
        banned_until = end_of_ban(body.get("ban_duration"), now)
        columns |= {"role": role, "banned_until": banned_until, "by_key": asked.is_key}
        has_password = password_hash is not None
        id = queries.create_user(act, **columns, password_hash=password_hash, is_vouched=has_password).id
        entries = ["user_created", "banned" if banned_until else None]
        details = {"by": "administrator", "role": role, "banned_until": iso_8601(banned_until)}
        audit.record(act, id, email, entries, ["user.created"], **details)
        return found(queries.select_any_user(act, id=id), "user_not_found").user_object


def hash_of(asked: Asked, body: JsonObject, user_id: str | None = None) -> str | None:
    """Return the hash for the password of a body, or of that hash. Raises `WeakPassword`."""
    if "password_hash" in body:
        try:
            return asked.parts.passwords.stored_form(body["password_hash"])
        except legacy.UnusableHash as error:
            details = str(error).replace("password_hash", "password_hash:", 1)
            raise ApiError("validation_failed", details) from None
    if "password" not in body:
        return None
    others = [body.get("email"), body.get("phone")]
    if user_id:
        user = found(queries.select_addresses(asked.db, id=user_id), "user_not_found")
        others += [user.email, user.phone]
    check_strength(asked.settings, body["password"], others, asked.parts.leaked_passwords)
    return asked.parts.passwords.hash(body["password"])


def void_password(asked: Asked, user_id: str) -> tuple[JsonObject, str | None]:
    """Return the member of an `AnyUserChange` body that voids the user's password, if any, and the hash."""
    user = queries.select_summary(asked.db, id=user_id, email=None, phone=None)
    if not found(user, "user_not_found").has_password:
        return {}, None
    return {"password": None}, asked.parts.passwords.hash(state.new_secret())


def update_user(asked: Asked, user_id: str, body: JsonObject, password_hash: str | None = None) -> str:
    """Apply an `AnyUserChange` body, and return the user object as JSON, that of a new administrator with
    `recent_changes` and `ways_to_sign_in`.
    """
    targets.check_role(asked, body, user_id)
    addresses = [body[kind] for kind in ADDRESS_KINDS if body.get(kind)]
    with targets.on_holders(asked, addresses, user_id) as (act, holders):
        before = targets.read(asked, act, user_id)
        return _update(asked, act, before, body, password_hash, holders)


def change_addresses(asked: Asked, user_id: str, changed: JsonObject) -> None:
    """Apply the `email` and `phone` of a body, if there are any. The present address withdraws a change."""
    if changed:
        update_user(asked, user_id, changed)


def replace_metadata(asked: Asked, user_id: str, wanted: JsonObject) -> None:
    """Replace all metadata of a user, unless it has changed since the `version` that an administrator saw."""
    with targets.on(asked, user_id) as (act, before):
        if metadata_version(before) != wanted["version"]:
            raise ApiError("stale.validation_failed")
        body = {
            name: changed_members(getattr(before, name), wanted[name])
            for name in ("user_metadata", "app_metadata")
        }
        if any(body.values()):
            _update(asked, act, before, body)


def metadata_version(user: "queries.SelectEffects | queries.SelectPerson") -> str:
    """Return a version of the metadata, with which a form detects later changes."""
    metadata = json.dumps([user.user_metadata, user.app_metadata], sort_keys=True)
    return hashlib.sha256(metadata.encode()).hexdigest()


def changed_members(before: JsonObject, after: JsonObject) -> JsonObject:
    """Return the members that a merge must change. Null removes one. Unchanged numbers keep every digit."""
    nulls = dict.fromkeys(before.keys() - after.keys())
    # Values are compared as JSON, because 1 equals True in Python.
    texts = {name: json.dumps(value, sort_keys=True) for name, value in before.items()}
    return nulls | {
        name: value for name, value in after.items() if texts.get(name) != json.dumps(value, sort_keys=True)
    }


def delete_user(asked: Asked, user_id: str) -> None:
    with targets.on(asked, user_id) as (act, user):
        memberships.leave_all(asked, act, user.id)
        queries.delete_user(act, user_id=user.id, because=None)


def end_sessions(asked: Asked, user_id: str) -> SignedOut:
    with targets.on(asked, user_id) as (act, user):
        ends.end(act, user.id, None, "ended_by_admin")
        audit.record(act, user.id, user.email, ["signed_out"], ["auth.logout"], scope="global")
        return SignedOut(iso_8601(user.now), queries.count_api_keys(act, user_id=user.id).live)


def clear_locks(asked: Asked, user_id: str) -> bool:
    """Forget a user's wrong passwords and codes, and return whether there were any."""
    with targets.begin(asked) as act:
        # The counters come before the user's row: see docs/decisions.md.
        cleared = queries.clear_failures(act, user_id=user_id) > 0
        act.lock_users([user_id])
        user = targets.read(asked, act, user_id)
        if cleared:
            audit.record(act, user_id, user.email, ["lock_cleared"], [])
        return cleared


def end_session(asked: Asked, user_id: str, session_id: str) -> None:
    """End one session of any user, with those that it opened."""
    with targets.on(asked, user_id, session_id=session_id) as (act, user):
        # A session that has ended meanwhile is no error.
        if user.method is not None and user.ended_at is None:
            ends.end(act, user.id, session_id, "ended_by_admin")
            audit.record(act, user.id, user.email, ["session_ended"], ["auth.logout"], session_id=session_id)


def _update(
    asked: Asked,
    act: Act,
    before: PersonFacts,
    body: JsonObject,
    password_hash: str | None = None,
    holders: Sequence[str] = (),
) -> str:
    user_id = before.id
    must_remain = asked.is_key and removal.remains(asked, act, user_id, "password")
    # A body repeats an address that the user lacks by null.
    if kept := [kind for kind in ADDRESS_KINDS if kind in body and body[kind] == getattr(before, kind)]:
        pending_addresses.withdraw(act, before, kept)
    new = [kind for kind in ADDRESS_KINDS if body.get(kind) not in (getattr(before, kind), None)]
    if body.get("ban_duration"):
        ends.end_and_void(act, user_id, None, "banned")
    elif password_hash or new:
        ends.end_and_void(act, user_id, None, "reset_by_admin")
    kinds = [kind for kind in ADDRESS_KINDS if body.get(kind, "") is None and getattr(before, kind)]
    ids = [way.lower() for way in body.get("remove", [])]
    nothing = removal.Removed([], [], takes_way=False)
    removed = _remove(asked, act, before, kinds, ids) if kinds or ids else nothing
    ends.end_with_identities(act, user_id, removed.providers)
    if removed.providers or removed.factor_ids or new:
        # A thief who had changed the address must not undo the administrator's act.
        queries.void_undo_links(act, user_id=user_id, moment=None)
    targets.make_way(act, holders)
    # A first proof removes other data, so it comes before the changes of the body.
    kinds_in_order: list[AddressKind] = sorted(ADDRESS_KINDS, key=new.count)
    for each in kinds_in_order:
        _set_address(asked, act, user_id, each, body)
    if removed.takes_way:
        removal.check_remaining(asked, act, user_id)
    if password_hash:
        by_key = asked.is_key
        unused.remove_made_without_factor(act, before, "before_new_password")
        queries.set_password(act, user_id=user_id, password_hash=password_hash, by_key=by_key)
    _update_others(act, before, body, password_hash)
    if must_remain:
        removal.check_remaining(asked, act, user_id, "password")
    after = person_of(act, user_id)
    for provider in set(removed.providers).difference(ADDRESS_KINDS):
        audit.record(act, user_id, after.email, ["identity_unlinked"], [], provider=provider)
    anew = None
    if after.role == "admin" != before.role:
        anew = administrators.begin_anew(asked, act, user_id)
    _record(act, before, after, body, anew)
    user = found(queries.select_any_user(act, id=user_id), "user_not_found").user_object
    if anew is None:
        return user
    members = {"recent_changes": removal.list_recent(act, user_id), "ways_to_sign_in": anew.ways}
    return json.dumps(json.loads(user) | members)


def _update_others(act: Act, before: PersonFacts, body: JsonObject, password_hash: str | None) -> None:
    """Update a user. A change of roles ends the sessions at clients that refused, or now refuse, the user."""
    if "ban_duration" in body:
        queries.set_ban(act, id=before.id, banned_until=end_of_ban(body["ban_duration"], before.now))
    columns = {name: body.get(name) for name in ("user_metadata", "app_metadata")}
    changes_roles = "role" in body or "roles" in body.get("app_metadata", {})
    if changes_roles:
        ends.end_refused_sessions(act, before.id)
    role = body.get("role", before.role)
    queries.update_any_user(act, id=before.id, **columns, role=role, vouches_password=bool(password_hash))
    if changes_roles:
        ends.end_refused_sessions(act, before.id)


def _remove(
    asked: Asked, act: Act, before: PersonFacts, kinds: Sequence[str], ids: list[str]
) -> removal.Removed:
    """Remove identities and recent additions, and return them."""
    removed = removal.removed(act, before.id, kinds, ids)
    if removed.factor_ids:
        factors.remove_recent(asked, act, before, removed.factor_ids)
    grants.remove(act, before, ids=ids)
    api_keys.remove_of(act, before, ids)
    if removed.providers:
        queries.remove_ways_to_sign_in(act, user_id=before.id, ids=[], providers=removed.providers)
    if removed.providers or removed.factor_ids:
        reason: Reason = "reset_by_admin" if kinds else "way_to_sign_in_removed"
        ends.end_and_void(act, before.id, None, reason)
    return removed


def _set_address(asked: Asked, act: Act, user_id: str, kind: AddressKind, body: JsonObject) -> None:
    """Set or confirm an address. The first proof of the other address may have removed it."""
    person, owner = person_of(act, user_id), {"user_id": user_id, "kind": kind}
    old = person.email if kind == "email" else person.phone
    address = body.get(kind) or old
    confirmed_at, by_key = body.get(f"{kind}_confirmed_at"), asked.is_key
    if address and (confirmed_at or body.get(f"{kind}_confirm")):
        prove_address(act, person, kind, address, "administrator", by_key=by_key)
    elif address != old:
        queries.set_address(act, **owner, address=address, is_confirmed=False, is_proved=False, by_key=by_key)
        if asked.in_dialect:
            # Clients of the dialect expect a new address to be confirmed like the old one.
            before = person.email_confirmed_at if kind == "email" else person.phone_confirmed_at
            queries.set_confirmed_at(act, **owner, confirmed_at=before)
    if address and f"{kind}_confirmed_at" in body:
        queries.set_confirmed_at(act, **owner, confirmed_at=confirmed_at)


def _record(
    act: Act, before: PersonFacts, after: PersonFacts, body: JsonObject, anew: administrators.Anew | None
) -> None:
    changed = {name for name in after._fields if getattr(before, name) != getattr(after, name)}
    # A ban that ends meanwhile is not lifted.
    was_banned, is_now_banned = (is_banned(each) for each in (before, after))
    effects = {
        "user_changed": changed & {"user_metadata", "app_metadata"},
        "password_changed": "password" in body or "password_hash" in body,
        "email_changed": "email" in changed,
        "phone_changed": "phone" in changed,
        "email_confirmed": "email_confirmed_at" in changed and after.email_confirmed_at,
        "email_unconfirmed": "email_confirmed_at" in changed and after.email and not after.email_confirmed_at,
        "phone_confirmed": "phone_confirmed_at" in changed and after.phone_confirmed_at,
        "phone_unconfirmed": "phone_confirmed_at" in changed and after.phone and not after.phone_confirmed_at,
        "role_changed": "role" in changed,
        "banned": "ban_duration" in body and is_now_banned,
        "unbanned": was_banned and not is_now_banned,
    }
    details = {f"old_{name}": getattr(before, name) for name in changed & {*ADDRESS_KINDS, "role"}}
    details |= {"role": after.role} if "role" in changed else {}
    details |= {"removed": anew.removed} if anew and anew.removed else {}
    details |= {"banned_until": iso_8601(after.banned_until)} if "ban_duration" in body else {}
    entries = [name for name, is_done in effects.items() if is_done]
    audit.record(act, before.id, after.email, entries, ["user.updated"], **details)
