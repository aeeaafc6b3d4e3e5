"""The numbers that documents promise are those of the code, and each stands there once."""

import re
from typing import Any

import pytest

from auth.factors import webauthn
from auth.senders import hooks, http, webhooks
from auth.settings import constants
from auth.sign_in import oauth, reauthentication
from auth.tokens import api_keys, client_tokens, one_time
from tests.support.contract import OPENAPI
from tests.test_homes import with_sql
from tests.test_structure import STATEMENTS

DOCS = OPENAPI.parent / "docs"
WORDS = {"an": 1, "two": 2, "three": 3, "five": 5, "seven": 7, "ten": 10, "twenty": 20}
MINUTE, HOUR, DAY = 60, 3600, 86_400


def number_in(statement: str, pattern: str) -> int:
    (found,) = re.findall(pattern, STATEMENTS[statement].text)
    return int(found)


# A document, its words with the number, and that of the code.
PROMISES: list[tuple[str, str, float]] = [
    (
        "security.md",
        r"`fresh` is a sign-in, .+ of the last (\w+) minutes",
        reauthentication.PROOF_AGE / MINUTE,
    ),
    ("security.md", r"is stored hashed, and lives (\w+) hour;", one_time.LINK_LIFETIME / HOUR),
    ("security.md", r"It lives (\w+) minutes by SMS", one_time.SMS_CODE_LIFETIME / MINUTE),
    ("security.md", r"It lives (\w+) minutes by SMS or for our pages", one_time.PAGE_CODE_LIFETIME / MINUTE),
    ("security.md", r"or for our pages, otherwise (\w+) hour", one_time.MAIL_CODE_LIFETIME / HOUR),
    ("security.md", r"can redeem, once, within (\w+) minutes", one_time.AUTHORIZATION_CODE_LIFETIME / MINUTE),
    ("security.md", r"random bytes, good for (\w+) minutes", webauthn.CHALLENGE_LIFETIME / MINUTE),
    ("security.md", r"A flow is valid for (\w+) minutes", oauth.LIFETIME / MINUTE),
    ("security.md", r"added in the last (\w+) days", one_time.UNDO_LIFETIME / DAY),
    ("api-keys.md", r"A user has (\d+) keys at most", number_in("write_api_key", r"\) < (\d+)")),
    ("api-keys.md", r"which is valid for (\w+) minutes", api_keys.LIFETIME / MINUTE),
    ("openid.md", r"who signed in; for (\w+) hour", client_tokens.ID_TOKEN_LIFETIME / HOUR),
    ("webhooks.md", r"Answer 2xx within (\d+) seconds", http.TIMEOUT),
    ("webhooks.md", r"at most every 5 minutes, for (\w+) days", constants.GIVE_UP / DAY),
    ("hooks.md", r"There are (\d+) seconds in all", hooks.TIMEOUT),
    ("webhooks.md", r"The limit is (\d+) webhooks", webhooks.MAX_WEBHOOKS),
]


@pytest.mark.parametrize(("document", "words", "number"), PROMISES)
def test_number_of_a_document_is_that_of_the_code(document: str, words: str, number: Any):
    text = re.sub(r"\s+", " ", (DOCS / document).read_text())
    found = re.findall(words, text)
    assert {WORDS.get(each, each) for each in found} <= {int(number), str(int(number))}
    assert (bool(found), number) == (True, int(number))


def test_age_of_a_fresh_proof_is_one_number_in_sql_and_that_of_python(database):
    # The second is for nodes of 0.3.0.
    assert with_sql(r"interval '15 minutes'") == {"fresh_age", "proved_with_older"}
    assert database.value("SELECT extract(epoch FROM fresh_age())") == reauthentication.PROOF_AGE


def test_age_of_what_is_recent_is_one_number_in_sql_and_the_lifetime_of_the_links_of_notices(database):
    # The first other one is the age of a backup, the rest is for nodes of 0.3.0.
    others = {"select_health", "undone_since", "had_no_address"}
    assert with_sql(r"interval '7 days'") == {"recent_age", *others}
    assert database.value("SELECT extract(epoch FROM recent_age())") == one_time.UNDO_LIFETIME
