"""The limits of verdicts on codes that people type."""

from auth.core import constants
from auth.rules import counts
from auth.rules.counts import Limit
from sql import Runner, queries


def limits_of_code(on: Runner, kind: str, subject: str, network: str, *, user_id: str | None) -> list[Limit]:
    """Return the limits of codes of a kind, for a subject. Runs the same statement without a user."""
    a_day = (constants.WRONG_CODES_A_DAY[kind], constants.DAY)
    rows = queries.list_known_networks(on, user_id=user_id)
    is_known = bool(rows) and counts.is_known_network(rows, network, rows[0].now)
    return counts.limits_of(kind, kind, subject, network, is_known=is_known, own=a_day, of_all=a_day)
