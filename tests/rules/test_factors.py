"""Factors: auth/rules/factors.py beside what SQL decided."""

import json
from datetime import datetime, timedelta
from typing import Any

from auth.rules import factors
from tests.support.rule_rows import HOUR, MINUTE, Compared, Tables, check

LIFETIME = 5 * MINUTE
MUTANTS = [
    ("created_at > now - lifetime", "created_at >= now - lifetime"),
    ("is_verified or (is_begun_here and", "is_verified or (True and"),
    ("max(week_ago, first_factor_at", "min(week_ago, first_factor_at"),
    ("timedelta(hours=1)", "timedelta(hours=2)"),
    ("now == before == 0", "now == before"),
    ("is_synced is False", "not is_synced"),
]


def compare(tables: Tables) -> Compared:
    asked: list[dict[str, Any]] = [
        {
            "n": n,
            "is_verified": tables.chance(0.3),
            "is_begun_here": tables.chance(0.7),
            "created_at": tables.ago(LIFETIME).isoformat(),
            "first": tables.one_of(
                None, tables.ago().isoformat(), tables.ago(timedelta(days=7) + HOUR).isoformat()
            ),
            "old": tables.one_of(0, 0, 1, 2),
            "new": tables.one_of(0, 1, 2),
            "eligible": tables.one_of(None, False, True),
        }
        for n in range(tables.cases)
    ]
    rows = tables.all(
        """SELECT is_verified OR is_begun_here AND created_at > now() - interval '5 minutes' AS may_verify,
                  greatest(now() - recent_age(), first + interval '1 hour') AS trusted_before,
                  rose, NOT (rose OR eligible IS NOT FALSE) AS may_be_copy
             FROM jsonb_to_recordset(%(asked)s) AS a (n integer, is_verified boolean, is_begun_here boolean,
                    created_at timestamptz, first timestamptz, old bigint, new bigint, eligible boolean)
            CROSS JOIN LATERAL (SELECT new > old OR new = 0 AND old = 0) AS counter (rose)
            ORDER BY n""",
        asked=json.dumps(asked),
    )
    return Compared(tables.seed, [(each, tables.now) for each in asked], [[*row] for row in rows])


def decide(rules, case) -> list[object]:
    asked, now = case
    first = asked["first"] and datetime.fromisoformat(asked["first"])
    begun = {name: asked[name] for name in ("is_verified", "is_begun_here")}
    created_at = datetime.fromisoformat(asked["created_at"])
    return [
        rules.may_verify(**begun, created_at=created_at, lifetime=LIFETIME, now=now),
        rules.trusted_before(first, now),
        rules.counter_rose(asked["old"], asked["new"]),
        rules.may_be_copy(asked["old"], asked["new"], is_synced=asked["eligible"]),
    ]


def test_python_decides_about_factors_as_sql_and_no_mutant_does(tables):
    check(compare(tables), factors, decide, MUTANTS)
