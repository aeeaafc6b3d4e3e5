"""Users as subjects of actions."""

from types import SimpleNamespace

from auth.flows.admin import targets, users
from auth.html.admin.actions import Subject
from auth.html.admin.console_page import pretty
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import found
from auth.web.input import canonical_id
from sql import queries

# The number of groups of the newest users that a form offers.
_MOST_GROUPS, _MOST_USERS = 20, 10_000


def all_users() -> Subject:
    """Return the subject of an action that creates users. Its row has the groups in use."""
    groups = queries.list_groups(latchkey.db, most_users=_MOST_USERS, most=_MOST_GROUPS)
    return Subject("Users", "console/users", groups)


def changeable_user(user_id: str) -> Subject:
    """Return the user of an action. Refuse a user whom administrators may not change."""
    user = found(
        queries.select_effects(latchkey.db, id=canonical_id(user_id, "user_not_found")), "user_not_found"
    )
    if user.role == "admin":
        raise targets.refusal(current_asked(), user.id)
    values = {"version": users.metadata_version(user)}
    values |= {f"{kind}_text": pretty(getattr(user, kind)) for kind in ("user_metadata", "app_metadata")}
    row = SimpleNamespace(**user._asdict(), **values)
    return Subject(user.email or user.phone or user.id, f"console/users/{user.id}", row)
