"""What ends, and its size (rules 17 to 21). Nothing that has ended comes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

# alone: the session, which only ran out. this: the session, those that it opened for applications, and those
# that these opened in turn. others: all sessions but those. everything: all sessions but the one of the act,
# with API keys and grants.
# provider: what a customer's provider opened, API keys included, and what that opened in turn.
_SizeOfSessions = Literal["alone", "this", "others", "everything"]
Size = Literal["alone", "this", "others", "provider", "everything"]
_Alone = Literal["too_many_sessions"]
_This = Literal[
    "logout",
    "ended_by_user",
    "ended_by_admin",
    "refresh_token_reused",
    "authorization_code_reused",
    "access_lost",
]
_Others = Literal[
    "others_signed_out",
    "password_changed",
    "email_changed",
    "phone_changed",
    "factor_added",
    "identity_linked",
    "way_to_sign_in_removed",
]
_Everything = Literal[
    "recovered",
    "change_undone",
    "email_restored",
    "reset_by_admin",
    "banned",
    "restored",
    "address_proved",
    "promoted",
]
Reason = _Alone | _This | _Others | _Everything
# The provider was turned off or deleted, or has another issuer; or the user has lost it.
ProviderReason = Literal["provider_disabled", "provider_lost"]
_SIZES_OF_SESSIONS: dict[Reason, _SizeOfSessions] = {
    **dict.fromkeys(get_args(_Alone), "alone"),
    **dict.fromkeys(get_args(_This), "this"),
    **dict.fromkeys(get_args(_Others), "others"),
    **dict.fromkeys(get_args(_Everything), "everything"),
}
_SIZES_OF_PROVIDERS: dict[ProviderReason, Size] = dict.fromkeys(get_args(ProviderReason), "provider")
SIZES: Mapping[Reason | ProviderReason, Size] = _SIZES_OF_SESSIONS | _SIZES_OF_PROVIDERS


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What ends of a user. `reach` is that of sessions, and of codes and approved requests, which are
    sessions that have not begun; `all` spares only the session of the act, if it has one.

    `keys_up_to` is the highest level of the API keys that end, None for no key. `with_grants` if what
    applications were allowed ends, a move to a customer's provider that has not been completed, and the
    open invitations that the user sent.
    """

    reason: Reason
    reach: Literal["alone", "this", "others", "all"]
    keys_up_to: Literal["aal1", "aal2"] | None = None
    with_grants: bool = False


def what_ends(reason: Reason, *, has_session: bool) -> End:
    """What a reason ends. Without a session that it is about, whatever the size, all sessions end.

    The first app or key ends more than its size: what is below its level, API keys, and what its session
    opened.
    """
    size = _SIZES_OF_SESSIONS[reason]
    if size == "everything":
        return End(reason=reason, reach="all", keys_up_to="aal2", with_grants=True)
    if reason == "factor_added":
        return End(reason=reason, reach="all", keys_up_to="aal1")
    return End(reason=reason, reach=size if has_session else "all")


def forgets_networks(reason: Reason) -> bool:
    """Whether known networks and browsers are forgotten: whoever held what ends may have made them known.

    After a restored backup, every user would get a notice at the next sign-in.
    """
    return SIZES[reason] == "everything" and reason != "restored"
