"""What is counted: auth/rules/counts.py beside what SQL decided until 0.5.2, and a model beside what it counts."""

from datetime import datetime, timedelta
from typing import Any

from auth.rules import counts
from tests.support import counting
from tests.support.rule_rows import (
    DAY,
    HOUR,
    MINUTE,
    Compared,
    Tables,
    ask,
    check,
    decided,
    insert_users,
)

HERE, BROWSER = "203.0.113.7", "browser 1"
NETWORKS = (HERE, BROWSER, "browser 2", *(f"192.0.2.{place}" for place in range(12)))
FAILURES = [3, 600, 5, 3600]
ADDRESS = "user@example.com"
MUTANTS_OF_NETWORKS = [
    ("_KNOWN_NETWORKS = 10", "_KNOWN_NETWORKS = 11"),
    ("known.mail_proved_at > now", "known.mail_proved_at >= now"),
    (" and not known.network.startswith(_BROWSER)", ""),
    ("known.network != here and known.passed_at is None and", "known.network != here and"),
    ("len(others) < _MAIL_PROOFS", "len(others) <= _MAIL_PROOFS"),
    ("person.last_sign_in_at is not None and not is_known", "not is_known"),
    ("return limits if is_known else", "return limits if False else"),
    ('("nobody", address) if owner is None else', '("user", address) if owner is None else'),
]
MUTANTS_OF_VERDICTS = [
    ("known.expires_at <= now", "known.expires_at < now"),
    ("counts[limit].count > limit.amount", "counts[limit].count >= limit.amount"),
    ("    if is_right:\n", "    if False:\n"),
    ("first = first or counts[limit]", "first = counts[limit]"),
    ("tightest is None or window.amount", "window.amount >= 0 or window.amount"),
    ("if counted.count > window.amount:", "if counted.count >= window.amount:"),
]


def compare_networks(tables: Tables) -> Compared:
    ids = insert_users(tables, tables.cases)
    networks = [network(tables, id, name) for id in ids for name in NETWORKS if tables.chance(0.9)]
    tables.insert("known_networks", networks)
    asked = ask(tables, ids, lambda: {"here": tables.one_of(HERE, None)})
    answers = decided(
        tables,
        f"""jsonb_build_array(
              is_known_network(u.id, '{HERE}'),
              is_new_sign_in(u, a ->> 'here', '{BROWSER}'),
              password_limits('{ADDRESS}', u.id, '{HERE}', ARRAY{FAILURES}),
              password_limits('{ADDRESS}', NULL, '{HERE}', ARRAY{FAILURES}))""",
    )
    held: dict[str, list[Any]] = {id: [] for id in ids}
    for row in tables.all("SELECT user_id, network, passed_at, mail_proved_at FROM known_networks"):
        held[row.user_id].append(row)
    cases = [(case, id, held[id]) for case, id in zip(asked, ids, strict=True)]
    decided(tables, f"record_mail_proof(u.id, '{HERE}')")
    recorded = decided(
        tables,
        f"""EXISTS (SELECT FROM known_networks AS n
                     WHERE n.user_id = u.id AND n.network = '{HERE}' AND n.mail_proved_at = now())""",
    )
    pairs = zip(answers, recorded, strict=True)
    return Compared(tables.seed, cases, [[*answer, is_recorded] for answer, is_recorded in pairs])


def network(tables: Tables, owner: str, name: str) -> dict[str, Any]:
    passed_at = tables.now - timedelta(seconds=tables.random.randrange(1, 1 << 20))
    return {
        "user_id": owner,
        "network": name,
        "seen_at": tables.now,
        "passed_at": passed_at if tables.chance(tables.one_of(0.4, 1)) else None,
        "mail_proved_at": tables.maybe_ago(0.4, DAY, DAY + HOUR, HOUR),
    }


def decide_networks(rules, each) -> list[object]:
    case, id, rows = each
    networks = [
        rules.KnownNetwork(network=row.network, passed_at=row.passed_at, mail_proved_at=row.mail_proved_at)
        for row in rows
    ]
    is_known = rules.is_known_network(networks, HERE, case.now)
    allowance = rules.Allowance((FAILURES[0], FAILURES[1]), (FAILURES[2], FAILURES[3]))
    return [
        is_known,
        is_new_sign_in(rules, case, rows),
        as_rows(rules.password_limits(ADDRESS, id, HERE, is_known=is_known, allowance=allowance)),
        as_rows(rules.password_limits(ADDRESS, None, HERE, is_known=False, allowance=allowance)),
        rules.records_mail_proof(networks, HERE, case.now),
    ]


