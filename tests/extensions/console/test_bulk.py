"""Actions on many users, and their list as CSV."""

import csv
import json
from io import StringIO

import pytest
from flask.testing import FlaskClient

from auth.extensions.console import bulk
from auth.flows.admin import lists
from auth.web.errors import ApiError
from tests.support.api_keys import insert_key
from tests.support.audit import clear_history
from tests.support.cases import cases
from tests.support.links import SITE
from tests.support.pages import Visitor, words
from tests.support.query_plans import analyze

INSERT_USERS = (
    "INSERT INTO users (email, made_by) SELECT 'user' || number || '@example.com', 'administrator'"
    " FROM generate_series(1, %(count)s) AS number"
)


@pytest.fixture
def begin(operator):
    """Confirm an action on users, and return the page of its progress."""

    def begin(action, *people, **fields):
        query = "&".join(f"id={person.id}" for person in people)
        page = operator.visit(f"/console/users/chosen/{action}?{query}")
        assert page.status == 200, words(page)
        return operator.press(action, **fields)

    return begin


@pytest.fixture
def insert_users(database, database_url):
    """Insert users whom a search for `user` finds."""

    def insert_users(count):
        database.run(INSERT_USERS, count=count)
        # The search depends on the number of users that Postgres estimates.
        analyze(database_url)

    return insert_users


def go_on(visitor):
    return visitor.press(visitor.page.url.rpartition("/")[2])


def banned_users(database):
    return database.count("users", "banned_until > now()")


def test_chosen_users_are_banned_and_administrators_are_not(begin, operator, alice, bob, carol, database):
    session = alice.open_session()
    clear_history(database)
    begin("ban", alice, bob, carol, ban_duration="24h")
    assert "Ban 3 users 0 of 3 done." in words(operator.page)
    assert 'console/users" aria-current="page">Users' in operator.page.text
    assert banned_users(database) == 0
    page = go_on(operator)
    assert "2 users banned 3 of 3 done, 1 of them refused." in words(page)
    assert words(page).endswith("Done User alice@example.com bob@example.com")
    assert "<progress" not in page.text
    assert f"{carol.id} Only the service role key can change an administrator" in words(page)
    assert (banned_users(database), session.get("/user").status_code) == (2, 403)
    statement = "SELECT details ->> 'administrator' AS by FROM audit_log WHERE action = 'banned'"
    assert [row.by for row in database.all(statement)] == [carol.email] * 2


def test_confirmation_counts_what_changes(operator, alice, bob, carol, database):
    alice.open_session()
    for person in (alice, carol):
        insert_key(database, person.id)
    query = f"id={alice.id}&id={bob.id}&id={carol.id}&id=nonsense"
    text = words(operator.visit(f"/console/users/chosen/ban?{query}"))
    for sentence in (
        "Bans 2 users and signs out 1 session, which stay ended. Removes 1 API key.",
        "Leaves 1 administrator unchanged. You can lift the ban later.",
    ):
        assert sentence in text
    fields = operator.page.forms[-1].fields
    for id, text in (("", "No users are chosen."), (carol.id, "Leaves 1 administrator unchanged.")):
        page = operator.visit(f"/console/users/chosen/ban?id={id}")
        # Without a user to ban, there is no button.
        assert (text in words(page), "Ban these users</button>" in page.text) == (True, False)
        assert operator.post(f"{SITE}/console/users/chosen/ban", fields | {"ids": id}).status == 400


def test_repeated_and_concurrent_requests_do_nothing_twice(begin, operator, alice, bob, carol, database):
    begin("end-sessions", alice, bob)
    page, path = operator.page, operator.page.url
    with database.locked("users", alice.id) as lock:
        fields = page.forms[-1].fields
        requests = [lock.start(lambda: operator.post(path, fields)) for _ in range(2)]
    assert [request.result().status for request in requests] == [200, 200]
    operator.post(path, fields)
    assert "2 of 2 done." in words(operator.page)
    assert database.count("audit_log", "action = 'signed_out'") == 2


def test_all_that_match_are_deleted_in_chunks_with_a_factor(
    armed, codes, app, bob, database, insert_users, monkeypatch
):
    monkeypatch.setattr(bulk, "_CHUNK", 25)
    insert_users(40)
    assert "Choose all 40" in armed.visit("/console/users?q=user").text
    armed.visit("/console/users/chosen/delete?all=yes&q=user")
    assert "Deletes 40 users with all that belongs to them" in words(armed.page)
    assert armed.press("delete").status == 422
    armed.press("delete", factor_code=codes.code(1))
    assert "25 of 40 done." in words(go_on(armed))
    # Another administrator does not see it.
    other = Visitor(app).with_session_of(bob)
    database.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=bob.id)
    assert other.visit(armed.page.url).status == 404
    database.run("DELETE FROM users WHERE email = 'user9@example.com'")
    page = go_on(armed)
    assert "40 of 40 done" in words(page)
    assert database.count("users", "email LIKE 'user%%'") == 0


