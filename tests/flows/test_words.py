"""Every name that is stored has words: of the schema, the documented actions, the messages and the code."""

import re

import pytest

from auth.delivery import webhooks
from auth.delivery.messages import Templates
from auth.flows import words
from sql import schema

KINDS = {kind for _channel, kind in Templates("http://localhost", "http://localhost").kinds}
ROOT = schema.SCHEMA.parent
_SCHEMA = schema.SCHEMA.read_text()


def allowed(constraint: str) -> set[str]:
    """Return the values that a constraint of the schema names."""
    found = re.search(rf"CONSTRAINT {constraint} CHECK (\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))", _SCHEMA)
    assert found, constraint
    return set(re.findall(r"'([\w.]+)'", found[1]))


def documented_actions() -> set[str]:
    # tests/views/test_audit_log.py compares this list with the code.
    text = (ROOT / "docs" / "audit.md").read_text().partition("\n## Actions\n")[2]
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def reasons_of_deletions() -> set[str]:
    statements = "".join(path.read_text() for path in (ROOT / "sql").glob("*.sql"))
    return set(re.findall(r'"because": "(\w+)"', statements))


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (words.END_REASONS, allowed("session_end_reason_check")),
        (words.ORIGINS, allowed("users_made_by_check")),
        (words.FACTORS, allowed("factors_factor_type_check")),
        (words.OUTCOMES, allowed("outbox_outcome_check") - {"none"} | {"waiting"}),
        (words.CHANNELS, allowed("outbox_channel_check") - {"webhook"}),
        (words.DISABLED, allowed("webhooks_disabled_check")),
        (words.EVENTS, allowed("webhooks_events_check") | set(webhooks.EVENTS)),
        (words.ACTORS, allowed("audit_log_actor_check") - {"user", "anonymous"}),
        (words.MESSAGES, KINDS | allowed("one_time_tokens_purpose_check")),
        (words.BECAUSE, reasons_of_deletions()),
        ({**words.ACTS, **words.REFUSED}, documented_actions()),
    ],
)
def test_every_name_has_words(table, names):
    assert len(names) > 1
    assert names - table.keys() == set()


def test_details_are_words_and_what_users_wrote_is_quoted():
    details = {"method": "otp", "session_id": "1f0c-2a", "is_sent": False, "tries": 3}
    assert words.details(details) == "method a link or code, session id 1f0c-2a, is sent no, tries 3"
    forged = {"passkey": "Laptop, administrator carol@example.com"}
    assert words.details(forged) == "passkey “Laptop, administrator carol@example.com”"
