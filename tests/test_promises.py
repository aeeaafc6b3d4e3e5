"""The numbers that documents promise are those of the code, and each stands there once."""

import ast
import re
from typing import Any

import pytest

from auth.core import promises
from auth.core.promises import DAY, HOUR, MINUTE
from tests.support.contract import OPENAPI
from tests.test_homes import sql_bodies, with_sql
from tests.test_structure import SOURCES, nodes

DOCS = OPENAPI.parent / "docs"
WORDS = {"an": 1, "a": 1, "two": 2, "three": 3, "five": 5, "seven": 7, "nine": 9, "ten": 10, "twenty": 20}
BODIES = dict(sql_bodies())


def number_in(name: str, pattern: str) -> int:
    """Return the number that a statement or function has."""
    (found,) = re.findall(pattern, BODIES[name])
    return int(found)


CODES_A_DAY = promises.WRONG_CODES_A_DAY
# A document, its words with the number, and that of the code. Those of `number_in` stand in SQL alone: nodes of
# 0.3.0 call the function, or many functions do, which would have to hand it on.
PROMISES: list[tuple[str, str, float]] = [
    ("security.md", r"`fresh` is a sign-in, .+ of the last (\w+) minutes", promises.PROOF_AGE / MINUTE),
    ("security.md", r"is stored hashed, and lives (\w+) hour;", promises.LINK_LIFETIME / HOUR),
    ("security.md", r"in a mailed invitation or a notice, (\w+) days", promises.INVITATION_LIFETIME / DAY),
    ("security.md", r"added in the last (\w+) days", promises.UNDO_LIFETIME / DAY),
    ("security.md", r"It lives (\w+) minutes by SMS", promises.SMS_CODE_LIFETIME / MINUTE),
    ("security.md", r"It lives (\w+) minutes by SMS or for our pages", promises.PAGE_CODE_LIFETIME / MINUTE),
    ("security.md", r"or for our pages, otherwise (\w+) hour", promises.MAIL_CODE_LIFETIME / HOUR),
    (
        "security.md",
        r"can redeem, once, within (\w+) minutes",
        promises.AUTHORIZATION_CODE_LIFETIME / MINUTE,
    ),
    ("security.md", r"the (\w+) newest links work", number_in("is_good_link", r"(\d+) > \(SELECT")),
    ("security.md", r"(\w+) wrong codes from a network disable", promises.TRIES),
    ("security.md", r"(\w+) a day all codes of the address", CODES_A_DAY["code"]),
    ("security.md", r"all others together \| (\d+) ", CODES_A_DAY["totp"]),
    ("security.md", r"all others together \| \d+ \| (\d+) ", CODES_A_DAY["recovery"]),
    ("security.md", r"one of the last (\w+) where", number_in("is_known_network", r"LIMIT (\d+)")),
    ("security.md", r"in the last day \((\w+) a day\)", number_in("record_mail_proof", r"(\d+) > \(SELECT")),
    ("security.md", r"A challenge takes (\w+) tries", promises.TRIES),
    ("security.md", r"random bytes, good for (\w+) minutes", promises.CHALLENGE_LIFETIME / MINUTE),
    ("security.md", r"at most (\w+) for each purpose and factor", promises.MOST_CHALLENGES),
    (
        "security.md",
        r"unverified factor\*\* can be verified for (\w+) minutes",
        promises.ENROLMENT_LIFETIME / MINUTE,
    ),
    ("security.md", r"Of more than (\w+), the oldest goes", promises.MOST_UNVERIFIED_FACTORS),
    ("security.md", r"A flow is valid for (\w+) minutes", promises.FLOW_LIFETIME / MINUTE),
    (
        "security.md",
        r"by mail (\w+) minutes after the previous notice",
        number_in("write_message", r"THEN (\d+) ELSE"),
    ),
    (
        "security.md",
        r"by SMS (\w+) hour after it",
        number_in("write_message", r"ELSE (\d+) END\)") / 60,
    ),
    (
        "security.md",
        r"no entry of the last (\d+) hours",
        number_in("delete_old_entries", r"interval '(\d+) day") * 24,
    ),
    ("security.md", r"no more than (\w+) in a row while a notice", promises.MOST_CODES_IN_A_ROW),
    ("security.md", r"user agent of the sign-in \| (\d+) days", promises.ENDED_KEPT / DAY),
    ("security.md", r"(\w) year after the last time", promises.NETWORKS_KEPT / DAY / 365),
    ("api-keys.md", r"A user has (\d+) keys at most", promises.MOST_API_KEYS),
    ("api-keys.md", r"which is valid for (\w+) minutes", promises.API_KEY_TOKEN_LIFETIME / MINUTE),
    ("api-keys.md", r"and is deleted (\d+) days later", promises.ENDED_KEPT / DAY),
    ("audit.md", r"are kept for (\d+) days after their end", promises.ENDED_KEPT / DAY),
    ("openid.md", r"who signed in; for (\w+) hour", promises.ID_TOKEN_LIFETIME / HOUR),
    (
        "openid.md",
        r"no user allows is deleted after (\w+) week",
        number_in("delete_unallowed_clients", r"created_at <= now\(\) - interval '(\d+)"),
    ),
    ("openid.md", r"or if there are (\d+) newer ones", number_in("delete_surplus_clients", r"OFFSET (\d+)")),
    ("webhooks.md", r"Answer 2xx within (\d+) seconds", promises.HTTP_TIMEOUT),
    ("webhooks.md", r"delivery is retried after (\d+) seconds", promises.FIRST_PAUSE),
    ("webhooks.md", r"at most every (\d+) minutes, for", promises.LONGEST_PAUSE / MINUTE),
    ("webhooks.md", r"`Retry-After` \(at most (\w+) hour\)", promises.LONGEST_RETRY_AFTER / HOUR),
    ("webhooks.md", r"at most every 5 minutes, for (\w+) days", promises.GIVE_UP / DAY),
    ("webhooks.md", r"Up to (\w+) administrators get an email", promises.MOST_MAILS),
    ("webhooks.md", r"The limit is (\d+) webhooks", promises.MOST_WEBHOOKS),
    ("openid.md", r"accepts it for (\d+) hours more", promises.SECRET_OVERLAP / HOUR),
    ("openid.md", r"which is valid for (\w+) minutes", promises.LOGOUT_TOKEN_LIFETIME / MINUTE),
    ("webhooks.md", r"For (\d+) hours each event is signed with both", promises.SECRET_OVERLAP / HOUR),
    ("webhooks.md", r"Deliveries are listed for (\d+) days", promises.ENDED_KEPT / DAY),
    ("hooks.md", r"A hook has (\d+) seconds", promises.HOOK_TIMEOUT),
    ("hooks.md", r"and (\d+) times in all", promises.MOST_CALLS_OF_A_HOOK),
    ("doctor.md", r"has run for (\w+) minutes", promises.HEARTBEAT_LIMIT / MINUTE),
    ("doctor.md", r"has waited for more than (\w+) minutes", promises.LATE / MINUTE),
    ("doctor.md", r"has not run for (\w+) days", promises.BACKUP_LIMIT / DAY),
    ("../openapi.yaml", r"Creates (\w+) recovery codes", promises.RECOVERY_CODES),
    ("../openapi.yaml", r"A user has at most (\d+) keys", promises.MOST_API_KEYS),
    ("../openapi.yaml", r"At most (\d+) webhooks can exist", promises.MOST_WEBHOOKS),
]


