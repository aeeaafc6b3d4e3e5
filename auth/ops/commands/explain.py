import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from auth.cli import NumberRange, Unusable, address_of, find_user, json_option, open_parts, printable, show
from auth.core import normalize
from auth.core.keys import rotation
from auth.core.settings import Settings
from auth.core.text.labels import label, quoted
from auth.core.text.moments import clock
from auth.flows import failure_counts
from auth.flows.admin.user_actions import ACTIONS, name_of
from auth.flows.history import explanation, timeline
from auth.flows.history.entries import entries_of_organization, organizations_called
from auth.flows.history.explanation import SignInObstacle
from auth.flows.history.mentions import mentions_of
from auth.rules.users import ADDRESS_KINDS
from auth.web.context import Latchkey
from auth.web.fields import is_uuid
from sql import Database, queries

_MAX_LINES = 100
Rows = Sequence[
    "queries.ListTimeline | queries.ListRequestActs | queries.ListMessagesTo | queries.SearchAudit"
]


@click.command("explain", short_help="Explain what happened to a user or in a request.")
@click.argument("subject", metavar="[EMAIL|PHONE|USER_ID|REQUEST_ID]", required=False)
@click.option(
    "--organization",
    metavar="NAME",
    help="Show the audit log of an organization instead, by its short name, name or ID.",
)
@click.option(
    "--most",
    metavar="N",
    type=NumberRange(1, 10_000),
    default=50,
    show_default=True,
    help="Show at most N entries, newest first.",
)
@json_option
def command(subject: str | None, organization: str | None, most: int) -> None:
    """Explain whether a user can sign in and what happened to them, what a request did, or what happened in
    an organization. Times are UTC.

    Exits with 3 if nothing is known about the subject.

    \b
    Example: latchkey explain alice@example.com
    """
    if (subject is None) == (organization is None):
        raise click.UsageError("Name a user, an address or a request, or give --organization.")
    parts = open_parts()
    if organization:
        report = _about_organization(parts, normalize.trimmed(organization), most)
    else:
        report = _report(parts, normalize.trimmed(subject or ""), most)
    show(report, *_LINES[report["kind"]](report))


def _report(latchkey: Latchkey, subject: str, most: int) -> dict[str, Any]:
    """Return the facts about a subject in the format of --json, with the newest events first."""
    if user := find_user(latchkey, subject):
        return _about_user(latchkey, user) | _story(latchkey.db, user.id, most)
    if address := address_of(subject):
        return _about_address(latchkey, *filter(None, address.values()))
    if is_uuid(subject) and queries.count_timeline(latchkey.db, user_id=subject, most=1).total:
        return {"kind": "deleted_user", "id": subject} | _story(latchkey.db, subject, most)
    if acts := queries.list_request_acts(latchkey.db, request_id=subject, most=_MAX_LINES):
        return {"kind": "request", "id": subject, "events": _events(latchkey.db, acts)[::-1]}
    is_local = latchkey.key_ring.settings.is_local
    search = "what make run prints" if is_local else f"journalctl -u latchkey --grep {shlex.quote(subject)}"
    raise Unusable(
        f"Nothing is known about {subject}: it is not the ID of a user or a recorded request. Of equal"
        " refusals in a minute, only the last is recorded. Look into the log, which has each request:"
        f" {search}"
    )


def _about_user(latchkey: Latchkey, user: "queries.SelectSummary") -> dict[str, Any]:
    settings = latchkey.key_ring.settings
    explained = explanation.explain(settings, latchkey.db, user)
    obstacles = [obstacle.text for obstacle in explained.obstacles]
    return {
        "kind": "user",
        "user": summary_of(settings, latchkey.db, user),
        "can_sign_in": not obstacles,
        "obstacles": obstacles,
        "remedies": list(dict.fromkeys(_remedy(obstacle, user) for obstacle in explained.obstacles)),
        "requirements": explained.requirements,
        "claims": explained.claims,
        "claims_problem": explained.claims_problem,
        "limits": explained.limits,
    }


