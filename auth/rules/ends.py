"""What ends, and its size (rules 17 to 21). Nothing that has ended comes back."""

from dataclasses import dataclass
from typing import Literal

# alone: the session, which only ran out. this: it, and those that it opened for applications, or that these
# opened in turn. others: all but those. everything: all but the session itself, with API keys and grants.
Size = Literal["alone", "this", "others", "everything"]
Reason = Literal[
    "access_lost",
    "address_proved",
    "authorization_code_reused",
    "banned",
    "change_undone",
    "email_changed",
    "email_restored",
    "ended_by_admin",
    "ended_by_user",
    "factor_added",
    "identity_linked",
    "logout",
    "others_signed_out",
    "password_changed",
    "phone_changed",
    "provider_disabled",
    "recovered",
    "refresh_token_reused",
    "reset_by_admin",
    "restored",
    "too_many_sessions",
    "way_to_sign_in_removed",
]
SIZES: dict[Reason, Size] = {
    "too_many_sessions": "alone",
    "logout": "this",
    "ended_by_user": "this",
    "ended_by_admin": "this",
    "refresh_token_reused": "this",
    "authorization_code_reused": "this",
    "access_lost": "this",
    "others_signed_out": "others",
    "password_changed": "others",
    "email_changed": "others",
    "phone_changed": "others",
    "factor_added": "others",
    "identity_linked": "others",
    "way_to_sign_in_removed": "others",
    "recovered": "everything",
    "change_undone": "everything",
    "email_restored": "everything",
    "reset_by_admin": "everything",
    "banned": "everything",
    "restored": "everything",
    "address_proved": "everything",
    "provider_disabled": "everything",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What ends of a user. `reach` is that of sessions, and of codes and approved requests, which are
    sessions that have not begun; `all` spares only the session of the act, if it has one.

    `keys_up_to` is the highest level of the API keys that end, None for no key. `with_grants` if what
    applications were allowed ends, and a move to a customer's provider that has not been completed.
    """

    reason: Reason
    reach: Literal["alone", "this", "others", "all"]
    keys_up_to: Literal["aal1", "aal2"] | None = None
    with_grants: bool = False


def what_ends(reason: Reason, *, has_session: bool) -> End:
    """What a reason ends. Without a session that it is about, whatever the size, all sessions end.

    A first factor ends more than its size: what is below its level, API keys and what its session opened.
    """
    size = SIZES[reason]
    if size == "everything":
        return End(reason=reason, reach="all", keys_up_to="aal2", with_grants=True)
    if reason == "factor_added":
        return End(reason=reason, reach="all", keys_up_to="aal1")
    return End(reason=reason, reach=size if has_session else "all")
