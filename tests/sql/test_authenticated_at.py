"""When a session's user last authenticated: statements and auth/rules say the same."""

import itertools
import json
from dataclasses import replace

from auth.rules.sessions import authenticated_at
from tests.rules.facts import MINUTE, NOW, Session

_METHODS = ("password", "magiclink", "recovery", "oauth", "sign_up", "anonymous", "webauthn")
_OPENER = "00000000-0000-4000-8000-000000000001"
_SQL = "SELECT authenticated_at(jsonb_populate_record(NULL::sessions, %(row)s::jsonb)) AS moment"


def test_function_and_rule_name_the_same_moment(database):
    times = (None, NOW - MINUTE, NOW, NOW + MINUTE)
    for method, opened_by, again in itertools.product(_METHODS, (None, _OPENER), times):
        session = replace(
            Session(method=method, aal="aal1", session_created_at=NOW, refreshed_at=NOW + MINUTE),
            opened_by=opened_by,
            reauthenticated_at=again,
        )
        row = {
            "method": method,
            "opened_by": opened_by,
            "created_at": NOW.isoformat(),
            "refreshed_at": session.refreshed_at.isoformat(),
            "reauthenticated_at": again and again.isoformat(),
        }
        moment = database.value(_SQL, row=json.dumps(row))
        assert moment == authenticated_at(session), (method, opened_by, again)
