"""Stories: requests with the events and the acts of the audit log that they make."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from auth.core.net.webhook_urls import EVENTS
from tests.support.links import Outbox, send
from tests.support.oauth import Service
from tests.support.tables import Rows
from tests.support.users import Person, Session, register

ALL_EVENTS = [*EVENTS]


@dataclass
class Scenario:
    """A service with a webhook that gets all events, and the events and acts since `forget`."""

    service: Service
    client: Any
    service_role: dict[str, str]
    outbox: Outbox
    database: Rows
    google: Any

    def __post_init__(self) -> None:
        self.database.run(
            "INSERT INTO webhooks (id, url, events, secret) VALUES (gen_random_uuid(), 'https://hooks.example.com/', %(events)s, '')",
            events=ALL_EVENTS,
        )

    @property
    def alice(self) -> Person:
        """Alice, registered on first use."""
        users = self.database.all("SELECT id FROM users WHERE email = 'alice@example.com'")
        return (
            Person(self.client, users[0].id, "alice@example.com")
            if users
            else register(self.client, self.service_role, "alice@example.com")
        )

    def session(self) -> Session:
        return self.alice.sign_in()

    def sent(self, type: str) -> Any:
        return send(type, self.client, self.service_role, self.outbox)

    def administer(self, method: str, path: str, body: Any = None) -> Any:
        return self.client.open(path, method=method, json=body or {}, headers=self.service_role)

    def change_alice(self, **body: Any) -> Callable[[], Any]:
        path = f"/admin/users/{self.alice.id}"
        return lambda: self.administer("PUT", path, body)

    def forget(self) -> None:
        """Delete the events and acts so far."""
        self.database.run("DELETE FROM outbox WHERE channel = 'webhook' AND outcome IS NULL")
        self.database.run("DELETE FROM audit_log")

    def events(self) -> list[str]:
        return [
            row.kind
            for row in self.database.all(
                "SELECT kind FROM outbox WHERE channel = 'webhook' AND outcome IS NULL ORDER BY kind"
            )
        ]

    def acts(self) -> list[str]:
        return [
            row.action
            for row in self.database.all("SELECT action FROM audit_log WHERE reason IS NULL ORDER BY action")
        ]


@dataclass(frozen=True)
class Effect:
    """A request to a route, with the events and acts that it makes."""

    route: tuple[str, str]
    prepare: Callable[[Scenario], Callable[[], Any]]
    events: list[str]
    acts: list[str]

    def __str__(self) -> str:
        return self.prepare.__name__


EFFECTS: list[Effect] = []


def effect(route: str, events: str, acts: str) -> Callable:
    """Register an effect. The decorated function prepares the request and returns a function that sends it."""

    def add(prepare: Callable[[Scenario], Callable[[], Any]]) -> Callable[[Scenario], Callable[[], Any]]:
        method, _, path = route.partition(" ")
        EFFECTS.append(Effect((method, path), prepare, sorted(events.split()), sorted(acts.split())))
        return prepare

    return add
