"""Every action of the URL map fails if its administrator is demoted meanwhile, or its user becomes one."""

from tests.extensions.console.test_console_routes import FIELDS, NEEDS, READY, TABLES
from tests.support.contract import console_routes
from tests.support.users import PASSWORD

ROLE = "UPDATE users SET role = %(role)s WHERE id = %(id)s"
# An action waits here with everything done, long after the guards have looked.
LOCK_LOG = "LOCK TABLE audit_log IN EXCLUSIVE MODE; SELECT %s::text"


def test_action_of_an_administrator_who_is_demoted_meanwhile_changes_nothing(
    app, armed, codes, carol, ids, database
):
    forms = sorted(path.format(**ids) for method, path, _view in console_routes(app) if method == "post")
    # The code of the action is spent.
    tables = set(TABLES) - {"factors"}
    for path in forms:
        name = path.rpartition("/")[2]
        # These only make a row, with which an action on many users begins.
        if "/chosen/" in path or name == "invite-list":
            continue
        database.run(f"{READY}; {NEEDS.get(name, '')}")
        assert armed.visit(path).status == 200, path
        fields = {"factor_code": codes.code(1)} if "factor_code" in armed.page.text else {}
        before = database.everything(*tables), database.count("factors")
        with database.locked("audit_log", "", LOCK_LOG) as lock:
            request = lock.start(lambda name=name, fields=fields: armed.press(name, **FIELDS, **fields))
            database.run(ROLE, id=carol.id, role="authenticated")
        assert request.result().status == 403, path
        database.run(ROLE, id=carol.id, role="admin")
        assert (database.everything(*tables), database.count("factors")) == before, path


def test_user_is_not_created_by_the_token_of_an_administrator_demoted_meanwhile(client, carol, database):
    session = carol.open_session()
    body = {"email": "new@example.com", "password": PASSWORD}
    with database.locked("audit_log", "", LOCK_LOG) as lock:
        request = lock.start(lambda: session.post("/admin/users", json=body))
        database.run(ROLE, id=carol.id, role="authenticated")
    assert request.result().status_code == 403
    assert database.count("users", "email = 'new@example.com'") == 0


def test_user_who_becomes_an_administrator_meanwhile_is_not_changed(armed, alice, codes, database):
    session = alice.open_session()
    promote = "UPDATE users SET role = 'admin' WHERE id = %s"
    for name in ("ban", "end-sessions", "metadata", "recover", "delete"):
        database.run(ROLE, id=alice.id, role="authenticated")
        assert armed.visit(f"/console/users/{alice.id}/{name}").status == 200
        fields = {"factor_code": codes.code(1)} if name == "delete" else {}
        with database.locked("users", alice.id, promote) as lock:
            request = lock.start(lambda name=name, fields=fields: armed.press(name, **FIELDS, **fields))
        assert (request.result().status, session.get("/user").status_code) == (403, 200), name
    is_change = "action IN ('banned', 'signed_out', 'user_changed', 'message_requested', 'user_deleted')"
    assert database.count("audit_log", f"{is_change} AND reason IS NULL") == 0
