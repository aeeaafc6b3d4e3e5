from collections.abc import Iterator
from typing import Any

import click

from auth import addresses
from auth.commands import open_parts
from auth.context import Latchkey
from auth.flows import timeline
from auth.web import counts
from auth.web.fields import is_uuid

_MAX_LINES = 100


@click.command("explain")
@click.argument("subject", metavar="EMAIL|PHONE|USER_ID|REQUEST_ID")
@click.option(
    "--most", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Newest entries to show."
)
def command(subject: str, most: int) -> None:
    """Explain whether a user can sign in and what happened to the user, or what a request did. Times are UTC.

    \b
    Example: latchkey explain alice@example.com
    """
    for line in _Explanation(open_parts(), most).lines(subject.strip()):
        click.echo(line)


class _Explanation:
    def __init__(self, latchkey: Latchkey, most: int) -> None:
        self._settings = latchkey.settings
        self._db = latchkey.db
        self._most = most

    def lines(self, subject: str) -> Iterator[str]:
        address = _address(subject)
        if address:
            row = self._db.one("select_summary", id=None, **address)
            yield from self._user(row) if row else self._without_user(*filter(None, address.values()))
            return
        if is_uuid(subject):
            if row := self._db.one("select_summary", id=subject, email=None, phone=None):
                yield from self._user(row)
                return
            if self._db.one("count_timeline", user_id=subject, most=1).total:
                yield f"User {subject} no longer exists."
                yield from self._story(subject)
                return
        acts = self._db.all("list_request_acts", request_id=subject, most=_MAX_LINES)
        if not acts:
            raise click.ClickException(
                f"Nothing is known of {subject}: it is not the id of a user or of a recorded request."
            )
        yield f"What request {subject} did:"
        for act in acts:
            yield _line(act) + (f" ({act.address or 'deleted'}, user {act.user_id})" if act.user_id else "")

    def _user(self, user: Any) -> Iterator[str]:
        known = [address for address in (user.email, user.phone, user.new_email, user.new_phone) if address]
        limits = counts.against(self._settings, self._db, [user.id, *known])
        is_lock = {"passwords", "codes"}
        locked = [count["text"] for count in limits if count["is_used_up"] and count["what"] in is_lock]
        obstacles = [*self._obstacles(user), *locked]
        name = user.email or user.phone or user.id
        yield f"{name}: " + ("sign-in may fail:" if obstacles else "can sign in.")
        for obstacle in obstacles:
            yield f"  - {obstacle}"
        yield ""
        for title, text in _facts(user):
            yield f"{title:<14}{text}"
        for count in limits:
            if count["text"] not in locked:
                yield f"{'counted':<14}{count['text']}"
        yield ""
        yield from self._story(user.id)

    def _obstacles(self, user: Any) -> Iterator[str]:
        settings = self._settings
        if user.banned_until:
            forever = user.banned_until.startswith("9999")
            yield "banned permanently" if forever else f"banned until {timeline.clock(user.banned_until)}"
        if not user.has_password:
            yield "has no password: only a link, a code or a provider lets this user in"
        if user.email and not user.email_confirmed_at and settings.email_confirm_required:
            yield "the email is not confirmed: the password is refused with it; a link or code confirms it"
        if user.phone and not user.phone_confirmed_at and settings.phone_confirm_required:
            yield "the phone is not confirmed: the password is refused with it; a code confirms it"
        if user.email and not settings.email_enabled:
            yield "sign-in by email is switched off (AUTH_EMAIL_ENABLED)"
        if user.phone and not settings.offers_phone:
            name = "AUTH_SMS_PROVIDER" if settings.phone_enabled else "AUTH_PHONE_ENABLED"
            yield f"sign-in by phone is switched off ({name})"

    def _story(self, user_id: str) -> Iterator[str]:
        rows = self._db.all("list_timeline", user_id=user_id, page_size=self._most, page_offset=0)
        refusals = [row for row in rows if row.kind == "refusal"][:3]
        if refusals:
            yield "Refused last:"
            yield from (_line(row) for row in refusals)
            yield ""
        yield "What happened:" if rows else "No events are recorded."
        counted = self._db.one("count_timeline", user_id=user_id, most=self._most + 1)
        if counted.total > self._most:
            yield "  … and earlier entries; --most shows more"
        yield from (_line(row) for row in reversed(rows))

    def _without_user(self, address: str) -> Iterator[str]:
        yield f"{address}: no user has this address."
        for user in self._db.all("list_pending_users", address=address):
            name = user.email or user.phone or "a user without an address"
            yield f"  - {name} ({user.id}) has requested it, but not confirmed it"
        limits = counts.against(self._settings, self._db, [address])
        yield from (f"  - {count['text']}" for count in limits)
        messages = self._db.all("list_messages_to", recipient=address, most=_MAX_LINES)
        yield ""
        yield "Messages to it:" if messages else "No message to it is known; they are kept for 30 days."
        for row in reversed(messages):
            yield _line(row) + (f" (user {row.user_id})" if row.user_id else "")


def _address(text: str) -> dict[str, str | None] | None:
    if "@" in text:
        return {"email": addresses.canonical_email(text), "phone": None}
    # Digits with hyphens may be a request id.
    return {"email": None, "phone": addresses.canonical_phone(text)} if text.startswith("+") else None


def _facts(user: Any) -> Iterator[tuple[str, str]]:
    yield "user", f"{user.id}, {user.role}, created {timeline.clock(user.created_at)} ({user.made_by})"
    for title, address, confirmed_at, pending in (
        ("email", user.email, user.email_confirmed_at, user.new_email),
        ("phone", user.phone, user.phone_confirmed_at, user.new_phone),
    ):
        if address or pending:
            confirmed = f"confirmed {timeline.clock(confirmed_at)}" if confirmed_at else "not confirmed"
            waits = f"; {pending} waits to be confirmed" if pending else ""
            yield title, (f"{address}, {confirmed}" if address else "none") + waits
    yield "signs in by", ", ".join((["password"] if user.has_password else []) + user.providers)
    yield "sessions", f"{user.live_sessions} live"
    yield "last sign-in", timeline.clock(user.last_sign_in_at) if user.last_sign_in_at else "never"


def _line(row: Any) -> str:
    # Mail servers and clients may have sent control characters for the terminal.
    text = f"{timeline.clock(row.at)}  {timeline.sentence(row)}"
    return "  " + "".join(character if character.isprintable() else " " for character in text)