def _about_address(latchkey: Latchkey, address: str) -> dict[str, Any]:
    pending = queries.list_pending_users(latchkey.db, address=address)
    messages = queries.list_messages_to(latchkey.db, recipient=address, most=_MAX_LINES)
    limits = failure_counts.against(latchkey.key_ring.settings, latchkey.db, [address])
    if not (pending or limits or messages):
        raise Unusable(
            f"Nothing is known about {address}: no user has it, and it got no messages in 30 days."
            " Check its spelling."
        )
    return {
        "kind": "address",
        "address": address,
        "pending_users": [user._asdict() for user in pending],
        "limits": limits,
        "events": _events(latchkey.db, messages),
    }


def _about_organization(latchkey: Latchkey, name: str, most: int) -> dict[str, Any]:
    if is_uuid(name):
        id = name.lower()
    else:
        namesakes = organizations_called(latchkey.db, name)
        if not namesakes:
            raise Unusable(
                f"No organization has the short name or name {name}. Name one that has ended by its ID, or"
                " find it by: latchkey organizations list"
            )
        if len(namesakes) > 1:
            slugs = ", ".join(row.slug for row in namesakes)
            raise Unusable(f"Several organizations are called {name}. Name one by its short name: {slugs}")
        id = namesakes[0].id
    row = queries.select_organization(latchkey.db, id=id, slug=None)
    rows = entries_of_organization(latchkey.db, id, most + 1)
    if row is None and not rows:
        raise Unusable(f"Nothing is known about the organization {id}. Check the ID.")
    return {
        "kind": "organization",
        "id": id,
        "slug": row and row.slug,
        "name": row and row.name,
        "events": _events(latchkey.db, rows[:most]),
        "has_more": len(rows) > most,
    }


def _story(db: Database, user_id: str, most: int) -> dict[str, Any]:
    rows = queries.list_timeline(db, user_id=user_id, page_size=most, page_offset=0)
    counted = queries.count_timeline(db, user_id=user_id, most=most + 1)
    return {"events": _events(db, rows), "has_more": counted.total > most}


def _events(db: Database, rows: Rows) -> list[dict[str, Any]]:
    mentions = mentions_of(db, [row.details for row in rows])
    return [row._asdict() | {"text": timeline.sentence(row, mentions)} for row in rows]


def _lines_of_user(report: dict[str, Any]) -> Iterator[str]:
    user = report["user"]
    name = user["email"] or user["phone"] or user["id"]
    yield f"{name}: " + ("can sign in." if report["can_sign_in"] else "sign-in may fail:")
    for obstacle in report["obstacles"]:
        yield f"  - {obstacle}"
    yield ""
    yield from lines_of_summary(user)
    for requirement in report["requirements"]:
        yield printable(f"{'organization':<14}{requirement}")
    if claims := report["claims_problem"] or report["claims"]:
        text = claims if isinstance(claims, str) else json.dumps(claims, ensure_ascii=False)
        yield printable(f"{'claims':<14}{text}")
    for count in report["limits"]:
        if count["text"] not in report["obstacles"]:
            yield f"{'limit':<14}{count['text']}"
    yield ""
    yield from _lines_of_story(report)
    if report["remedies"]:
        yield ""
        yield "What to do:"
        yield from (f"  {remedy}" for remedy in report["remedies"])


def _lines_of_story(report: dict[str, Any]) -> Iterator[str]:
    events = report["events"]
    refusals = [event for event in events if event["kind"] == "refusal"][:3]
    if refusals:
        yield "Last refusals:"
        yield from (_line(event) for event in refusals)
        yield ""
    yield "Timeline:" if events else "No recorded events."
    if report["has_more"]:
        yield "  … earlier entries left out; use --most to show more"
    yield from (_line(event) for event in reversed(events))


def _lines_of_organization(report: dict[str, Any]) -> Iterator[str]:
    name = (
        f"{quoted(report['name'])} ({report['slug']})" if report["name"] else "An organization that has ended"
    )
    yield printable(f"{name}, {report['id']}:")
    if report["has_more"]:
        yield "  … earlier entries left out; use --most to show more"
    for event in reversed(report["events"]):
        address = event["address"] or ("deleted" if not event["has_user"] else "no address")
        yield _line(event) + (printable(f" ({address}, user {event['user_id']})") if event["user_id"] else "")


