"""The actions of administrators on a user. Changing other administrators requires the service role key."""

import json
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response

from auth.core.text.labels import counted, label, quoted
from auth.core.text.moments import clock
from auth.flows.admin import messages, users
from auth.flows.admin.schemas import AnyUser
from auth.flows.admin.user_actions import ACTIONS, NEVER
from auth.flows.factors import factors
from auth.flows.passkeys import passkeys
from auth.html import form_schemas
from auth.html.admin import actions
from auth.html.admin.actions import Action, Subject
from auth.html.admin.console_page import device
from auth.html.admin.subjects import all_users, changeable_user
from auth.html.page import redirect_to_own
from auth.rules.users import ADDRESS_KINDS
from auth.web import fields
from auth.web.context import latchkey
from auth.web.errors import found
from auth.web.input import canonical_id, check
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("user_actions", __name__)

_MetadataForm = Input.of(
    user_metadata=fields.MetadataText(required=True),
    app_metadata=fields.MetadataText(required=True),
    version=fields.Text(required=True),
)
_NewUserForm = Input.of(
    **{name: fields.Text(load_default="") for name in ("name", "email", "phone", "password")},
    is_confirmed=fields.Text(load_default=""),
)
_AddressForm = Input.of(email=fields.TypedText(load_default=""), phone=fields.TypedText(load_default=""))
_TypedUser = AnyUser.of(email=fields.TypedEmail(allow_none=True), phone=fields.TypedPhone(allow_none=True))
_TYPED_ADDRESSES = _TypedUser(only=ADDRESS_KINDS)
_NEW_USER = _TypedUser(only=("email", "phone", "password"))


def _session(user_id: str, session_id: str) -> Subject:
    user, id = changeable_user(user_id), canonical_id(session_id, "device.not_found")
    session = queries.select_any_session(latchkey.db, user_id=user.row.id, id=id)
    return replace(user, row=found(session, "device.not_found"))


def _factor(user_id: str, factor_id: str) -> Subject:
    user, id = changeable_user(user_id), canonical_id(factor_id, "mfa_factor_not_found")
    rows = queries.list_factors_by_id(latchkey.db, user_id=user.row.id, ids=[id])
    return replace(user, row=found(next(iter(rows), None), "mfa_factor_not_found"))


def _new_addresses(user: Subject, form: dict[str, str]) -> dict[str, Any]:
    # An empty field removes the address. The API's schema reads the other values. The present address
    # withdraws a pending change.
    addresses: dict[str, Any] = {kind: form[kind] or None for kind in ADDRESS_KINDS}
    changes = {
        kind: address
        for kind, address in addresses.items()
        if address != getattr(user.row, kind) or getattr(user.row, f"new_{kind}")
    }
    return check(_TYPED_ADDRESSES, changes)


