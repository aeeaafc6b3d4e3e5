"""Links and codes that are created without being sent."""

import json
import uuid
from functools import partial

from auth.core.json_bodies import JsonObject
from auth.core.passwords.policy import check_strength
from auth.flows import admission, ends
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.links.targets import requested_target
from auth.flows.messages import outgoing
from auth.flows.sign_up.sign_up import create_addressed_user
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import acts, queries
from sql.acts import Act

# The purposes of links that make a user.
_CREATING = ("signup", "invite")


def generate(asked: Asked, body: JsonObject) -> JsonObject:
    """Create the link and code of a `NewLink` body, and return them with the user. Raises `WeakPassword`."""
    settings = asked.settings
    # The variant decides to which address the client emails the link. Both confirm the new address.
    purpose = "email_change" if body["type"].startswith("email_change") else body["type"]
    email, new_email = body["email"], body["new_email"] if purpose == "email_change" else None
    password_hash, new_id = None, None
    if asked.is_key and "password" in body and purpose == "recovery":
        # It would become the user's password, whoever spends the link.
        raise ApiError("insufficient_permissions", "password: must be absent")
    if "password" in body and purpose in ("signup", "recovery"):
        check_strength(settings, body["password"], [email], asked.parts.leaked_passwords)
        password_hash = asked.parts.passwords.hash(body["password"])
    redirect_to = requested_target(asked, purpose, body) or settings.site_url
    message = outgoing.Message(asked, new_email or email)
    find = partial(queries.find_holder, address=email)
    if purpose in _CREATING and find(asked.db).id is None:
        new_id = str(uuid.uuid4())
        admission.ask_hook(asked, new_id, email, None, data=body["data"])

    # Nobody knows who uses the link of an administrative key.
    by_key = asked.is_key

    # The constraint decides who gets the address.
    def insert(act: Act) -> None:
        is_invited = purpose == "invite"
        create_addressed_user(
            act, body, new_id, "link", password_hash=password_hash, is_invited=is_invited, by_key=by_key
        )

    with acts.on_found(asked.db, find, before=insert) as (act, holders):
        row = act.read(queries.select_person, user_id=next(iter(holders), None), session_id=None)
        holder = found(row, "email.user_not_found")
        user_id, is_created = holder.id, holder.id == new_id
        targets.admit(asked, holder)
        if purpose in _CREATING and not is_created:
            _take_over(act, holder, purpose, body, password_hash, by_key=by_key)
        if new_email:
            admission.check_free(act, new_email)
            queries.request_email_change(act, user_id=user_id, new_email=new_email)
        link_password = password_hash if purpose == "recovery" else None
        message.write_token(
            act, user_id, purpose, redirect_to=redirect_to, password_hash=link_password, by_key=by_key
        )
        entries = ["user_created" if is_created else None, "link_generated"]
        details = {"purpose": purpose, "new_email": new_email, "by": "link" if is_created else None}
        audit.record(act, user_id, email, entries, ["user.created" if is_created else None], **details)
        user = found(queries.select_any_user(act, id=user_id), "user_not_found").user_object
        targets.check_actor(asked, act)
    parameters = {"token": str(message.link), "type": purpose, "redirect_to": redirect_to}
    return json.loads(user) | {
        "action_link": outgoing.own_url(settings, "verify", parameters),
        "email_otp": message.code,
        "hashed_token": message.link,
        "verification_type": body["type"],
        "redirect_to": redirect_to,
    }


def _take_over(
    act: Act, user: PersonFacts, purpose: str, body: JsonObject, password_hash: str | None, *, by_key: bool
) -> None:
    """Let a sign-up or an invitation take over an unconfirmed user."""
    if user.email_confirmed_at is not None:
        raise ApiError("email_exists")
    # A stranger may know the previous password.
    queries.set_password(act, user_id=user.id, password_hash=password_hash, by_key=by_key)
    own = {"user_metadata": body["data"], "is_invited": purpose == "invite"}
    queries.take_over_unconfirmed(act, user_id=user.id, **own)
    ends.end_and_void(act, user.id, None, "address_proved")
