"""Which link or code was given, and whether it is good."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from auth.core import constants
from auth.core.tokens import one_time
from auth.flows import verdicts
from auth.rules import links
from auth.rules.counts import Limit
from auth.web.asked import Asked
from sql import Runner, acts, queries
from sql.acts import Act


@dataclass(frozen=True)
class OpenedLink:
    """A link by its token."""

    token_hash: bytes | None


@dataclass(frozen=True)
class TypedCode:
    """A code that was typed, for an address, on a page of the browser with this hash, or sent to the API."""

    address: str
    macs: Sequence[bytes]
    browser_hash: bytes | None


Given = OpenedLink | TypedCode


def by_code(asked: Asked, address: str, code: str, browser_hash: bytes | None = None) -> TypedCode:
    return TypedCode(address, asked.parts.codes.macs(address, code), browser_hash)


@dataclass(frozen=True)
class Found:
    """A link by its token, or a right code by its id, and the purposes that it may have."""

    token_hash: bytes | None
    id: str | None
    purposes: Collection[str]

    def is_good(self, row: "queries.SelectLink") -> bool:
        if self.id is not None:
            return links.is_open_code(row, True, self.purposes)
        return row.purpose in self.purposes and links.is_good_link(row)

    def users(self, on: Runner) -> list[str]:
        """Return the user, and the holder of the address, to lock both."""
        rows = queries.list_users_of_link(on, token_hash=self.token_hash, id=self.id)
        return [row.id for row in rows]


def find(asked: Asked, given: Given, purposes: Collection[str]) -> Found | None:
    """Find a link or code that may have one of these purposes. Return None for a wrong code.

    The verdict on a code is committed before anybody learns it. An address without a code runs the same
    statements.
    """
    if isinstance(given, OpenedLink):
        return Found(given.token_hash, None, purposes)
    id = _judge(asked, given, purposes) if given.macs else None
    return Found(None, id, purposes) if id else None


def find_link(token: str, *purposes: str) -> Found:
    return Found(one_time.hash_token(token), None, purposes)


def good_link(asked: Asked, token: str, purposes: Collection[str]) -> "queries.SelectLink | None":
    """Return a good link, to show what it does."""
    found = find_link(token, *purposes)
    row = queries.select_link(asked.db, token_hash=found.token_hash, id=None)
    return row if row and found.is_good(row) else None


@contextmanager
def locked(asked: Asked, found: Found) -> "Iterator[tuple[Act, queries.SelectLink | None]]":
    """Begin an act with the user of a link or code locked, and the holder of its address. Yield it, and the
    row if the link or code is good."""
    with acts.on_found(asked.db, found.users) as (act, _):
        row = act.read(queries.select_link, token_hash=found.token_hash, id=found.id)
        yield act, row if row and found.is_good(row) else None


def _judge(asked: Asked, given: TypedCode, purposes: Collection[str]) -> str | None:
    """Record the verdict on a code, and return its id if it is right and may be told."""
    here = asked.client["network"]
    with acts.begin(asked.db) as act:
        row = links.code_for_browser(queries.list_codes(act, target=given.address), given.browser_hash)
        is_right = row is not None and links.is_open_code(row, bytes(row.code_mac) in given.macs, purposes)
        guessed = row.id if row and row.purpose in purposes else given.address
        limits = [
            Limit("try", guessed, here, constants.TRIES, constants.MAIL_CODE_LIFETIME),
            *verdicts.limits_of_code(act, "code", given.address, here, user_id=row.user_id if row else None),
        ]
        verdict = act.record_verdict(limits, is_right=is_right)
    return row.id if row and is_right and verdict.refused_by is None else None
