"""What becomes of a new administrator's ways to sign in (rule 20)."""

from collections.abc import Iterable
from typing import Protocol

from auth.rules.refusals import Refusal


class WayToSignIn(Protocol):
    """`is_by_key` if an administrative key, or a session of one, has set it."""

    @property
    def type(self) -> str: ...
    @property
    def is_by_key(self) -> bool: ...


def refusal_of_promotion(ways: Iterable[WayToSignIn], *, remains: bool) -> Refusal | None:
    """Refuse an address that a key has set: its holder would be the administrator. `remains` is whether
    something can sign in without what keys have set; refuse also if that is what takes the last of it.
    """
    set_by_key = {way.type for way in ways if way.is_by_key}
    if "email" in set_by_key:
        return "email_by_key.validation_failed"
    if "phone" in set_by_key:
        return "phone_by_key.validation_failed"
    return "all_by_key.validation_failed" if set_by_key and not remains else None
