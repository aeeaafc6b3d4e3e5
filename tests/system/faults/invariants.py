"""Invariants that hold after a fault, for each person and for the database as a whole."""

import random
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.processes import wait_until
from tests.support.tables import Rows
from tests.support.users import refresh, sign_in
from tests.system.faults.history import History, Person, State
from tests.system.faults.mail import Post

# The number of persons that are also checked over HTTP; the rows of all are checked.
CHECKED_OVER_HTTP = 150
_PERSONS = """
SELECT u.email, u.id, u.email_confirmed_at IS NOT NULL AS confirmed, u.banned_until > now() AS banned,
       u.user_metadata -> 'n' AS number,
       (SELECT count(*) FROM identities AS identity WHERE identity.user_id = u.id) AS identities,
       (SELECT coalesce(json_agg(json_build_array(id, counter)), '[]') FROM sessions WHERE user_id = u.id AND ended_at IS NULL) AS live
  FROM users AS u
"""


def check(history: History, post: Post, rows: Rows) -> None:
    """Check everything against the history, and fail with all violations."""
    deliver_all(rows)
    violations = [
        *history.violations,
        *_wrong_rows(history, rows),
        *_wrong_messages("email", post.by_id(), rows),
        *_wrong_answers(history, rows),
    ]
    assert not violations, f"{len(violations)} violations, {history.summary()}:\n" + "\n".join(
        violations[:40]
    )


def deliver_all(rows: Rows) -> None:
    """Wait until the outbox is empty, making deferred and leased messages due."""

    def none_waits() -> bool:
        rows.run("UPDATE webhooks SET retry_at = NULL WHERE retry_at IS NOT NULL")
        rows.run(
            "UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL AND (last_error IS NOT NULL OR next_attempt_at > now() + interval '5 s')"
        )
        return rows.count("outbox", "outcome IS NULL") == 0

    wait_until(none_waits, 60)


def _wrong_rows(history: History, rows: Rows) -> list[str]:
    violations = []
    rows_by_email = {row.email: row for row in rows.all(_PERSONS)}
    mails: defaultdict[str, list[str]] = defaultdict(list)
    # A notice with several changes has the same number of times.
    for row in rows.all(
        "SELECT recipient, kind, coalesce((variables ->> 'times')::integer, 1) AS times"
        " FROM outbox WHERE channel = 'email'"
    ):
        mails[row.recipient] += row.times * [row.kind]
    for person in history.persons:
        row, kinds = rows_by_email.pop(person.email, None), tuple(sorted(mails.pop(person.email, [])))
        matching = [state for state in person.states() if _is(row, kinds, state, history.may_lose_counters)]
        if not matching:
            expected = " or ".join(map(str, person.states()))
            violations.append(
                f"{person.email} (in doubt: {person.unanswered or 'no'}) is {row} with {kinds}, and should be {expected}"
            )
            continue
        person.state, person.after = matching[0], None
        if row is not None:
            person.id = row.id
            if row.identities != 1:
                violations.append(f"{person.email} has {row.identities} identities")
    violations += [f"{row.email} is misplaced in the order by last sign-in" for row in rows.misplaced()]
    violations += [f"no client signed up as {email}" for email in rows_by_email if email.startswith("c")]
    violations += [
        f"mail to {email}, a user that never existed: {kinds}"
        for email, kinds in mails.items()
        if email.startswith("c")
    ]
    return violations


def _is(row: Any, kinds: tuple[str, ...], state: State, may_lose_counters: bool) -> bool:
    """Return whether a user's rows match a state. A session whose counter may be behind its token is checked
    later over HTTP: it must work.
    """
    if row is None:
        return not state.exists and kinds == state.mails
    live = dict(row.live)
    counters = [(live[id], counter) for id, counter in state.live if id in live]
    return (
        state.exists
        and (row.confirmed, bool(row.banned), row.number, kinds)
        == (state.confirmed, state.banned, state.number, state.mails)
        and all(
            counter_in_row == counter_in_token or (may_lose_counters and counter_in_row < counter_in_token)
            for counter_in_row, counter_in_token in counters
        )
        and len(live) == len(counters) + state.untold
        and len(counters) == len(state.live)
    )


