"""Whether a user may sign in, and whether a password or an authorization code is one to sign in with."""

from datetime import datetime
from typing import Literal, Protocol

from auth.rules.policy import Policy
from auth.rules.refusals import Refusal
from auth.rules.sessions import Session, end_of_session
from auth.rules.users import AddressKind, Person, User, is_banned


class AuthorizationCode(Protocol):
    """A row with a code of RFC 7636. `session_id` is the session that it opened, `opened_by` one on our pages
    that has issued it for an application. `is_over` if its customer's provider was turned off since.
    """

    @property
    def expires_at(self) -> datetime: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def opened_by(self) -> str | None: ...
    @property
    def is_over(self) -> bool: ...


def refusal_of_password(
    person: Person | None,
    *,
    is_right: bool,
    kind: AddressKind,
    must_be_confirmed: bool,
    role: str | None = None,
) -> Refusal | None:
    """Rule 12: refuse an unknown user like a wrong password. Only the right one learns of another reason: a
    ban, an address of this `kind` that `must_be_confirmed` first, or that the user lacks the `role` that the
    console demands.

    Of several sign-ups for one address no password counts before its proof (rule 8): such a user has none,
    also if `is_right` says that the newest one was given.
    """
    if person is None or not is_right:
        return "invalid_credentials"
    if is_banned(person):
        return "user_banned"
    confirmed_at = person.email_confirmed_at if kind == "email" else person.phone_confirmed_at
    if must_be_confirmed and confirmed_at is None:
        return "email_not_confirmed" if kind == "email" else "phone_not_confirmed"
    if role is not None and person.role != role:
        return "not_admin"
    return "invalid_credentials" if person.password_hash is None else None


def verdict_on_code(
    code: AuthorizationCode | None,
    user: User | None,
    opener: Session | None,
    *,
    is_right: bool,
    policy: Policy,
) -> "Refusal | Literal['reused'] | None":
    """Refuse an unknown or expired code, and one whose `opener`, the session that issued it, has ended, or
    whose provider was turned off.

    `is_right` if the verifier matches. A second use ends the session of the first one (rule 19).
    """
    if code is None or user is None or code.expires_at <= user.now:
        return "flow_state_not_found"
    is_used = code.session_id is not None
    has_lost_opener = code.opened_by is not None and end_of_session(user, opener, policy) is not None
    if not is_used and (has_lost_opener or code.is_over):
        return "flow_state_not_found"
    if not is_right:
        return "bad_code_verifier"
    if is_used:
        return "reused"
    return "user_banned" if is_banned(user) else None
