"""The checker of these tests finds every change that is lost, doubled or half done."""

import uuid

from tests.support.processes import PATIENT_GUNICORN, wait_until
from tests.system.faults import invariants

# A change to the rows behind the service's back, and the violation that must be reported.
SABOTAGE = {
    "a user is lost": ("DELETE FROM users WHERE id = (SELECT id FROM users LIMIT 1)", "and should be"),
    "a change is lost": (
        "UPDATE users SET user_metadata = '{\"n\": 0}' WHERE id = (SELECT id FROM users LIMIT 1)",
        "and should be",
    ),
    "a ban is lost": ("UPDATE users SET banned_until = NULL", "and should be"),
    "a log-out is lost": ("UPDATE sessions SET ended_at = NULL, end_reason = NULL", "and should be"),
    "a session is lost": ("DELETE FROM sessions WHERE ended_at IS NULL", "and should be"),
    "a refresh is lost": (
        "UPDATE sessions SET counter = counter - 1 WHERE counter > 0 AND ended_at IS NULL",
        "and should be",
    ),
    "a user has no identity": (
        "DELETE FROM identities WHERE id = (SELECT id FROM identities LIMIT 1)",
        "has 0 identities",
    ),
    "a user's object is stale": ("UPDATE user_objects SET object = '{}'", "is stale"),
    "a message is lost": (
        "DELETE FROM outbox WHERE id = (SELECT id FROM outbox WHERE kind <> 'none' LIMIT 1)",
        "a message came that was never written",
    ),
    "a mail is not sent": (
        "INSERT INTO outbox (id, channel, kind, recipient, outcome, finished_at) VALUES (gen_random_uuid(), 'email', 'x', 'x@x.org', 'sent', now())",
        "a message never came",
    ),
    "a password is another": (
        "UPDATE users SET password_hash = '$2b$04$' || repeat('.', 53)",
        "the password: 401",
    ),
    "a user was never created": (
        "INSERT INTO users (email, made_by) VALUES ('c0-0-0@example.com', 'signup')",
        "no client signed up as",
    ),
}


def test_checker_finds_every_kind_of_damage(deployment):
    with deployment.service(PATIENT_GUNICORN) as service:
        rows = deployment.rows()

        def there_is_enough() -> bool:
            """Return whether each kind of row exists, and will after the three active users end their sessions."""
            is_refreshed = "id IN (SELECT user_id FROM sessions WHERE counter > 0 AND ended_at IS NULL)"
            refreshed, banned = (
                rows.count("users", is_refreshed),
                rows.count("users", "banned_until IS NOT NULL"),
            )
            return history.answered() > 300 and refreshed > 3 and banned > 0

        with deployment.load(service, clients_count=3) as history:
            wait_until(there_is_enough, 240)
        wait_until(lambda: rows.count("outbox", "outcome IS NULL") == 0, 30)
        rows.run("CREATE SCHEMA kept")
        tables = ("users", "identities", "sessions", "outbox")
        for table in tables:
            rows.run(f"CREATE TABLE kept.{table} AS SELECT * FROM public.{table}")
        invariants.check(history, deployment.post, rows)
        missed = []
        for name, (statement, said) in SABOTAGE.items():
            # The last check refreshed and ended sessions: restore the rows.
            rows.run("; ".join(f"DELETE FROM public.{table}" for table in reversed(tables)))
            for table in tables:
                rows.run(f"INSERT INTO public.{table} SELECT * FROM kept.{table}")
            assert rows.run(statement) > 0, name
            try:
                invariants.check(history, deployment.post, rows)
            except AssertionError as error:
                if said not in str(error):
                    missed.append(f"{name}: {error}")
            else:
                missed.append(name)
        history.client.close()
    assert not missed, "\n".join(missed)


def test_checker_finds_a_secret_that_works_twice(deployment):
    with deployment.service(PATIENT_GUNICORN) as service, deployment.load(service) as history:
        token = str(uuid.uuid4())
        history.note_spent(token, 1)
        history.note_spent(token, 1)
    assert history.violations == ["a single-use secret worked 2 times"]
    history.client.close()
