"""Finds the link or code of a request, and whether it is good."""

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


LinkOrCode = OpenedLink | TypedCode


def by_code(asked: Asked, address: str, code: str, browser_hash: bytes | None = None) -> TypedCode:
    return TypedCode(address, asked.parts.codes.macs(address, code), browser_hash)


@dataclass(frozen=True)
class Lookup:
    """Finds a link by its token, or a right code by its id, which may have one of these purposes."""

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


def find(asked: Asked, secret: LinkOrCode, purposes: Collection[str]) -> Lookup | None:
    """Return how to find a link or code that may have one of these purposes, or None for a wrong code.

    The verdict on a code is committed before anybody learns it. An address without a code runs the same
    statements.
    """
    if isinstance(secret, OpenedLink):
        return Lookup(secret.token_hash, None, purposes)
    id = _judge(asked, secret, purposes) if secret.macs else None
    return Lookup(None, id, purposes) if id else None


def find_link(token: str, *purposes: str) -> Lookup:
    return Lookup(one_time.hash_token(token), None, purposes)


def good_link(asked: Asked, token: str, purposes: Collection[str]) -> "queries.SelectLink | None":
    """Return a good link, to show what it does."""
    lookup = find_link(token, *purposes)
    link = queries.select_link(asked.db, token_hash=lookup.token_hash, id=None)
    return link if link and lookup.is_good(link) else None


@contextmanager
def locked(asked: Asked, lookup: Lookup) -> "Iterator[tuple[Act, queries.SelectLink | None]]":
    """Begin an act with the user of a link or code locked, and the holder of its address. Yield it, and the
    row if the link or code is good."""
    with acts.on_found(asked.db, lookup.users) as (act, _):
        link = act.read(queries.select_link, token_hash=lookup.token_hash, id=lookup.id)
        yield act, link if link and lookup.is_good(link) else None


def _judge(asked: Asked, code: TypedCode, purposes: Collection[str]) -> str | None:
    """Record the verdict on a code, and return its id if it is right and may be told."""
    here = asked.client["network"]
    with acts.begin(asked.db) as act:
        row = links.code_for_browser(queries.list_codes(act, target=code.address), code.browser_hash)
        is_right = row is not None and links.is_open_code(row, bytes(row.code_mac) in code.macs, purposes)
        subject = row.id if row and row.purpose in purposes else code.address
        limits = [
            Limit("try", subject, here, constants.TRIES, constants.MAIL_CODE_LIFETIME),
            *verdicts.limits_of_code(act, "code", code.address, here, user_id=row.user_id if row else None),
        ]
        verdict = act.record_verdict(limits, is_right=is_right)
    return row.id if row and is_right and verdict.refused_by is None else None
