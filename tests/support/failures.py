"""Makes a step of a story in the browser fail."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.browser import Browser
from tests.support.forwarder import Forwarder
from tests.support.tables import Rows

# Settings of a service whose limits are reached only by `Failures.over_limit`.
# An authenticator that agrees at once tries again on each page, dozens of times if the test is slow.
FAILING_SETTINGS = {
    "AUTH_RATE_LIMITS_ENABLED": "true",
    "AUTH_RATE_LIMIT_LOGIN": "900 per hour",
    "AUTH_RATE_LIMIT_MESSAGES": "100 per hour",
}
AWAY = "available right now. Try again shortly."
LIMITED = "Too many attempts. Try again in"

Step = Callable[[], None]


@dataclass
class Failures:
    """Each page shows the form again, or has a button to continue."""

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

    def _go_on(self, button: str | None, then: str) -> None:
        if button:
            self.page.click(button)
            self.page.wait_for(then)
