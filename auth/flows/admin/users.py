import hashlib
import json
from typing import Any

from auth.core.passwords.policy import check_strength
from auth.flows.account import api_keys, grants, removal
from auth.flows.links.proving import person_of, prove_address
from auth.rules.users import AddressKind
from auth.web import audit, targets
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.targets import Claim
from sql import Transaction, queries
from sql.acts import Act


def create_user(asked: Asked, body: dict[str, Any]) -> str:
    """Create a user from a `NewUser` body, and return the user object as JSON. Raises `WeakPassword`."""
    email, role = body.get("email"), body.get("role", "authenticated")
    if "password" in body:
        check_strength(
            asked.settings, body["password"], [email, body.get("phone")], asked.parts.leaked_passwords
        )
        body["password_hash"] = asked.parts.passwords.hash(body["password"])
    columns = {name: body.get(name) for name in ("id", "email", "phone", "password_hash", "ban_duration")}
    columns |= {name: body[name] for name in ("user_metadata", "app_metadata")}
    columns |= {f"{kind}_confirm": kind in body and body[f"{kind}_confirm"] for kind in removal.ADDRESSES}
    with targets.act(asked) as tx:
        queries.make_way(
            tx, addresses=[*filter(None, (email, body.get("phone")))], owner_id=None, because="created_again"
        )
        created = queries.create_user(tx, **columns, role=role)
        acts = ["user_created", "banned" if created.banned_until else None]
        made = {"by": "administrator", "role": role, "banned_until": created.banned_until}
        audit.record(tx, created.id, email, acts, ["user.created"], **made)
        return found(queries.select_any_user(tx, id=created.id), "user_not_found").user_object


def update_user(
    asked: Asked,
    user_id: str,
    body: dict[str, Any],
    password_hash: str | None = None,
    *,
    claim: Claim | None = None,
) -> str:
    """Apply an `AnyUserChange` body, and return the user object as JSON."""
    with targets.act(asked, claim) as tx:
        return _update(asked, tx, targets.lock(asked, tx, user_id), body, password_hash)


def replace_metadata(asked: Asked, user_id: str, wanted: dict[str, dict[str, Any]], version: str) -> None:
    """Replace all metadata of a user, unless it has changed since `version`."""
    with targets.act(asked) as tx:
        before = targets.lock(asked, tx, user_id)
        if metadata_version(before) != version:
            raise ApiError("stale.validation_failed")
        body = {name: _changed_members(getattr(before, name), members) for name, members in wanted.items()}
        if any(body.values()):
            _update(asked, tx, before, body)


def metadata_version(user: Any) -> str:
    """Return a version of the metadata, with which a form detects later changes."""
    metadata = json.dumps([user.user_metadata, user.app_metadata], sort_keys=True)
    return hashlib.sha256(metadata.encode()).hexdigest()


