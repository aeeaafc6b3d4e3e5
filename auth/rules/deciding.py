"""What decides about a token (rule 16): nothing that users write themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """Facts about a user, and the session of a token, or the one that opens it. The counter of its refresh
    tokens is no part. `banned_until` is None after a ban, too; `factors` are as the user object has them.
    """

    id: str
    role: str
    email: str | None
    email_confirmed_at: datetime | None
    phone: str | None
    phone_confirmed_at: datetime | None
    app_metadata: Mapping[str, object]
    banned_until: datetime | None
    is_anonymous: bool
    created_at: datetime
    providers: Sequence[str]
    factors: Sequence[Mapping[str, object]]
    # The role in each organization, and what it requires, by id.
    memberships: Mapping[str, Sequence[object]]
    session_id: str | None
    aal: str | None
    ended_at: datetime | None
    factor_id: str | None
    amr: object


def still_decides(before: Deciding, present: Deciding | None) -> bool:
    """Rule 35: a hook is asked between two transactions. Its answer counts if the facts are as `before`."""
    return before == present