def _new_user(_users: Subject, form: dict[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {kind: form[kind] for kind in ("email", "phone", "password") if form[kind]}
    if "phone" not in values:
        # The schema requires one address.
        values["email"] = form["email"]
    body = check(_NEW_USER, values)
    name = form["name"].strip()
    body |= {f"{kind}_confirm": bool(form["is_confirmed"]) for kind in ADDRESS_KINDS}
    return body | {"user_metadata": {"name": name} if name else {}, "app_metadata": {}}


def _redirect_to_user(user: str, done: str) -> Response:
    return redirect_to_own(f"console/users/{json.loads(user)['id']}", done)


def _declared_action(name: str, template: str = "act.html") -> Action:
    action = ACTIONS[name]
    return Action.of(
        action,
        effects=lambda user: action.effects(user.row),
        do=lambda asked, user, form: action.flow(asked, user.row.id, form),
        template=template,
    )


USER_ACTIONS = {
    "invite-again": Action(
        title="Send invitation again",
        effects=lambda user: [
            f"Sends 1 email to {user.row.email} with a new link that is valid for seven days."
        ],
        undo="A sent email can’t be recalled. Deleting the user voids its link.",
        do=lambda asked, user, _form: messages.invite_again(asked, user.row.email),
        done="The invitation is on its way.",
    ),
    "recover": Action(
        title="Send recovery email",
        effects=lambda user: [
            f"Sends 1 email to {user.row.email} with a link and a code to sign in and set a password."
        ],
        undo="A sent email can’t be recalled. An unused link expires after an hour.",
        do=lambda asked, user, _form: messages.send_recovery(asked, user.row.id, user.row.email),
        done="The recovery email is on its way.",
    ),
    "end-sessions": _declared_action("end-sessions"),
    "reset-two-step": _declared_action("reset-two-step"),
    "ban": _declared_action("ban", "act_ban.html"),
    "unban": _declared_action("unban"),
    "unlock": _declared_action("unlock"),
    "metadata": Action(
        title="Edit metadata",
        effects=lambda user: [
            "Replaces user and app metadata. Access tokens get the new values at their next refresh."
        ],
        undo="The audit log doesn’t keep the old values. Copy them if you might need them.",
        do=lambda asked, user, form: users.replace_metadata(asked, user.row.id, form),
        done="Metadata saved.",
        form=_MetadataForm,
        template="act_metadata.html",
        takes_metadata=True,
    ),
    "addresses": Action(
        title="Change addresses",
        effects=lambda user: [
            f"Changing the email or removing an address ends {counted(user.row.sessions, 'session')}.",
            "A new address stays unconfirmed until the user uses a link or code sent to it.",
            *(
                f"Withdraws the change to {pending}, which isn’t confirmed yet."
                for pending in (user.row.new_email, user.row.new_phone)
                if pending
            ),
        ],
        undo="You can change it back: the audit log has the old address. Earlier undo links stop working.",
        do=lambda asked, user, changes: users.change_addresses(asked, user.row.id, changes),
        done="Addresses saved.",
        needs_factor=True,
        form=_AddressForm,
        check=_new_addresses,
        template="act_addresses.html",
    ),
    "delete": _declared_action("delete"),
}
_SESSION_ACTIONS = {
    "end": Action(
        title="End this session",
        effects=lambda session: [
            f"Ends 1 session: {device(session.row.user_agent)},"
            f" last used {clock(session.row.refreshed_at)} UTC.",
            f"Ends {counted(session.row.opened, 'session')} that it opened for applications."
            if session.row.opened
            else "",
        ],
        undo=f"{NEVER} They can sign in again.",
        do=lambda asked, session, _form: users.end_session(asked, session.row.user_id, session.row.id),
        done="Session ended.",
        is_destructive=True,
    )
}
_FACTOR_ACTIONS = {
    "remove": Action(
        title="Remove this factor",
        effects=lambda factor: [
            f"Removes 1 {label('factors', factor.row.factor_type)}"
            + (f": {quoted(factor.row.friendly_name)}." if factor.row.friendly_name else "."),
            "Sessions that used it lose their second step. The user gets a notice.",
        ],
        undo="The user can add another one. The notice about a passkey has a link to restore it.",
        do=lambda asked, factor, _form: (
            passkeys if factor.row.factor_type == "passkey" else factors
        ).remove_any(asked, factor.row.user_id, factor.row.id),
        done="Removed.",
        needs_factor=True,
        is_destructive=True,
    )
}
_WITHOUT_USER = {
    "create": Action(
        title="Create user",
        effects=lambda _users: [
            "Creates the user without sending a message.",
            "Without a password, they sign in with an emailed link or an SMS code.",
            "A password only works with a confirmed address.",
        ],
        undo="Deleting the user undoes it.",
        do=lambda asked, _users, body: _redirect_to_user(users.create_user(asked, body), "create"),
        done="User created.",
        form=_NewUserForm,
        check=_new_user,
        template="act_create.html",
    ),
    "invite": Action(
        title="Invite",
        effects=lambda _users: ["Creates 1 user and sends 1 email with a link that is valid for seven days."],
        undo="A sent email can’t be recalled. Deleting the user voids its link.",
        do=lambda asked, _users, form: _redirect_to_user(
            messages.invite(asked, messages.invitation(**form))[0], "invite"
        ),
        done="The invitation is on its way.",
        form=form_schemas.InvitationForm,
        template="act_invite.html",
    ),
}
DONE = {**USER_ACTIONS, **_SESSION_ACTIONS, **_FACTOR_ACTIONS, **_WITHOUT_USER}

actions.serve(blueprint, "/console/users/<user_id>", USER_ACTIONS, changeable_user)
actions.serve(blueprint, "/console/users/<user_id>/sessions/<session_id>", _SESSION_ACTIONS, _session)
actions.serve(blueprint, "/console/users/<user_id>/factors/<factor_id>", _FACTOR_ACTIONS, _factor)
actions.serve(blueprint, "/console/users", _WITHOUT_USER, all_users)
