"""When a notice is due, and what stops a message: auth/rules/messages.py beside SQL."""

import json
from datetime import timedelta
from typing import Any

from auth.rules import messages
from tests.support.rule_rows import HOUR, MINUTE, Compared, Tables, check, insert_users

MUTANTS = [
    ("timedelta(minutes=10)", "timedelta(minutes=11)"),
    ("max(now, previous", "min(now, previous"),
]
MUTANTS_OF_TOTALS = [
    ("of_network <= max(1, most // 10)", "of_network < max(1, most // 10)"),
    ("not is_proved or (recipient_left", "(recipient_left"),
    ("total > allowed", "total >= allowed"),
    ("(most * 3 + 3) // 4", "most"),
    (' and not (channel == "mail" and is_proved)', ""),
    ('if is_beyond:\n        return "tenth"\n', "if False:\n        pass\n"),
]


# What decided until 0.5.2 what stops a message.
TOTALS_SQL = """
SELECT refused_by
  FROM take_from_windows(%(windows)s::jsonb) AS recipient
 CROSS JOIN (SELECT EXISTS (SELECT FROM users WHERE has_proved(users, %(address)s::text))) AS known (is_proved)
  LEFT JOIN LATERAL add_to_count((CASE WHEN %(site)s::text IS NOT NULL THEN %(channel)s::text || '_tenth' END, %(site)s::text,
                                  NULL, NULL, %(seconds)s::integer)::failure_limit, 1) AS tenth ON true
 CROSS JOIN LATERAL (SELECT coalesce(tenth.count > greatest(1, %(most)s::integer / 10), false)
                            AND NOT (is_proved AND recipient.remaining < 0 IS NOT TRUE)) AS network (is_over)
  LEFT JOIN LATERAL add_to_count((%(channel)s::text || CASE WHEN is_over THEN '_over' ELSE '' END,
                                  NULL, NULL, NULL, %(seconds)s::integer)::failure_limit, 1) AS total ON true
 CROSS JOIN LATERAL (SELECT CASE WHEN is_over THEN 'tenth'
                                 WHEN total.count > CASE WHEN is_proved <> (%(channel)s::text = 'mail') THEN %(most)s::integer
                                                         WHEN %(channel)s::text = 'sms' THEN (%(most)s::integer * 3 + 3) / 4 END
                                 THEN 'total'
                                 WHEN recipient.remaining < 0 THEN 'recipient' END) AS found (refused_by)
"""


def compare(tables: Tables) -> Compared:
    """Each user has earlier notices, and gets one of the same kind."""
    ids = insert_users(tables, tables.cases)
    tables.insert("outbox", [earlier(tables, id) for id in ids for _ in range(tables.one_of(0, 1, 2))])
    for channel, address in (("email", "a@example.com"), ("sms", "+4915100000000")):
        tables.run(
            """SELECT write_message(gen_random_uuid(), u.id, 'email_changed', %(address)s, '{"new": true}',
                                    is_notice => true)
                 FROM users AS u
                WHERE EXISTS (SELECT FROM outbox AS m WHERE m.user_id = u.id AND m.channel = %(channel)s)""",
            address=address,
            channel=channel,
        )
    rows = tables.all(
        """SELECT m.next_attempt_at, m.channel = 'email' AS is_mail,
                  (SELECT max(coalesce(earlier.finished_at, earlier.next_attempt_at)) FROM outbox AS earlier
                    WHERE earlier.user_id = m.user_id AND earlier.channel = m.channel AND earlier.is_notice
                      AND earlier.kind = m.kind AND NOT earlier.variables ? 'new') AS previous
             FROM outbox AS m WHERE m.variables ? 'new'"""
    )
    return Compared(tables.seed, [(tables.now, row) for row in rows], [row.next_attempt_at for row in rows])


def earlier(tables: Tables, owner: str) -> dict[str, Any]:
    is_mail = tables.chance(0.5)
    finished_at = tables.maybe_ago(0.5, MINUTE, 10 * MINUTE, HOUR)
    return {
        "id": tables.id(),
        "user_id": owner,
        "channel": "email" if is_mail else "sms",
        "kind": tables.one_of("email_changed", "email_changed", "phone_changed"),
        "recipient": "a@example.com" if is_mail else "+4915100000000",
        "variables": {},
        "attempts": tables.one_of(0, 0, 1),
        "created_at": tables.now,
        "next_attempt_at": tables.ago(timedelta(0), 10 * MINUTE, -MINUTE),
        "finished_at": finished_at,
        "outcome": "sent" if finished_at else None,
        "is_notice": tables.chance(0.7),
    }


def decide(rules, each) -> Any:
    now, row = each
    return rules.due_at(row.previous, is_mail=row.is_mail, now=now)


def compare_totals(tables: Tables) -> Compared:
    """Each request is a statement of its own, with windows of its own: of as many seconds as no other."""
    insert_users(tables, 20)
    addresses = tables.all(
        "SELECT email AS value, email_proved AS is_proved FROM users WHERE email IS NOT NULL"
    )
    cases, answers = [], []
    for place in range(tables.cases // 2):
        seconds, channel = 10_000 + place, tables.one_of("mail", "sms")
        address, most = tables.one_of(*addresses), tables.one_of(4, 20, 40)
        site = tables.one_of(None, "203.0.113.0/24", "203.0.113.0/24")
        of_network, total = tables.one_of(*range(6)), most * tables.one_of(3, 4) // 4 - tables.one_of(0, 1, 2)
        counted = [
            count(tables, f"{channel}_tenth {site} {seconds}", of_network),
            count(tables, f"{channel} {seconds}", total),
        ]
        tables.insert("failure_counts", [each for each in counted if each["count"] > 0])
        amount = tables.one_of(None, 0, 1)
        window = {"kind": "nobody", "subject": str(place), "amount": amount, "seconds": 60}
        (told,) = tables.all(
            TOTALS_SQL,
            address=address.value,
            windows=json.dumps([] if amount is None else [window]),
            site=site,
            channel=channel,
            most=most,
            seconds=seconds,
        )
        counts = {
            "of_network": None if site is None else of_network + 1,
            "total": total + 1,
            "recipient_left": None if amount is None else amount - 1,
        }
        cases.append((channel, most, address.is_proved, counts))
        answers.append(told.refused_by)
    return Compared(tables.seed, cases, answers)


def count(tables: Tables, key: str, so_far: int) -> dict[str, Any]:
    return {"key": key, "count": so_far, "expires_at": tables.now + HOUR}


def decide_total(rules, each) -> str | None:
    channel, most, is_proved, counts = each
    left = counts["recipient_left"]
    is_beyond = rules.is_beyond_tenth(counts["of_network"], most, is_proved=is_proved, recipient_left=left)
    return rules.what_stops_message(
        channel, counts["total"], most, is_beyond=is_beyond, is_proved=is_proved, recipient_left=left
    )


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), messages, decide, MUTANTS)


def test_python_stops_messages_as_the_statement_and_no_mutant_does(tables):
    check(compare_totals(tables), messages, decide_total, MUTANTS_OF_TOTALS)
