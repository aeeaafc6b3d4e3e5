"""A user's grants to applications, in the console."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from auth.core import constants
from auth.core.text.labels import counted, quoted
from auth.flows.account import grants
from auth.flows.admin import targets
from auth.html.admin.actions import Action, Subject
from auth.html.admin.console_page import client_name
from auth.html.admin.subjects import changeable_user
from auth.web.asked import Asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import canonical_id
from sql import queries

_KEPT = timedelta(seconds=constants.ENDED_KEPT)


def grants_of(user_id: str) -> SimpleNamespace:
    """Return the grants of a user, newest first, for the user's page."""
    grants = queries.list_grants_of_user(latchkey.db, user_id=user_id, most=25)
    return SimpleNamespace(grants=grants, unused=unused)


def unused(since: str) -> str:
    """Return the text for the last use of an application without a session."""
    is_new = datetime.now(UTC) - datetime.fromisoformat(since) < _KEPT
    return "never" if is_new else f"not in {_KEPT.days} days"


def find(user_id: str, client_id: str) -> Subject:
    user, id = changeable_user(user_id), canonical_id(client_id, "oauth_consent_not_found")
    row = queries.select_grant_of_user(latchkey.db, user_id=user.row.id, client_id=id)
    grant = SimpleNamespace(user_id=user.row.id, **found(row, "oauth_consent_not_found")._asdict())
    return Subject(user.name, user.path, grant)


def _remove(asked: Asked, subject: Subject, _form: object) -> None:
    with targets.on(asked, subject.row.user_id) as (act, user):
        if not grants.remove(act, user, client_id=subject.row.id):
            raise ApiError("oauth_consent_not_found")


ACTIONS = {
    "remove": Action(
        title="Remove the application",
        effects=lambda subject: [
            f"Removes the access of 1 application: {quoted(client_name(subject.row.name))}.",
            *([f"Ends {counted(subject.row.sessions, 'session')} of it."] if subject.row.sessions else []),
        ],
        undo="The user can allow it again.",
        do=_remove,
        done="Removed.",
        is_destructive=True,
    ),
}
