"""Authenticator apps of people."""

import time
from dataclasses import dataclass
from typing import Any

import pyotp

from tests.support.users import Session, session_of


@dataclass(frozen=True)
class App:
    """An authenticator app, with one factor."""

    id: str
    secret: str

    def code(self, steps: int = 0) -> str:
        """Return the code of this time step, or of a later or earlier one."""
        return pyotp.TOTP(self.secret).at(time.time(), counter_offset=steps)

    def wrong_code(self) -> str:
        """Return a code of no step near this one."""
        near = {self.code(steps) for steps in range(-3, 4)}
        return next(code for code in ("000000", "111111", "222222", "333333") if code not in near)


def enrol(session: Session, name: str = "") -> App:
    response = session.prepared().post("/factors", json={"factor_type": "totp", "friendly_name": name})
    assert response.status_code == 200, response.text
    return App(response.json["id"], response.json["totp"]["secret"])


def challenge(session: Session, app: App) -> str:
    response = session.post(f"/factors/{app.id}/challenge")
    assert response.status_code == 200, response.text
    return response.json["id"]


def verify(session: Session, app: App, code: str | None = None, challenge_id: str | None = None) -> Any:
    body = {"challenge_id": challenge_id or challenge(session, app), "code": code or app.code()}
    return session.post(f"/factors/{app.id}/verify", json=body)


def raised(session: Session, app: App, steps: int = 0) -> Session:
    """Verify a factor, and return the session with its new tokens."""
    response = verify(session, app, app.code(steps))
    if steps < 0 and response.status_code == 422:  # the next step has just begun
        response = verify(session, app, app.code(steps))
    return session_of(session.client, response)


def set_up(session: Session, name: str = "") -> tuple[App, Session]:
    """Enrol a factor and verify it, with the code of the step before this one."""
    app = enrol(session, name)
    return app, raised(session, app, -1)


def prove_mail_elsewhere(database: Any) -> None:
    """Record a mailed link spent on another network for every user, as by a thief of the mailbox."""
    database.run(
        "INSERT INTO known_networks (user_id, network, mail_proved_at) SELECT id, '192.0.2.99', now() FROM users"
        " ON CONFLICT (user_id, network) DO UPDATE SET mail_proved_at = now()"
    )


def has_no_mail_proof(database: Any) -> bool:
    return database.count("known_networks", "network = '192.0.2.99' AND mail_proved_at IS NOT NULL") == 0
