"""What disabling a customer's provider ends: auth/rules/providers.py beside SQL."""

from datetime import timedelta

from auth.rules import providers
from tests.support.rule_rows import HOUR, Compared, Tables, check

MUTANTS = [
    ("if is_enabled", "if not is_enabled"),
    ("now if was_enabled else ended_before", "now"),
    ("now if was_enabled else ended_before", "ended_before"),
]


def compare(tables: Tables) -> Compared:
    rows: list[dict[str, object]] = [
        {
            "id": tables.id(),
            "identifier": f"custom:{place}",
            "name": "Customer",
            "issuer": f"https://{place}.example.com",
            "discovery_url": "",
            "client_id": "latchkey",
            "client_secret": b"sealed",
            "acceptable_client_ids": [],
            "scopes": [],
            "authorization_params": {},
            "attribute_mapping": {},
            "custom_claims_allowlist": [],
            "enabled": tables.chance(0.5),
            "disabled_at": tables.maybe_ago(0.5),
            "created_at": tables.ago(HOUR),
            "updated_at": tables.ago(timedelta(0), HOUR),
        }
        for place in range(100)
    ]
    tables.insert("identity_providers", rows)
    known = tables.all(
        """SELECT p.enabled, ended_before(p) AS ended_before, wanted.enabled AS is_enabled,
                  CASE WHEN wanted.enabled THEN NULL
                       WHEN p.enabled THEN now()
                       ELSE ended_before(p) END AS answer
             FROM identity_providers AS p
            CROSS JOIN (VALUES (true), (false)) AS wanted (enabled)"""
    )
    return Compared(tables.seed, [(tables.now, row) for row in known], [row.answer for row in known])


def decide(rules, each) -> object:
    now, row = each
    return rules.disabled_at(
        was_enabled=row.enabled, is_enabled=row.is_enabled, ended_before=row.ended_before, now=now
    )


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), providers, decide, MUTANTS)
