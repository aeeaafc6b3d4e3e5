"""Every stored name has a label: those of the schema, the documented actions, the messages and the code."""

import re

import pytest

from auth.core.net.webhook_urls import EVENTS
from auth.core.text import labels
from auth.flows import failure_counts
from sql import schema
from tests.delivery.test_mail_templates import TEMPLATES

KINDS = {kind for _channel, kind in TEMPLATES.kinds}
ROOT = schema.SCHEMA.parent
_SCHEMA = schema.SCHEMA.read_text()


def allowed(constraint: str) -> set[str]:
    """Return the values that a constraint of the schema names."""
    match = re.search(rf"CONSTRAINT {constraint} CHECK (\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))", _SCHEMA)
    assert match, constraint
    return set(re.findall(r"'([\w.]+)'", match[1]))


def documented_actions() -> set[str]:
    # tests/flows/history/test_audit_log.py compares this list with the code.
    text = (ROOT / "docs" / "audit.md").read_text().partition("\n## Actions\n")[2]
    return set(re.findall(r"\w+", " ".join(re.findall(r"^- (`[^:]+`)", text, re.MULTILINE))))


def reasons_of_deletions() -> set[str]:
    statements = "".join(path.read_text() for path in (ROOT / "sql").glob("*.sql"))
    return set(re.findall(r'"because": "(\w+)"', statements))


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("end_reasons", allowed("session_end_reason_check")),
        ("origins", allowed("users_made_by_check")),
        ("factors", allowed("factors_factor_type_check")),
        ("outcomes", allowed("outbox_outcome_check") - {"none"} | {"waiting"}),
        ("channels", allowed("outbox_channel_check") - {"webhook"}),
        ("disabled", allowed("webhooks_disabled_check")),
        ("events", allowed("webhooks_events_check") | set(EVENTS)),
        ("actors", allowed("audit_log_actor_check") - {"user", "anonymous"}),
        ("messages", KINDS | allowed("one_time_tokens_purpose_check")),
        ("because", reasons_of_deletions()),
        ("counts", set(failure_counts.KINDS)),
        ("used_up", {*failure_counts.KINDS.values(), "strangers"}),
        (("acts", "refused"), documented_actions()),
    ],
)
def test_every_name_has_a_label(table, names):
    assert len(names) > 1
    tables = (table,) if isinstance(table, str) else table
    missing = [
        f"auth/core/text/console/en.toml: [{tables[0]}] lacks {name}"
        for name in names - labels.names(*tables)
    ]
    assert sorted(missing) == []


def test_schema_and_code_have_the_same_events():
    assert allowed("webhooks_events_check") == {*EVENTS}


def test_details_are_words_and_what_users_wrote_is_quoted():
    details = {"method": "otp", "session_id": "1f0c-2a", "is_sent": False, "of": 10, "tries": 12}
    text = "method: a link or code, session ID: 1f0c-2a, sent: no, attempt: 12 of 10"
    assert labels.details(details) == text
    assert labels.details({"of": None, "tries": None, "by": "signup"}) == "created: by signing up"
    forged = {"passkey": "Laptop, administrator carol@example.com"}
    assert labels.details(forged) == "passkey: “Laptop, administrator carol@example.com”"