@pytest.mark.parametrize(("document", "words", "number"), PROMISES)
def test_number_of_a_document_is_that_of_the_code(document: str, words: str, number: Any):
    text = re.sub(r"\s+", " ", (DOCS / document).read_text())
    found = re.findall(words, text)
    assert {WORDS.get(each.lower(), each) for each in found} <= {int(number), str(int(number))}
    assert (bool(found), number) == (True, int(number))


# Numbers in SQL that no constant hands over, and why.
IN_SQL = {
    "fresh_age": "the same as `PROOF_AGE`, see below; nodes of 0.3.0 call what calls it",
    "recent_age": "the same as `UNDO_LIFETIME`, see below; nodes of 0.3.0 call what calls it",
    "refusal_of_act": "nodes of 0.3.0 call it: a passkey counts for five minutes at least",
    "is_known_network": "all counts of failures call it; above",
    "record_mail_proof": "nodes of 0.3.0 call it; above",
    "is_good_link": "nodes of 0.3.0 call it; above",
    "write_logout": "a trigger; above",
    "write_message": "the pauses of notices; above",
    "join_notice": "how many changes a notice lists",
    "count_message": "a tenth and three quarters of a total, and /48",
    "page_of_users": "an estimate for the planner",
    "split_words": "estimates of a search",
    "found_in_sample": "how many are asked, of a table of which size",
    "total_of_users": "how many of a thousand are many",
    "use_browser_session": "how often a session is written",
    "is_stale_at_gate": "how often a session is written",
    "select_trusted_before": "the hour after the first factor",
    "delete_unallowed_clients": "Postgres looks it up by an index if it knows the number; above",
    "delete_surplus_clients": "above",
    "select_bulk_act": "as long as it is kept",
    "delete_old_bulk_acts": "acts on many users",
    "delete_expired_id_tokens": "the age at which they are refused anyway",
    "delete_unused_users": "a version of the schema",
    "delete_old_entries": "the least retention, whatever a caller wants; above",
    "select_last_message": "what the page of an address calls stuck",
    **dict.fromkeys(("count_hours", "active_users", "list_daily_counts", "list_failures"), "charts"),
    **dict.fromkeys(("count_outcomes_of_a_day", "list_key_ages", "list_failing_webhooks"), "days"),
    "select_health": "the last count of active users",
    "take_minute_of_audit": "the minute of the entries, and the one after it",
}
# Lengths of texts, keys and types, versions of Postgres, and units.
_PLAIN = {
    *(
        "export_snapshot",
        "bound_search",
        "count_needs_of_secret",
        "list_sealed_factors",
        "list_sealed_messages",
    ),
    *("list_sealed_removed_factors", "list_sealed_openid_keys", "list_sealed_webhooks", "removed_secret"),
    "list_sealed_providers",
    *("api_key_object", "record_refusal", "filtered_users", "place_in_moment", "is_listed"),
    *("statement_without_values", "write_to_disk", "visit_gate"),
}


