"""The check of gates: from outside, as a stranger who forges headers."""

import requests

from auth.cli.checks import Check, Context, Failure, NotChecked
from auth.core.net.bounded_http import BoundedSession
from auth.core.net.sockets import NO_ANSWER, Deadline, why
from sql import queries

_FORGED = {
    name: "admin"
    for stem in ("User", "Email", "Role", "Groups")
    for name in (f"Remote-{stem}", f"Remote_{stem}")
}
_OPENED = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "User-Agent": "latchkey doctor"}


def _gates(context: Context) -> Failure | None:
    gates = queries.list_gates(context.db) if context.settings.gate else []
    if not gates:
        raise NotChecked("there are none")
    return next(filter(None, (_look_at(context, gate) for gate in gates)), None)


def _look_at(context: Context, gate: "queries.ListGates") -> Failure | None:
    origin, base_url = gate.gate_origin, context.settings.base_url
    remedy = "Compare the proxy with what latchkey gates create prints: docs/gate.md"
    start = f"{origin}/.latchkey/start?to=/"
    try:
        # The host of the service, to see that the proxy replaces what a client claims.
        forged = _fetch(context, f"{origin}/", _FORGED | {"X-Forwarded-Host": base_url.partition("://")[2]})
        begun = _fetch(context, start)
    except requests.RequestException as error:
        reason = why(error)
        return Failure(f"{origin} cannot be reached from here: {reason}.", remedy, reason == NO_ANSWER)
    if forged.headers.get("Location") != start:
        return Failure(
            f"{origin} answers {forged.status_code} to a stranger with forged headers, instead of leading to"
            " the sign-in: the tool may be open.",
            remedy,
        )
    if not begun.headers.get("Location", "").startswith(f"{base_url}/oauth/authorize?"):
        return Failure(f"{origin}/.latchkey/start does not lead to this service.", remedy)
    return None


def _fetch(context: Context, url: str, headers: dict[str, str] | None = None) -> requests.Response:
    """Return the answer to a browser that opens a page. Raises `requests.RequestException`."""
    with Deadline(context.seconds_left), BoundedSession() as session:
        return session.request("GET", url, headers=_OPENED | (headers or {}))


CHECKS = [Check("gates", "Gates let no stranger in", _gates)]
