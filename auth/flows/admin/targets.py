"""Acts of administrators, and the users whom they may act on: no other administrators, nor themselves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from auth.core.json_bodies import JsonObject
from auth.flows.facts import PersonFacts
from auth.rules.proofs import refusal_of_target
from auth.rules.tokens import refusal_of_admin_key
from auth.rules.users import is_replaced
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Runner, Transaction, acts, queries
from sql.acts import Act


@contextmanager
def begin(asked: Asked) -> Iterator[Act]:
    """Run an act of an administrator, or of the service role key. Refuse, and change nothing, if the caller
    has been demoted or signed out meanwhile. Acts on many users (`Many` in user_actions.py) go by `on` or
    `on_holders`, which call `asked.claim`."""
    with acts.begin(asked.db) as act:
        yield act
        check_actor(asked, act)


@contextmanager
def on(asked: Asked, user_id: str, *, session_id: str | None = None) -> Iterator[tuple[Act, PersonFacts]]:
    """Run an act on a user, like `begin`, and yield it with the facts about the user and one of its sessions.
    Refuse if the caller may not change this user."""
    with begin(asked) as act:
        act.lock_users([user_id])
        asked.claim(act)
        yield act, read(asked, act, user_id, session_id)


@contextmanager
def on_holders(
    asked: Asked,
    addresses: Sequence[str],
    user_id: str | None = None,
    *,
    before: Callable[[Act], object] = lambda _: None,
) -> Iterator[tuple[Act, Sequence[str]]]:
    """Run an act like `begin`, with a user and the holders of these addresses locked; yield the ids of the
    holders, too. `before` takes the locks that come before users."""

    def find(runner: Runner) -> list[str | None]:
        return [user_id, *(queries.select_holders(runner, addresses=addresses).ids if addresses else [])]

    with acts.on_found(asked.db, find, before) as (act, ids):
        asked.claim(act)
        yield act, [id for id in ids if id != user_id]
        check_actor(asked, act)


def read(asked: Asked, act: Act, user_id: str, session_id: str | None = None) -> PersonFacts:
    """Return the facts about a locked user. Refuse if the caller may not change this user."""
    row = act.read(queries.select_person, user_id=user_id, session_id=session_id)
    return check(asked, act, found(row, "user_not_found"))


def check(asked: Asked, act: Act, person: PersonFacts) -> PersonFacts:
    """Return these facts. Refuse like `read`."""
    admit(asked, person)
    if person.role == "admin":
        # The service role key may remove the last administrator, but not while another administrator leaves.
        act.lock_administrators()
    return person


def admit(asked: Asked, person: PersonFacts) -> None:
    """Refuse if the caller may not change this user. Unlike `check`, it does not lock the administrators."""
    if asked.actor != "service_role" and refusal_of_target(person):
        raise refusal(asked, person.id)


def check_role(asked: Asked, body: JsonObject, user_id: str | None = None) -> None:
    """Refuse a body that sets a role, unless the service role key sends it."""
    if "role" in body and asked.actor != "service_role":
        asked.noted.note(user_id=user_id)
        raise ApiError("role.insufficient_permissions", "role: must be absent")


def make_way(tx: Transaction, ids: Iterable[str | None]) -> None:
    """Delete the locked users who give way to the owner of their address (rule 7)."""
    for id in ids:
        user = queries.select_person(tx, user_id=id, session_id=None)
        if user and is_replaced(user):
            queries.delete_user(tx, user_id=user.id, because="created_again")


def check_actor(asked: Asked, act: Act) -> None:
    """Refuse an administrator who has been demoted or signed out, and an administrative key that has ended.

    It comes last in an act, because its statements may have waited for locks since the guard's check.
    """
    if key := asked.admin_key:
        if why := refusal_of_admin_key(queries.select_admin_key(act, id=key.id), key.scope):
            raise ApiError(why)
    elif asked.actor != "service_role" and asked.live_caller(on=act).role != "admin":
        raise ApiError("not_admin")


def refusal(asked: Asked, user_id: str) -> ApiError:
    """Return the error for an act on another administrator, whose id goes into the audit log."""
    asked.noted.note(user_id=user_id)
    return ApiError("target.insufficient_permissions")
