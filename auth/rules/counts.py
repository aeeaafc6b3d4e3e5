"""What is counted (rules 27 to 29): known networks, and which limits a verdict counts for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from auth.rules.users import Person

# A user's newest networks where every step was passed.
KNOWN_NETWORKS = 10
# How long a network is known after a mailed link or code was used there, and how many are so at once.
_MAIL_PROOF_AGE = timedelta(days=1)
MAIL_PROOFS = 3
_BROWSER = "browser "


class Network(Protocol):
    """A row with a network of a user, or with a browser, whose name begins with `browser `.

    `passed_at` is when the user last passed every step there, `mail_proved_at` when a mailed link or code to
    the user was last used there.
    """

    @property
    def network(self) -> str: ...
    @property
    def passed_at(self) -> datetime | None: ...
    @property
    def mail_proved_at(self) -> datetime | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNetwork:
    """A network of a user."""

    network: str
    passed_at: datetime | None = None
    mail_proved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `amount` in `seconds`, for a subject (an address or a user) from a network.

    Without a network, from all that are not known together. Two kinds never share a count.
    """

    kind: str
    subject: str
    network: str | None
    amount: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How many have counted in a limit, whose window ends at `expires_at`."""

    count: int
    expires_at: datetime


# The amount and seconds of a limit.
Allowance = tuple[int, int]


def is_known_network(networks: Sequence[Network], here: str, now: datetime) -> bool:
    """Rule 29: the last ten where the user passed every step, or one where a mailed link was used in the last
    day.
    """
    passed = [
        (each.passed_at, each.network)
        for each in networks
        if each.passed_at is not None and not each.network.startswith(_BROWSER)
    ]
    newest = [name for _, name in sorted(passed, reverse=True)[:KNOWN_NETWORKS]]
    return here in newest or any(each.network == here and _is_mail_proved(each, now) for each in networks)


def records_mail_proof(networks: Sequence[Network], here: str, now: datetime) -> bool:
    """Whether a network where a mailed link was used gets tries of its own: three a day do.

    A thief of the mailbox can use links from anywhere.
    """
    others = [
        each
        for each in networks
        if each.network != here and each.passed_at is None and _is_mail_proved(each, now)
    ]
    return len(others) < MAIL_PROOFS


def is_new_sign_in(person: Person, *, is_known: bool) -> bool:
    """Rule 27: neither the network nor the browser is one where the user passed every step (`is_known`).

    A first sign-in is not new.
    """
    return person.last_sign_in_at is not None and not is_known


def limits_of(
    kind: str, kind_of_all: str, subject: str, here: str, *, is_known: bool, own: Allowance, of_all: Allowance
) -> list[Limit]:
    """Rule 29: wrong ones count for a subject and network, and together for all unknown networks."""
    limits = [Limit(kind, subject, here, *own)]
    return limits if is_known else [*limits, Limit(kind_of_all, subject, None, *of_all)]


def password_limits(
    address: str, owner: str | None, here: str, *, is_known: bool, own: Allowance, of_all: Allowance
) -> list[Limit]:
    """Wrong passwords count for the address, and for its user.

    `owner` is the id of that user. Nobody may learn that an email and a phone belong together, so the limits
    of the address come first: the response tells their count. An address without a user counts twice as well
    (rule 12).
    """
    holder, subject = ("nobody", address) if owner is None else ("user", owner)
    of_address = limits_of("login", "account", address, here, is_known=is_known, own=own, of_all=of_all)
    return of_address + limits_of(holder, holder, subject, here, is_known=is_known, own=own, of_all=of_all)


def used_up_until(limits: Sequence[Limit], tallies: Mapping[str, Tally], now: datetime) -> datetime | None:
    """When the last of these limits that are used up ends, if one is. `tallies` are by the kind of limit."""
    ends = [
        tally.expires_at
        for limit in limits
        if (tally := tallies.get(limit.kind)) and tally.count >= limit.amount and tally.expires_at > now
    ]
    return max(ends, default=None)


def _is_mail_proved(network: Network, now: datetime) -> bool:
    return network.mail_proved_at is not None and network.mail_proved_at > now - _MAIL_PROOF_AGE
