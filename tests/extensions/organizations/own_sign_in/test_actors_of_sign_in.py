"""Who acted, in the audit log: an employee who signs in for the first time, and an owner who removes a member."""

from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.audit import clear_history, record


def test_employee_who_signs_in_for_the_first_time_did_all_of_it(
    armed, on, service, customers, database, provider, provider_identifier
):
    clear_history(database)
    customers.acme.be("7", "zoe@example.com")
    service.signed_in(provider_identifier)
    zoe = database.value("SELECT id::text FROM users WHERE email = 'zoe@example.com'")
    entries = database.all(
        "SELECT action, actor, actor_id::text FROM audit_log WHERE user_id = %(id)s ORDER BY action",
        id=zoe,
    )
    assert [tuple(entry) for entry in entries] == [
        (action, "user", zoe) for action in ("membership_added", "signed_in", "user_created")
    ]


def test_entries_of_earlier_nodes_are_shown_as_those_of_the_user(armed, alice, database, id):
    clear_history(database)
    organization = {"id": id, "slug": "acme"}
    for action in ("membership_added", "identity_linked", "message_requested"):
        record(database, alice.id, action, organization=organization)
    database.run("UPDATE audit_log SET actor = 'anonymous', actor_id = NULL")
    rows = armed.visit("/console/audit").text.partition("<tbody>")[2].split("<tr>")[1:]
    actors = {row.split('title="')[2].partition('"')[0]: "the user" in row for row in rows}
    assert sum(actors.values()) == 2
    assert "anonymous" in next(row for row in rows if "message requested" in row)


def test_removal_says_who_was_removed(owner, acme, join, bob):
    join(bob, acme)
    assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
    entry = owner.get(f"{acme}/audit").json["data"][0]
    assert (entry["action"], entry["details"]["email"]) == ("membership_removed", bob.email)