def _wrong_messages(channel: str, arrived: Mapping[str, list[tuple[str, ...]]], rows: Rows) -> list[str]:
    """Check that each committed message arrived with its own id, and no other message did.

    A message may arrive twice under one id. `arrived` maps ids to the recipient and the content.
    """
    violations = []
    message_rows = rows.all(
        "SELECT id, kind, recipient, outcome, one_time_token_id AS link, user_id FROM outbox WHERE channel = %(channel)s",
        channel=channel,
    )
    messages = {row.id: row for row in message_rows}
    users = {row.id for row in rows.all("SELECT id FROM users")}
    for id, mails in arrived.items():
        if id not in messages:
            violations.append(f"a message came that was never written: {mails}")
        elif {mail[0] for mail in mails} != {messages[id].recipient} or len(set(mails)) > 1:
            violations.append(f"one id, and different messages: {mails}")
    for id, message in messages.items():
        # A link that is void because its user is gone is not sent.
        is_void = message.outcome == "void" and message.link is not None and message.user_id not in users
        if id not in arrived and not is_void:
            violations.append(f"a message never came: {message}")
    return violations


def _wrong_answers(history: History, rows: Rows) -> list[str]:
    """Check persons over HTTP: the password, the sessions, and old refresh tokens."""
    rows.run(
        "UPDATE sessions SET refreshed_at = refreshed_at - interval '10 min', created_at = created_at - interval '10 min' WHERE ended_at IS NULL"
    )
    client = history.client
    persons = [
        person for person in history.persons if person.sessions or person.state.exists or person.unanswered
    ]
    chosen = random.Random(1).sample(persons, min(CHECKED_OVER_HTTP, len(persons)))
    chosen += [person for person in persons if person.unanswered and person not in chosen][:CHECKED_OVER_HTTP]

    def wrong_of(person: Person) -> list[str]:
        try:
            return _wrong_of(person, client)
        except AssertionError as error:
            return [f"{person.email}: {error}"]  # the response violates openapi.yaml

    with ThreadPoolExecutor(4) as threads:
        return [line for lines in threads.map(wrong_of, chosen) for line in lines]


def _wrong_of(person: Person, client: Any) -> list[str]:
    violations = []

    def expect(subject: str, answer: Any, *statuses: int) -> None:
        if answer.status_code not in statuses:
            violations.append(
                f"{person.email}: {subject}: {answer.status_code} {answer.get_data(as_text=True)[:200]}, and not {statuses}; {person.state}"
            )

    state, live = person.state, person.live()
    for each in person.sessions:
        if each not in live:
            expect("a dead session", client.get("/user", headers=each.session.authorization), 401, 403)
            expect("a dead session's refresh token", refresh(client, each.session.refresh_token), 400)
    if not state.exists:
        return violations
    expected = 403 if state.banned or not state.confirmed else 200
    if person.unanswered == "PUT /user":
        # The rows have shown whether it is the old or the new password.
        expect("the password", sign_in(client, person.email, state.password), 200)
    elif state.password:
        expect("the password", sign_in(client, person.email, state.password), expected)
    for each in live:
        answer = client.get("/user", headers=each.session.authorization)
        expect("a live session", answer, 200)
        # This works even if the response of the last refresh was lost, ten minutes ago.
        expect("its newest refresh token", refresh(client, each.refresh_tokens[-1]), 200)
        if len(each.refresh_tokens) > 1:
            expect("an old refresh token", refresh(client, each.refresh_tokens[-2]), 400)
            expect("all others after it", refresh(client, each.refresh_tokens[-1]), 400)
    return violations
