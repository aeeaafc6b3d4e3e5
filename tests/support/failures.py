"""What makes a step of a story in the browser fail."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.browser import Browser, fill
from tests.support.forwarder import Forwarder
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Person

# Settings of a service whose limits are reached only by `Failures.over_limit`.
# An authenticator that agrees at once tries again on each page, dozens of times if the test is slow.
FAILING_SETTINGS = {
    "AUTH_RATE_LIMITS_ENABLED": "true",
    "AUTH_RATE_LIMIT_LOGIN": "900 per hour",
    "AUTH_RATE_LIMIT_MESSAGES": "100 per hour",
}
AWAY = "answer at the moment. Try again shortly."
BANNED = "This account is blocked. Contact Acme if you think that is a mistake."
LIMITED = "Too many tries. Come back in"
ENDED = "Your session has ended. Please sign in again."

Step = Callable[[], None]


@dataclass
class Failures:
    """Each page shows the form again, or has a button that leads on."""

    page: Browser
    here: str
    database: Rows
    forwarder: Forwarder

    def without_database(self, step: Step, button: str | None = None, then: str = "") -> None:
        self.forwarder.close()
        step()
        self.page.wait_for(AWAY)
        self.forwarder.open()
        self._go_on(button, then)

    def over_limit(self, step: Step, button: str | None = None, then: str = "") -> None:
        """The limit has counted a request before."""
        self.database.run("UPDATE request_counts SET count = 1000")
        step()
        self.page.wait_for(LIMITED)
        self.database.run("DELETE FROM request_counts")
        self._go_on(button, then)

    def banned(self, step: Step) -> None:
        self.database.run("UPDATE users SET banned_until = 'infinity'")
        step()
        self.page.wait_for(BANNED)
        self.database.run("UPDATE users SET banned_until = NULL")

    def banned_meanwhile(self, step: Step, person: Person) -> None:
        """Users who are signed in learn it when they sign in again."""
        self.database.run(
            "UPDATE users SET banned_until = 'infinity';"
            "UPDATE sessions SET ended_at = now(), end_reason = 'banned' WHERE ended_at IS NULL"
        )
        step()
        self.page.wait_for(ENDED)
        fill(self.page, email=person.email, password=PASSWORD)
        self.page.click("Sign in")
        self.page.wait_for(BANNED)
        self.database.run("UPDATE users SET banned_until = NULL")

    def all(self, step: Step) -> None:
        """Take a step, whose form comes back, in all three."""
        self.without_database(step)
        self.over_limit(step)
        self.banned(step)

    def _go_on(self, button: str | None, then: str) -> None:
        if button:
            self.page.click(button)
            self.page.wait_for(then)
