"""/console/audit: who did what, with filters, in pages of keys."""

import re
from urllib.parse import urlencode

import pytest

from tests.support.audit import clear_history, record
from tests.support.users import PASSWORD

ALICE = "11111111-1111-1111-1111-111111111111"
_BY_THE_KEY = {"actor": "service_role"}


@pytest.fixture
def look(operator, database):
    """Return the rows of the audit log, without those of the fixtures, or else the whole page."""
    clear_history(database)

    def look(**query):
        page = operator.visit(f"/console/audit?{urlencode(query)}")
        assert page.status == 200, page.text
        return page.text.partition("<tbody>")[2].partition("</tbody>")[0] or page.text

    return look


def test_entry_names_event_user_actor_network_and_details(alice, look, operator, database, carol):
    assert "No activity yet" in look()
    by_carol = {"actor": "user", "actor_id": carol.id}
    record(database, alice.id, "banned", origin=by_carol, banned_until="9999-12-31")
    record(database, ALICE, "user_deleted", origin=_BY_THE_KEY)
    addresses = {"old_email": f"{'a' * 200}@example.com", "new_email": "new@example.com"}
    record(database, alice.id, "email_changed", origin=by_carol, factor_id=ALICE, **addresses)
    text = look()
    for part in (
        "banned permanently",
        f'href="../console/users/{alice.id}">alice@example.com</a>',
        f'href="../console/users/{carol.id}">carol@example.com</a>',
        "198.51.100.7",
        'href="../console/audit?request_id=5631c782-',
        ">deleted</a>",
        "the service role key",
        f'<div class="capital">email changed from {addresses["old_email"]} to new@example.com</div>',
    ):
        assert part in text
    assert "factor ID" not in text
    assert len(re.findall(r'title="[^"]*just now">[A-Z][a-z]{2} \d+, \d\d:\d\d:\d\d<', text)) == 3
    request = re.findall(r'href="../console/audit\?request_id=([^"]+)"', text)[0]
    assert f'<div class="quiet">factor ID: {ALICE}</div>' in look_at(operator, request)


def look_at(operator, request_id):
    return operator.visit(f"/console/audit?request_id={request_id}").text


def test_invitation_is_one_entry_and_a_sign_up_that_of_the_user(look, operator, client, service_role):
    client.post("/invite", json={"email": "grace@example.com"}, headers=service_role)
    client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
    text = operator.visit("/console/audit").text.partition("<tbody>")[2]
    assert ("invited</div>" in text, "with an invitation" in text) == (True, False)
    assert re.search(r'user created by signing up.*?data-label="Actor">the user<', text, re.DOTALL)
    assert "user created with an invitation" in look(action="user_created")


def test_filters_combine(look, database, alice, bob, carol):
    clear_history(database)
    for person, time in ((alice, "12:00:30"), (bob, "13:00:30")):
        for name, origin in (("banned", {"actor": "user", "actor_id": carol.id}), ("unbanned", _BY_THE_KEY)):
            record(database, person.id, name, origin=origin | {"request_id": f"{name} {time[:2]}"})
        set_time = "UPDATE audit_log SET at = %(at)s WHERE user_id = %(id)s"
        database.run(set_time, id=person.id, at=f"2026-01-02 {time}+00")
    for filters, count in (
        ({"user": alice.email, "action": "banned", "by": carol.email}, 1),
        ({"user": alice.id, "action": "banned", "by": "service_role"}, 0),
        ({"since": "2026-01-02T12:00", "until": "2026-01-02T12:01"}, 2),
        ({"since": "2026-01-02T12:01"}, 2),
        ({"until": "2026-01-02T12:00"}, 0),
        ({"request_id": "banned 12"}, 1),
    ):
        text = look(**filters)
        assert (filters, text.count("<tr>")) == (filters, count)
        assert ("No entries match these filters" in text) is (count == 0)
    assert "No user has the address nobody@example.com" in look(user="nobody@example.com")
    assert "No user has the address nonsense" in look(by="nonsense")


def test_pages_of_keys_show_each_entry_once(look, operator, database, alice):
    record(database, alice.id, *(f"act_{number:03}" for number in range(120)))
    look()
    numbers = [number for page in operator.pages() for number in re.findall(r"act (\d+)</div>", page.text)]
    assert sorted(map(int, numbers)) == list(range(120))
    assert "First" in operator.page.text


def test_filters_that_rarely_meet_are_searched_in_steps(look, operator, database, alice, monkeypatch):
    monkeypatch.setattr("auth.extensions.console.audit.REACH", 10)
    record(database, alice.id, "banned", origin=_BY_THE_KEY)
    database.run("UPDATE audit_log SET at = at - interval '1 day'")
    for number in range(3):
        record(database, alice.id, *(f"act_{number}_{each}" for each in range(8)))
    look(user=alice.email, action="banned")
    *searched, last = [page.text for page in operator.pages()]
    assert ["Searched back to" in text for text in searched] == [True, True]
    assert "banned" in last.partition("<tbody>")[2]
