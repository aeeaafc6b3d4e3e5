"""The numbers that documents promise are those of the code, and each stands there once."""

import re
from typing import Any

import pytest

from auth.core import constants
from auth.core.constants import DAY, HOUR, MINUTE
from auth.core.net.webhook_urls import EVENTS
from auth.rules import counts
from auth.rules.policy import FRESH_AGE
from tests.source.test_boundaries import sql_bodies
from tests.support.contract import OPENAPI

DOCS = OPENAPI.parent / "docs"
WORDS = {"an": 1, "a": 1, "two": 2, "three": 3, "five": 5, "seven": 7, "nine": 9, "ten": 10, "twenty": 20}
BODIES = dict(sql_bodies())


def number_in(name: str, pattern: str) -> int:
    """Return the number that a statement or function has."""
    (number,) = re.findall(pattern, BODIES[name])
    return int(number)


CODES_A_DAY = constants.WRONG_CODES_A_DAY
# A document, its words with the number, and the code's number. Those of `number_in` stand in SQL alone, since many
# callers would have to hand them on.
PROMISES: list[tuple[str, str, float]] = [
    (
        "security.md",
        r"`fresh` is a sign-in, .+ of the last (\w+) minutes",
        FRESH_AGE.total_seconds() / MINUTE,
    ),
    ("security.md", r"is stored hashed, and lives (\w+) hour;", constants.LINK_LIFETIME / HOUR),
    ("security.md", r"in a mailed invitation or a notice, (\w+) days", constants.INVITATION_LIFETIME / DAY),
    ("security.md", r"added in the last (\w+) days", constants.UNDO_LIFETIME / DAY),
    ("security.md", r"It lives (\w+) minutes by SMS", constants.SMS_CODE_LIFETIME / MINUTE),
    ("security.md", r"It lives (\w+) minutes by SMS or for our pages", constants.PAGE_CODE_LIFETIME / MINUTE),
    ("security.md", r"\*\*A recovery\*\* of the last (\w+) minutes", constants.PAGE_CODE_LIFETIME / MINUTE),
    ("security.md", r"or for our pages, otherwise (\w+) hour", constants.MAIL_CODE_LIFETIME / HOUR),
    (
        "security.md",
        r"can redeem, once, within (\w+) minutes",
        constants.AUTHORIZATION_CODE_LIFETIME / MINUTE,
    ),
    ("security.md", r"the (\w+) newest links work", number_in("is_good_link", r"(\d+) > \(SELECT")),
    ("security.md", r"(\w+) wrong codes from a network disable", constants.TRIES),
    ("security.md", r"(\w+) a day all codes of the address", CODES_A_DAY["code"]),
    ("security.md", r"all others together \| (\d+) ", CODES_A_DAY["totp"]),
    ("security.md", r"all others together \| \d+ \| (\d+) ", CODES_A_DAY["recovery"]),
    ("security.md", r"one of the last (\w+) where", counts.KNOWN_NETWORKS),
    ("security.md", r"in the last day \((\w+) a day\)", counts.MAIL_PROOFS),
    ("security.md", r"A challenge takes (\w+) tries", constants.TRIES),
    ("security.md", r"random bytes, valid for (\w+) minutes", constants.CHALLENGE_LIFETIME / MINUTE),
    ("security.md", r"at most (\w+) for each purpose and factor", constants.MOST_CHALLENGES),
    (
        "security.md",
        r"unverified app or security key\*\* can be verified for (\w+) minutes",
        constants.ENROLMENT_LIFETIME / MINUTE,
    ),
    ("factors.md", r"Without a use it is deleted after (\w+) days", constants.UNUSED_PASSKEY_LIFETIME / DAY),
    ("factors.md", r"asked again in this browser for (\w+) days", constants.NEXT_PASSKEY_OFFER / DAY),
    ("security.md", r"Beyond (\w+), a new one replaces the oldest", constants.MOST_UNVERIFIED_FACTORS),
    ("security.md", r"A flow is valid for (\w+) minutes", constants.FLOW_LIFETIME / MINUTE),
    (
        "security.md",
        r"by mail (\w+) minutes after the previous notice",
        number_in("write_message_at", r"THEN (\d+) ELSE"),
    ),
    (
        "security.md",
        r"by SMS (\w+) hour after it",
        number_in("write_message_at", r"ELSE (\d+) END\)") / 60,
    ),
    (
        "security.md",
        r"no entry of the last (\d+) hours",
        number_in("delete_old_entries", r"interval '(\d+) day") * 24,
    ),
    ("security.md", r"no more than (\w+) in a row while a notice", constants.MOST_CODES_IN_A_ROW),
    ("security.md", r"user agent of the sign-in \| (\d+) days", constants.ENDED_KEPT / DAY),
    ("security.md", r"(\w) year after the last time", constants.NETWORKS_KEPT / DAY / 365),
    ("api-keys.md", r"A user has (\d+) keys at most", constants.MOST_API_KEYS),
    ("api-keys.md", r"which is valid for (\w+) minutes", constants.API_KEY_TOKEN_LIFETIME / MINUTE),
    ("api-keys.md", r"and is deleted (\d+) days later", constants.ENDED_KEPT / DAY),
    ("api-keys.md", r"There are (\d+) at most", constants.MOST_ADMIN_KEYS),
    ("api-keys.md", r"nobody has used for (\d+) days", constants.UNUSED_ADMIN_KEY / DAY),
    ("doctor.md", r"has used an .+ for (\d+) days", constants.UNUSED_ADMIN_KEY / DAY),
    ("audit.md", r"are kept for (\d+) days after their end", constants.ENDED_KEPT / DAY),
    ("openid.md", r"user to the application; for (\w+) hour", constants.ID_TOKEN_LIFETIME / HOUR),
    (
        "openid.md",
        r"without a grant is deleted after (\w+) week",
        number_in("delete_unallowed_clients", r"created_at <= now\(\) - interval '(\d+)"),
    ),
    ("openid.md", r"or if there are (\d+) newer ones", number_in("delete_surplus_clients", r"OFFSET (\d+)")),
    ("webhooks.md", r"Answer 2xx within (\d+) seconds", constants.HTTP_TIMEOUT),
    ("webhooks.md", r"delivery is retried after (\d+) seconds", constants.FIRST_PAUSE),
    ("webhooks.md", r"at most every (\d+) minutes, for", constants.LONGEST_PAUSE / MINUTE),
    ("webhooks.md", r"`Retry-After` \(at most (\w+) hour\)", constants.LONGEST_RETRY_AFTER / HOUR),
    ("webhooks.md", r"at most every 5 minutes, for (\w+) days", constants.GIVE_UP / DAY),
    ("webhooks.md", r"Up to (\w+) administrators get an email", constants.MOST_MAILS),
    ("webhooks.md", r"The limit is (\d+) webhooks", constants.MOST_WEBHOOKS),
    ("openid.md", r"accepts it for (\d+) hours more", constants.SECRET_OVERLAP / HOUR),
    ("openid.md", r"which is valid for (\w+) minutes", constants.LOGOUT_TOKEN_LIFETIME / MINUTE),
    ("webhooks.md", r"For (\d+) hours each event is signed with both", constants.SECRET_OVERLAP / HOUR),
    ("webhooks.md", r"Deliveries are listed for (\d+) days", constants.ENDED_KEPT / DAY),
    ("hooks.md", r"A hook has (\d+) seconds", constants.HOOK_TIMEOUT),
    ("hooks.md", r"and (\d+) times in all", constants.MOST_CALLS_OF_A_HOOK),
    ("doctor.md", r"has run for (\w+) minutes", constants.HEARTBEAT_LIMIT / MINUTE),
    ("doctor.md", r"has waited for more than (\w+) minutes", constants.LATE / MINUTE),
    ("doctor.md", r"has not run for (\w+) days", constants.BACKUP_LIMIT / DAY),
    ("../openapi.yaml", r"Creates (\w+) recovery codes", constants.RECOVERY_CODES),
    ("../openapi.yaml", r"A user has at most (\d+) keys", constants.MOST_API_KEYS),
    ("../openapi.yaml", r"At most (\d+) webhooks can exist", constants.MOST_WEBHOOKS),
]


@pytest.mark.parametrize(("document", "words", "number"), PROMISES)
def test_number_of_a_document_is_that_of_the_code(document: str, words: str, number: Any):
    text = re.sub(r"\s+", " ", (DOCS / document).read_text())
    matches = re.findall(words, text)
    assert {WORDS.get(each.lower(), each) for each in matches} <= {int(number), str(int(number))}
    assert (bool(matches), number) == (True, int(number))


def test_guide_of_webhooks_explains_each_event():
    text = (DOCS / "webhooks.md").read_text().partition("\n## Events\n")[2].partition("```")[0]
    assert re.findall(r"`([a-z]+\.[a-z]+)`", text) == list(EVENTS)
