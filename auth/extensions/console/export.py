"""The users of a list as CSV."""

from flask import Blueprint, Response, request, stream_with_context

from auth.extensions.console.users import Query, matching
from auth.flows.admin import lists
from auth.html.admin.actions import Action, Subject, serve
from auth.web.asked import Asked
from auth.web.input import read_form, read_query

blueprint = Blueprint("export", __name__)


def _list() -> Subject:
    query = read_form(Query) if request.method == "POST" else read_query(Query)
    query = {name: value for name, value in query.items() if value and name != "sort"}
    return Subject("Users", "console/users", matching(query), query)


def _export(asked: Asked, users: Subject, _form: object) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="users.csv"'}
    return Response(stream_with_context(lists.export(asked, users.row)), mimetype="text/csv", headers=headers)


_ACTIONS = {
    "export": Action(
        title="Export as CSV",
        effects=lambda users: [
            "Downloads all users that match the filters." if users.hidden else "Downloads all users.",
            "Passwords and metadata are left out. For these, use latchkey users export.",
        ],
        undo="The audit log records the export.",
        do=_export,
        is_download=True,
    )
}

serve(blueprint, "/console/users", _ACTIONS, _list)