def _lines_of_request(report: dict[str, Any]) -> Iterator[str]:
    yield f"Request {report['id']}:"
    for event in reversed(report["events"]):
        address = event["address"] or "deleted"
        yield _line(event) + (f" ({address}, user {event['user_id']})" if event["user_id"] else "")
    if addresses := {event["address"] for event in report["events"]} - {None}:
        yield ""
        yield "What to do:"
        yield from (f"  latchkey explain {shlex.quote(address)}" for address in sorted(addresses))


def _lines_of_address(report: dict[str, Any]) -> Iterator[str]:
    yield f"{report['address']}: no user has this address."
    for user in report["pending_users"]:
        name = user["email"] or user["phone"] or "a user without an address"
        yield f"  - {name} ({user['id']}) requested it, but has not confirmed it"
    yield from (f"  - {count['text']}" for count in report["limits"])
    messages = report["events"]
    yield ""
    yield "Messages to it:" if messages else "No messages to it in the last 30 days."
    for message in reversed(messages):
        yield _line(message) + (f" (user {message['user_id']})" if message["user_id"] else "")


_LINES: Mapping[str, Callable[[dict[str, Any]], Iterable[str]]] = {
    "user": _lines_of_user,
    "deleted_user": lambda report: [f"User {report['id']} no longer exists.", *_lines_of_story(report)],
    "request": _lines_of_request,
    "organization": _lines_of_organization,
    "address": _lines_of_address,
}


def summary_of(settings: Settings, db: Database, user: "queries.SelectSummary") -> dict[str, Any]:
    """Return the facts about a row of `select_summary`."""
    used_since = rotation.secret_used_since(settings)
    of_old_keys = queries.count_sessions_of_old_keys(db, user_id=user.id, used_since=used_since).total
    mentions = mentions_of(db, methods=user.providers)
    names = [each.text if (each := mentions.provider(name)) else name for name in user.providers]
    return user._asdict() | {"provider_names": names, "sessions_of_old_keys": of_old_keys}


def _remedy(obstacle: SignInObstacle, user: "queries.SelectSummary") -> str:
    """Return the command that removes an obstacle, or what to do in the console or elsewhere.

    The address is quoted for the operator's shell: a stranger may register `` `reboot`@example.com ``.
    """
    if act := ACTIONS.get(obstacle.act or ""):
        return f"latchkey users {act.command.name} {shlex.quote(name_of(user))}"
    return obstacle.advice


def lines_of_summary(user: dict[str, Any]) -> list[str]:
    return [printable(f"{title:<14}{text}") for title, text in _titled(user)]


def _titled(user: dict[str, Any]) -> Iterator[tuple[str, str]]:
    created = clock(user["created_at"])
    yield "user", f"{user['id']}, {user['role']}, created {created} {label('origins', user['made_by'])}"
    for title in ADDRESS_KINDS:
        address, pending, confirmed_at = user[title], user[f"new_{title}"], user[f"{title}_confirmed_at"]
        if address or pending:
            confirmed = f"confirmed {clock(confirmed_at)}" if confirmed_at else "not confirmed"
            waits = f"; {pending} not confirmed yet" if pending else ""
            yield title, (f"{address}, {confirmed}" if address else "none") + waits
    yield "signs in with", ", ".join((["password"] if user["has_password"] else []) + user["provider_names"])
    old = user["sessions_of_old_keys"]
    needs = f", {old} of which need an old secret key until refreshed" if old else ""
    if user["factors"]:
        yield "factors", f"{', '.join(user['factors'])}; {user['recovery_codes']} recovery codes left"
    yield "sessions", f"{user['live_sessions']} live{needs}"
    if user["applications"]:
        names = ", ".join(map(quoted, user["applications"]))
        below = _below(user["sessions_of_applications_below"])
        yield "applications", f"{names}; {user['sessions_of_applications']} live sessions{below}"
    if user["api_keys"]:
        yield "API keys", f"{user['api_keys']}{_below(user['api_keys_below'])}"
    last = user["last_sign_in_at"]
    yield "last sign-in", clock(last) if last else "never"


def _below(number: int) -> str:
    return f", {number} refused: from before the second factor" if number else ""


def _line(event: dict[str, Any]) -> str:
    return printable(f"  {clock(event['at'])}  {event['text']}")