def test_user_whose_deletion_fails_is_named_and_the_others_are_deleted(armed, codes, alice, bob, database):
    armed.visit(f"/console/users/chosen/delete?id={alice.id}&id={bob.id}")
    armed.press("delete", factor_code=codes.code(1))
    with database.locked("users", alice.id) as lock:
        request = lock.start(lambda: go_on(armed))
        # The statement timeout, which is longer in tests, would do this.
        database.cancel_waiting()
        page = request.result()
    assert "1 of 2 done, 1 of them refused." in words(page)
    page = go_on(armed)
    assert "2 of 2 done, 1 of them refused." in words(page)
    assert f"{alice.id} The service isn" in words(page)
    assert [row.email for row in database.all("SELECT email FROM users WHERE role <> 'admin'")] == [
        alice.email
    ]


def test_more_than_500_users_are_refused(operator, insert_users):
    insert_users(501)
    operator.visit("/console/users?q=user")
    assert "More than 500 users with" in words(operator.page)
    assert 'name="all"' not in operator.page.text
    page = operator.visit("/console/users/chosen/ban?q=user&all=yes")
    assert (page.status, "The selection must be at most 500 users" in page.text) == (400, True)


def test_list_is_invited_until_the_limit_and_goes_on_later(make_app, carol, alice, outbox, database):
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_INVITE": "2 per hour"}
    operator = Visitor(make_app(**limits)).with_session_of(carol)
    operator.visit("/console/users/invite-list")
    page = operator.press("invite-list", emails="dave@example.com\nnonsense")
    assert (page.status, "Not an email address: nonsense." in page.text) == (400, True)
    emails = f"Dave@example.com, dave@example.com\r\n{alice.email};eve@example.com\nf@example.com;\n"
    operator.press("invite-list", emails=emails, groups="staff")
    assert "Invite 4 addresses" in words(operator.page)
    page = go_on(operator)
    assert (page.status, "data-continue" in page.text) == (429, False)
    assert "3 of 4 done, 1 of them refused." in words(page)
    database.run("DELETE FROM failure_counts")
    text = words(go_on(operator))
    assert "3 people invited 4 of 4 done" in text
    assert "Invite more Back to the users" in text
    assert text.endswith("Done Address dave@example.com eve@example.com f@example.com")
    assert [kind for kind, _to in outbox.kinds()] == ["invite"] * 3
    assert database.count("users", "app_metadata -> 'groups' = '[\"staff\"]'") == 3


class TestExport:
    def rows(self, operator, query=""):
        operator.visit(f"/console/users/export{query}")
        page = operator.press("export")
        assert page.headers["Content-Type"].startswith("text/csv")
        assert page.headers["Content-Disposition"] == 'attachment; filename="users.csv"'
        return list(csv.DictReader(StringIO(page.text)))

    def test_export_has_the_filtered_users_and_is_audited_once(self, operator, alice, bob, carol, database):
        clear_history(database)
        rows = self.rows(operator, "?q=alice")
        assert [(row["id"], row["email"], row["is_confirmed"]) for row in rows] == [
            (alice.id, alice.email, "True")
        ]
        entry = database.one("SELECT action, actor_id, details FROM audit_log")
        assert entry == ("users_exported", carol.id, {"count": 1, "administrator": carol.email})
        assert "all users that match" in words(operator.visit("/console/users/export?q=alice"))
        assert len(self.rows(operator)) == 3
        assert "Downloads all users. " in words(operator.visit("/console/users/export?sort=newest"))

    @cases("sign", ["=", "\uff1d", " =", "\xa0=", "\u200b=", "\ufeff=", "\u2028=", "\u2060\u3000\uff1d"])
    def test_cells_are_no_formulas(self, operator, database, sign):
        name = json.dumps({"name": f'@SUM(A1)\n"x", y;{sign}2;"-3\t{sign}4'})
        database.run(
            "INSERT INTO users (email, phone, user_metadata, made_by)"
            " VALUES ('=1+1@example.com', '+4917012345', %(name)s, 'signup')",
            name=name,
        )
        (row,) = self.rows(operator, "?q=%2B4917012345&by=phone")
        assert (row["email"], row["phone"]) == ("'=1+1@example.com", "+4917012345")
        assert row["name"] == f"'@SUM(A1)\n\"x\", y;'{sign}2;'\"-3\t'{sign}4"
        database.run("DELETE FROM users WHERE phone = '+4917012345'")

    def test_export_ends_with_the_rights_of_the_administrator(self, app, operator, database, monkeypatch):
        monkeypatch.setattr(lists, "_PAGE", 1)
        operator.visit("/console/users/export")
        cookie = operator.session_cookie
        headers = {"Cookie": f"{cookie.name}={cookie.value}", "Accept": "text/html"}
        client = FlaskClient(app, use_cookies=False)
        response = client.post("/console/users/export", data=operator.page.forms[-1].fields, headers=headers)
        lines = iter(response.response)
        assert "carol@example.com" in str([next(lines), next(lines)])
        database.run("UPDATE users SET role = 'authenticated'")
        with pytest.raises(ApiError, match="Only administrators"):
            list(lines)


def test_bulk_actions_are_forgotten_after_a_day(begin, operator, alice, database):
    begin("end-sessions", alice)
    database.run("UPDATE bulk_acts SET created_at = now() - interval '1 day'")
    assert operator.visit(operator.page.url).status == 404
