"""Users who give way: those whom a stranger may have made block no address (rule 7)."""

from collections.abc import Iterable

from auth.rules.users import is_replaced
from sql import Transaction, queries


def make_way(tx: Transaction, ids: Iterable[str | None], because: str) -> None:
    """Delete those of the users who give way to the owner of their address. They are locked, with the owner:
    `find_holder` returns their ids.
    """
    for id in ids:
        user = queries.select_person(tx, user_id=id, session_id=None)
        if user and is_replaced(user, user.now):
            queries.delete_user(tx, user_id=user.id, because=because)