def test_numbers_in_sql_are_handed_over_but_for_those_that_stand_there_alone():
    time = r"interval '\d+ (minute|hour|day|week|month|year)"
    # No part of a name, a lock's number, nor 0 to 2.
    number = r"(?<![\w.$:\[])(?!7239\d{6})([3-9]|\d{2,})\b(?!\])"
    found = {
        name
        for name, body in sql_bodies()
        if re.search(time, body) or re.search(number, re.sub("'[^']*'", "", body))
    }
    assert found == IN_SQL.keys() | _PLAIN


# Times in Python that happen to be as long as a promised one.
AS_LONG = {
    "auth/delivery/deliverer.py": "how often it cleans up, and how long a target is called slow",
    "auth/delivery/rendering.py": "the width of a picture",
    "auth/core/files.py": "abandoned temporary files",
    "auth/core/keys/rotation.py": "clocks that differ",
    "auth/operator/processes/embedded_postgres.py": "its start",
    "auth/web/html/brand.py": "what browsers cache",
    "auth/web/html/problems.py": "a status",
    "auth/core/providers/client.py": "the secret that Apple asks for",
    "auth/core/providers/id_tokens.py": "the keys of providers",
    "auth/delivery/senders/http_post.py": "a status",
    "auth/delivery/senders/sender.py": "the length of a reason",
    "auth/core/settings/__init__.py": "defaults and bounds of settings",
    "auth/domain/sign_in/arrivals.py": "a cookie",
    "auth/domain/sign_in/reauthentication.py": "the least on pages",
    "auth/core/text/moments.py": "a unit",
    "auth/api/well_known.py": "what clients cache",
    "auth/web/dialect.py": "a status",
    "auth/web/fields.py": "units",
}


def number_of(node: ast.AST) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = number_of(node.left), number_of(node.right)
        return left and right and left * right
    return None


def test_promised_times_and_names_stand_in_one_module():
    promised = {name: value for name, value in vars(promises).items() if name.isupper()}
    times = {value for value in promised.values() if isinstance(value, int) and value > MINUTE} - {DAY}
    others = SOURCES.keys() - {"auth/core/promises.py"}
    assert {s for s in others if times & {number_of(node) for node in nodes(s)}} == AS_LONG.keys()
    again = {
        f"{source}: {node.id}"
        for source in others
        for node in nodes(source)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in promised
    }
    assert again == set()


def test_age_of_a_fresh_proof_is_one_number_in_sql_and_that_of_python(database):
    assert with_sql(r"interval '15 minutes'") == {"fresh_age"}
    assert database.value("SELECT extract(epoch FROM fresh_age())") == promises.PROOF_AGE


def test_age_of_what_is_recent_is_one_number_in_sql_and_the_lifetime_of_the_links_of_notices(database):
    assert with_sql(r"interval '7 days'") == {"recent_age"}
    assert database.value("SELECT extract(epoch FROM recent_age())") == promises.UNDO_LIFETIME
