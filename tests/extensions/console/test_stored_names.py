"""No page of the console shows a name that is stored, such as `email_changed` or `auth.login`."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin

from auth.core.text.labels import names
from tests.support.audit import record, refuse
from tests.support.links import SITE
from tests.support.pages import Visitor
from tests.support.pages import words as words_of

_PLANT = """
INSERT INTO webhooks (id, url, events, secret, failing_since, disabled_at, disabled_reason)
SELECT gen_random_uuid(), 'http://127.0.0.1:9/', %(events)s, '', now(),
       CASE WHEN reason <> '' THEN now() END, nullif(reason, '')
  FROM unnest(%(disabled)s || ARRAY['']) AS reason;
INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, finished_at)
SELECT gen_random_uuid(), %(id)s, channel, kind, '+491701234567', 'failed', now()
  FROM unnest(%(kinds)s) AS kind CROSS JOIN unnest(%(channels)s) AS channel;
INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, finished_at)
SELECT gen_random_uuid(), %(id)s, 'email', 'recovery', 'alice@example.com', nullif(outcome, 'waiting'),
       CASE WHEN outcome <> 'waiting' THEN now() END
  FROM unnest(%(outcomes)s) AS outcome;
INSERT INTO outbox (id, user_id, channel, kind, recipient, variables, outcome, finished_at)
SELECT gen_random_uuid(), %(id)s, 'webhook', event, w.id,
       '{"event_id": "1", "timestamp": "2026-01-31T12:00:00Z", "data": {}}', nullif(outcome, 'waiting'),
       CASE WHEN outcome <> 'waiting' THEN now() END
  FROM (SELECT id FROM webhooks WHERE disabled_at IS NULL) AS w
 CROSS JOIN unnest(%(events)s) AS event
 CROSS JOIN unnest(%(outcomes)s) AS outcome;
INSERT INTO sessions (user_id, method, created_at, ended_at, end_reason)
SELECT %(id)s, method, '2026-01-01', now() - n * interval '1 minute', reason
  FROM unnest(%(reasons)s) WITH ORDINALITY AS ends (reason, n) CROSS JOIN unnest(%(methods)s) AS method;
"""
# The values of settings contain names of files.
SETTINGS = f"{SITE}/console/settings"
_STORED = re.compile(r"\b[a-z]+_[a-z_]+\b|\b(?:user|auth)\.[a-z]+\b")


def pages(visitor: Visitor, start: str) -> Iterator[str]:
    """Visit all pages of the console, those of refused actions too, and yield the URL of each."""
    waiting, seen = [start], {start, SETTINGS}
    while waiting:
        page = visitor.visit(waiting.pop())
        assert page.status in (200, 403, 409), page.url
        yield page.url
        links = {urldefrag(urljoin(page.url, link)).url for link in re.findall(r'href="([^"]+)"', page.text)}
        new_links = {link.replace("&amp;", "&") for link in links if "/console" in link} - seen
        seen |= new_links
        waiting += new_links
        assert len(seen) < 500


def test_pages_show_words_in_place_of_stored_names(armed, alice, database):
    details: dict[str, Any] = {
        "kind": "signup_attempt",
        "purpose": "sms_signup",
        "scope": "local",
        "method": "webauthn",
    }
    for action in names("acts"):
        record(database, alice.id, action, session_id="7", factor_type="totp", **details)
    for action in names("refused"):
        refuse(database, alice.id, action, "weak_password")
    for reason in names("reasons"):
        refuse(database, alice.id, "change_refused", reason)
    values = {
        "events": names("events"),
        "disabled": names("disabled"),
        "kinds": names("messages"),
        "channels": names("channels"),
        "outcomes": names("outcomes"),
        "reasons": names("end_reasons"),
        "methods": names("methods"),
    }
    database.run(_PLANT, id=alice.id, **{name: list(table) for name, table in values.items()})
    stored = set()
    for url in pages(armed, "/console"):
        # Names that operators type elsewhere stand in <code>.
        text = re.sub(r"(?s)<(code|pre)\b.*?</\1>", "", armed.page.text)
        armed.page.text = text
        stored |= {(name, url) for name in _STORED.findall(words_of(armed.page))}
    assert stored == set()