def _changed_members(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the members that a merge must change.

    Null removes a member. Unchanged numbers keep every digit.
    """
    removed = dict.fromkeys(before.keys() - after.keys())
    # Compared as JSON, because 1 equals True in Python.
    kept = {name: json.dumps(value, sort_keys=True) for name, value in before.items()}
    return removed | {
        name: value for name, value in after.items() if kept.get(name) != json.dumps(value, sort_keys=True)
    }


def delete_user(asked: Asked, user_id: str, *, claim: Claim | None = None) -> None:
    """Delete any user."""
    with targets.act(asked, claim) as tx:
        targets.lock(asked, tx, user_id)
        queries.delete_user(tx, user_id=user_id)


def end_sessions(asked: Asked, user_id: str, *, claim: Claim | None = None) -> "queries.EndAnyUsersSessions":
    """End all sessions of any user. Return the time, and the number of live API keys, which stay."""
    with targets.act(asked, claim) as tx:
        targets.lock(asked, tx, user_id)
        return queries.end_any_users_sessions(tx, id=user_id)


def clear_locks(asked: Asked, user_id: str) -> bool:
    """Forget a user's wrong passwords and codes, and return whether there were any."""
    with targets.act(asked) as tx:
        # Counters before the user's row: see docs/decisions.md.
        cleared = queries.clear_failures(tx, user_id=user_id) > 0
        user = targets.lock(asked, tx, user_id)
        if cleared:
            audit.record(tx, user_id, user.email, ["lock_cleared"], [])
        return cleared


def end_session(asked: Asked, user_id: str, session_id: str) -> None:
    """End one session of any user, with those that it opened."""
    with targets.act(asked) as tx:
        targets.lock(asked, tx, user_id)
        # A session that has ended meanwhile is no error.
        queries.end_any_session(tx, id=user_id, session_id=session_id)


def _update(
    asked: Asked, tx: Act, before: Any, body: dict[str, Any], password_hash: str | None = None
) -> str:
    user_id = before.id
    # Also null, for a user without one.
    if kept := [kind for kind in removal.ADDRESSES if kind in body and body[kind] == getattr(before, kind)]:
        removal.withdraw_changes(tx, before, kept)
    new = [kind for kind in removal.ADDRESSES if body.get(kind) not in (getattr(before, kind), None)]
    if body.get("ban_duration") or password_hash or new:
        reason = "banned" if body.get("ban_duration") else "reset_by_admin"
        queries.end_access(tx, user_id=user_id, session_id=None, reason=reason, voids=True)
    kinds = [kind for kind in removal.ADDRESSES if body.get(kind, "") is None and getattr(before, kind)]
    ids = [way.lower() for way in body.get("remove", [])]
    removed = _remove(asked, tx, before, kinds, ids) if kinds or ids else []
    if removed or new:
        # A thief who had changed the address must not undo the administrator's act.
        queries.void_undo_links(tx, user_id=user_id, moment=None)
    if new:
        addresses = [body[kind] for kind in new]
        queries.make_way(tx, addresses=addresses, owner_id=user_id, because="created_again")
    # A first proof removes other data, so it comes before the changes of the body.
    kinds_in_order: list[AddressKind] = sorted(("email", "phone"), key=new.count)
    for kind in kinds_in_order:
        _set_address(tx, user_id, kind, body)
    if removed:
        removal.check_remaining(asked, tx, user_id)
    if password_hash:
        queries.set_password(tx, user_id=user_id, password_hash=password_hash)
    others: dict[str, Any] = {"sets_ban": "ban_duration" in body, "sets_password": bool(password_hash)}
    others |= {name: body.get(name) for name in ("role", "user_metadata", "app_metadata", "ban_duration")}
    changes_roles = "role" in body or "roles" in body.get("app_metadata", {})
    update = _change_roles if changes_roles else queries.update_any_user
    update(tx, id=user_id, **others)
    after = found(queries.lock_user(tx, user_id=user_id), "user_not_found")
    for provider in set(removed).difference(removal.ADDRESSES):
        audit.record(tx, user_id, after.email, ["identity_unlinked"], [], provider=provider)
    _record(tx, before, after, body)
    return found(queries.select_any_user(tx, id=user_id), "user_not_found").user_object


def _change_roles(tx: Transaction, *, id: str, **columns: Any) -> None:
    """Update a user, and end the sessions at clients that refused the user before, or refuse the user now."""
    queries.end_lost_access_of_user(tx, user_id=id)
    queries.update_any_user(tx, id=id, **columns)
    queries.end_lost_access_of_user(tx, user_id=id)


def _remove(asked: Asked, tx: Transaction, before: Any, kinds: list[str], ids: list[str]) -> list[str]:
    providers = removal.removed_providers(tx, before.id, kinds, ids)
    grants.remove(tx, before, ids=ids)
    api_keys.remove_of(asked, tx, before, ids, is_told=False)
    if providers:
        queries.remove_ways_to_sign_in(tx, user_id=before.id, ids=[], providers=providers)
        reason = "reset_by_admin" if kinds else "way_to_sign_in_removed"
        queries.end_access(tx, user_id=before.id, session_id=None, reason=reason, voids=True)
    return providers


def _set_address(tx: Act, user_id: str, kind: AddressKind, body: dict[str, Any]) -> None:
    """Set or confirm an address. The first proof of the other address may have removed it."""
    person, owner = person_of(tx, user_id), {"user_id": user_id, "provider": kind}
    old = person.email if kind == "email" else person.phone
    address = body.get(kind) or old
    confirmed_at = body.get(f"{kind}_confirmed_at")
    if address and (confirmed_at or body.get(f"{kind}_confirm")):
        prove_address(tx, person, kind, address, "administrator")
    elif address != old:
        queries.set_address(tx, **owner, address=address, is_confirmed=False, is_proved=False)
    if address and f"{kind}_confirmed_at" in body:
        queries.set_confirmed_at(tx, **owner, confirmed_at=confirmed_at)


def _record(tx: Transaction, before: Any, after: Any, body: dict[str, Any]) -> None:
    changed = {name for name in after._fields if getattr(before, name) != getattr(after, name)}
    acts = {
        "user_changed": changed & {"user_metadata", "app_metadata"},
        "password_changed": "password" in body or "password_hash" in body,
        "email_changed": "email" in changed,
        "phone_changed": "phone" in changed,
        "email_confirmed": "email_confirmed_at" in changed and after.email_confirmed_at,
        "email_unconfirmed": "email_confirmed_at" in changed and after.email and not after.email_confirmed_at,
        "phone_confirmed": "phone_confirmed_at" in changed and after.phone_confirmed_at,
        "phone_unconfirmed": "phone_confirmed_at" in changed and after.phone and not after.phone_confirmed_at,
        "role_changed": "role" in changed,
        "banned": "ban_duration" in body and after.banned_until,
        "unbanned": before.banned_until and not after.banned_until,
    }
    details = {f"old_{name}": getattr(before, name) for name in changed & {*removal.ADDRESSES, "role"}}
    details |= {"role": after.role} if "role" in changed else {}
    details |= {"banned_until": after.banned_until} if "ban_duration" in body else {}
    done = [act for act, is_done in acts.items() if is_done]
    audit.record(tx, before.id, after.email, done, ["user.updated"], **details)
