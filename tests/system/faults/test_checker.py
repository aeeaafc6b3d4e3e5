"""The checker of these tests finds lost and incomplete changes."""

import pytest

from tests.support.processes import PATIENT_GUNICORN, wait_until
from tests.system.faults import invariants

# Changes of one user's rows behind the service's back, and the violation that must be reported for each.
SABOTAGE = [
    ("UPDATE users SET user_metadata = '{\"n\": 0}' WHERE id = %(id)s", "and should be"),
    ("DELETE FROM identities WHERE user_id = %(id)s", "has 0 identities"),
    ("DELETE FROM user_objects WHERE user_id = %(id)s", "is misplaced"),
    ("UPDATE users SET password_hash = '$2b$04$' || repeat('.', 53) WHERE id = %(id)s", "the password: 401"),
    ("UPDATE outbox SET id = gen_random_uuid() WHERE id = (SELECT id FROM outbox LIMIT 1)", "never written"),
]


def test_checker_finds_every_kind_of_damage(deployment):
    with deployment.service(PATIENT_GUNICORN) as service:
        rows = deployment.rows()
        with deployment.load(service, clients_count=3) as history:
            wait_until(lambda: rows.count("users") > 2 * len(SABOTAGE), 240)
        invariants.deliver_all(rows)
        users = rows.all("SELECT id FROM users ORDER BY created_at")
        for user, (statement, _) in zip(users, SABOTAGE, strict=False):
            assert rows.run(statement, id=user.id) > 0
        history.note_spent("token", 1)
        history.note_spent("token", 1)
        with pytest.raises(AssertionError) as raised:
            invariants.check(history, deployment.post, rows)
        reports = [
            *(each for _, each in SABOTAGE),
            "a message never came",
            "a single-use secret worked 2 times",
        ]
        assert [each for each in reports if each not in str(raised.value)] == []
        history.client.close()
