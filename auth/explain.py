"""`flask explain`: why somebody can't sign in, and what has happened, in one command."""

from collections.abc import Iterator
from typing import Any

import click
from flask.cli import with_appcontext

from auth import addresses
from auth.context import latchkey
from auth.flows import timeline
from auth.web import counts
from auth.web.fields import is_uuid

# No more than that many lines of what a request has done, or of messages to an address that nobody has.
_MOST = 100


@click.command("explain")
@click.argument("who", metavar="EMAIL|PHONE|USER_ID|REQUEST_ID")
@click.option("--most", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How much of the story to tell, from its end.")
@with_appcontext
def explain(who: str, most: int) -> None:
    """Say why a user can't sign in, if so, and what has happened; or what a request has done. Times are UTC."""
    for line in _lines(who.strip(), most):
        click.echo(line)


def _lines(who: str, most: int) -> Iterator[str]:
    address = _address(who)
    if address:
        row = latchkey.db.one("select_summary", id=None, **address)
        yield from _user(row, most) if row else _nobody(*filter(None, address.values()))
        return
    if is_uuid(who):
        if row := latchkey.db.one("select_summary", id=who, email=None, phone=None):
            yield from _user(row, most)
            return
        if latchkey.db.one("count_timeline", user_id=who, most=1).total:
            yield f"There is no user {who} any more."
            yield from _story(who, most)
            return
    acts = latchkey.db.all("list_request_acts", request_id=who, most=_MOST)
    if not acts:
        raise click.ClickException(f"Nothing is known of {who}: it is no user's id, and no request of that id did or was refused anything.")
    yield f"What request {who} did:"
    for act in acts:
        yield _line(act) + (f" ({act.address or 'deleted'}, user {act.user_id})" if act.user_id else "")


def _address(who: str) -> dict[str, str | None] | None:
    """Return an email or a phone in its canonical form, as parameters; None where it is neither."""
    try:
        if "@" in who:
            return {"email": addresses.canonical_email(who), "phone": None}
        # Request ids may be digits with hyphens.
        return {"email": None, "phone": addresses.canonical_phone(who)} if who.startswith("+") else None
    except addresses.InvalidAddress as error:
        raise click.BadParameter(str(error)) from None


def _user(user: Any, most: int) -> Iterator[str]:
    known = [address for address in (user.email, user.phone, user.new_email, user.new_phone) if address]
    limits = counts.against(latchkey.settings, latchkey.db, known)
    locked = [count["text"] for count in limits if count["is_used_up"] and count["what"] in ("passwords", "codes")]
    obstacles = [*_obstacles(user), *locked]
    name = user.email or user.phone or user.id
    yield f"{name}: " + ("this is in the way of signing in." if obstacles else "nothing is in the way of signing in.")
    for obstacle in obstacles:
        yield f"  - {obstacle}"
    yield ""
    for title, text in _facts(user):
        yield f"{title:<14}{text}"
    for count in limits:
        if count["text"] not in locked:
            yield f"{'counted':<14}{count['text']}"
    yield ""
    yield from _story(user.id, most)


def _obstacles(user: Any) -> Iterator[str]:
    settings = latchkey.settings
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
    if user.phone and not settings.phone_enabled:
        yield "sign-in by phone is switched off (AUTH_PHONE_ENABLED)"


def _facts(user: Any) -> Iterator[tuple[str, str]]:
    yield "user", f"{user.id}, {user.role}, created {timeline.clock(user.created_at)} ({user.made_by})"
    for title, address, confirmed_at, pending in (
        ("email", user.email, user.email_confirmed_at, user.new_email),
        ("phone", user.phone, user.phone_confirmed_at, user.new_phone),
    ):
        if address or pending:
            confirmed = f"confirmed {timeline.clock(confirmed_at)}" if confirmed_at else "not confirmed"
            yield title, (f"{address}, {confirmed}" if address else "none") + (f"; {pending} waits to be confirmed" if pending else "")
    yield "signs in by", ", ".join((["password"] if user.has_password else []) + user.providers)
    yield "sessions", f"{user.live_sessions} live"
    yield "last sign-in", timeline.clock(user.last_sign_in_at) if user.last_sign_in_at else "never"


def _story(user_id: str, most: int) -> Iterator[str]:
    rows = latchkey.db.all("list_timeline", user_id=user_id, page_size=most, page_offset=0)
    refusals = [row for row in rows if row.kind == "refusal"][:3]
    if refusals:
        yield "Refused last:"
        yield from (_line(row) for row in refusals)
        yield ""
    yield "What happened:" if rows else "Nothing is known to have happened."
    if len(rows) == most and latchkey.db.one("count_timeline", user_id=user_id, most=most + 1).total > most:
        yield "  … and more before; --most tells more of it"
    yield from (_line(row) for row in reversed(rows))


def _nobody(address: str) -> Iterator[str]:
    """What is known of an address that no user has."""
    yield f"{address}: nobody has this address."
    for user in latchkey.db.all("list_pending_users", address=address):
        yield f"  - {user.email or user.phone or 'a user without an address'} ({user.id}) has asked for it, and not confirmed it"
    limits = counts.against(latchkey.settings, latchkey.db, [address])
    yield from (f"  - {count['text']}" for count in limits)
    messages = latchkey.db.all("list_messages_to", recipient=address, most=_MOST)
    yield ""
    yield "Messages to it:" if messages else "No message to it is known; they are kept for 30 days."
    for row in reversed(messages):
        yield _line(row) + (f" (user {row.user_id})" if row.user_id else "")


def _line(row: Any) -> str:
    # What a mail server or a client has said may hold anything; a terminal obeys control characters.
    text = f"{timeline.clock(row.at)}  {timeline.sentence(row)}"
    return "  " + "".join(character if character.isprintable() else " " for character in text)