def is_new_sign_in(rules, case, rows) -> bool:
    """A browser's session, which has no network here, is never new."""
    here = case.asked["here"]
    is_known = any(row.network in (here, BROWSER) and row.passed_at is not None for row in rows)
    return here is not None and rules.is_new_sign_in(case.user, is_known=is_known)


def as_rows(limits) -> list[dict[str, Any]]:
    names = ("kind", "subject", "network", "amount", "seconds")
    return [{name: getattr(limit, name) for name in names} for limit in limits]


def compare_verdicts(tables: Tables) -> Compared:
    """Each case has its own subject, so that no verdict counts with another."""
    asked = [verdict(tables, f"subject {place}") for place in range(tables.cases)]
    known = [row for each in asked for row in each["known"]]
    tables.insert("failure_counts", [row for row in known if row["count"] is not None])
    tables.run("CREATE TEMP TABLE verdicts (n integer, a jsonb) ON COMMIT DROP")
    tables.insert("verdicts", [{"n": n, "a": each} for n, each in enumerate(asked)])
    rows = tables.all(
        """SELECT v.refused_by, v.refused_for, v.count, v.seconds_left
             FROM (SELECT * FROM verdicts ORDER BY n OFFSET 0) AS c,
                  record_verdict((SELECT array_agg(l) FROM jsonb_populate_recordset(NULL::failure_limit,
                                                                                    a -> 'limits') AS l),
                                 1, (a -> 'is_right')::boolean) AS v
            ORDER BY n"""
    )
    left = {
        row.key: [row.count, row.left]
        for row in tables.all(
            "SELECT key, count, extract(epoch FROM expires_at - now())::float AS left FROM failure_counts"
        )
    }
    windows = tables.all("SELECT w.* FROM verdicts AS c, take_from_windows(a -> 'windows') AS w ORDER BY n")
    answers = [
        [*row, [left.get(known["key"]) for known in each["known"][:4]], *window]
        for row, each, window in zip(rows, asked, windows, strict=True)
    ]
    return Compared(tables.seed, [(tables.now, each) for each in asked], answers)


def verdict(tables: Tables, subject: str) -> dict[str, Any]:
    kinds = [("login", HERE), ("account", None), ("user", HERE), ("user", None)]
    limits = [limit(tables, kind, subject, network) for kind, network in kinds[: tables.one_of(1, 2, 4)]]
    windows = [limit(tables, "nobody", f"{subject} {place}", None) for place in range(3)]
    known = [
        each
        | {
            "key": " ".join(filter(None, (each["kind"], each["subject"], each["network"]))),
            "count": tables.one_of(None, 1, 2, 3),
            "expires_at": (tables.now + tables.one_of(-MINUTE, timedelta(0), MINUTE, HOUR)).isoformat(),
        }
        for each in [*limits, *windows]
    ]
    return {
        "limits": limits,
        "windows": windows,
        "known": [{name: row[name] for name in row if name != "amount"} for row in known],
        "is_right": tables.chance(0.5),
    }


def limit(tables: Tables, kind: str, subject: str, network: str | None) -> dict[str, Any]:
    return {
        "kind": kind,
        "subject": subject,
        "network": network,
        "amount": tables.one_of(1, 2, 3, 4),
        "seconds": tables.one_of(60, 3600),
    }


def decide_verdict(model, each) -> list[object]:
    now, asked = each
    limits = [model.Limit(**row) for row in asked["limits"]]
    windows = [model.Limit(**row) for row in asked["windows"]]
    known = {
        limit: model.Count(row["count"], datetime.fromisoformat(row["expires_at"]))
        for limit, row in zip([*limits, *windows], asked["known"], strict=True)
        if row["count"] is not None
    }

    def left(count) -> float:
        return (count.expires_at - now).total_seconds()

    told = model.verdict(limits, known, is_right=asked["is_right"], now=now)
    counted = [told.counts.get(limit) for limit in [*limits, *windows]]
    window, tightest = model.tightest_window(windows, known, now)
    refused = told.refused_by
    return [
        refused and refused.kind,
        refused and left(told.counts[refused]),
        told.first.count,
        left(told.first),
        [count and [count.count, left(count)] for count in counted][:4],
        window.amount,
        window.amount - tightest.count,
        left(tightest),
    ]


def test_python_knows_networks_as_sql_and_no_mutant_does(tables):
    check(compare_networks(tables), counts, decide_networks, MUTANTS_OF_NETWORKS)


def test_verdicts_and_windows_count_as_the_model_and_as_no_mutant(tables):
    check(compare_verdicts(tables), counting, decide_verdict, MUTANTS_OF_VERDICTS)
