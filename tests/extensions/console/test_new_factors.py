"""Factors that a thief of an administrator's session could have added do not count for actions."""

import json

import pytest

from tests.support.factors import set_up
from tests.support.links import SITE
from tests.support.pages import Visitor, words
from tests.support.passkeys import register as register_passkey

TOO_NEW = "at least a week old"


@pytest.fixture
def age(database):
    """Make all factors, recovery codes and the user's first factor older by some days."""

    def age(days: float) -> None:
        times = {"users": "first_factor_at", "factors": "verified_at", "recovery_codes": "created_at"}
        for table, time in times.items():
            aged = f"UPDATE {table} SET {time} = {time} - %(days)s * interval '1 day'"
            database.run(aged, days=days)

    return age


@pytest.fixture
def owner(carol, age):
    """Carol's authenticator app, a month old, and her session."""
    codes, session = set_up(carol.open_session())
    age(30)
    return codes, session


@pytest.fixture
def signed_in(app, carol):
    """Sign Carol in with both steps, and return her browser."""

    def signed_in(codes):
        visitor = Visitor(app).signed_in_as(carol)
        visitor.visit("/second-step")
        visitor.press("second-step", factor_id=codes.id, code=codes.code())
        return visitor

    return signed_in


@pytest.fixture
def delete(alice, database):
    """Try to delete Alice, and return the page."""

    def delete(visitor, person=alice, **fields):
        visitor.visit(f"/console/users/{person.id}/delete")
        return visitor.press("delete", **fields)

    return delete


def test_new_factors_do_not_count_beside_an_app_for_a_week(
    signed_in, owner, delete, alice, bob, age, database
):
    codes, session = owner
    thief = signed_in(codes)
    new_codes, _ = set_up(session, "thief's")
    recovery = session.post("/factors/recovery-codes", json={}).json["codes"]
    page = delete(thief, factor_code=new_codes.code())
    assert (page.status, "that is at least a week old" in page.text) == (422, True)
    assert delete(thief, factor_code=recovery[0]).status == 422
    authenticator, _ = register_passkey(session)
    assert "data-passkey" not in thief.visit(f"/console/users/{alice.id}/delete").text
    age(8)
    thief.visit(f"/console/users/{alice.id}/delete")
    credential = json.dumps(authenticator.get(thief.passkey_options))
    fields = next(form.fields for form in thief.page.forms if "challenge_id" in form.fields)
    age(-8)
    page = delete(thief, credential=credential, challenge_id=fields["challenge_id"])
    assert (page.status, "added in the last seven days" in page.text) == (400, True)
    assert database.count("users") == 3
    assert delete(thief, factor_code=codes.code(1)).status == 200
    age(7)
    assert delete(thief, bob, factor_code=recovery[0]).status == 200


def test_thief_who_replaces_all_factors_waits_a_week(signed_in, owner, alice, delete, age, database):
    codes, session = owner
    assert session.delete(f"/factors/{codes.id}").status_code == 200
    new_codes, _ = set_up(session)
    thief = signed_in(new_codes)
    assert TOO_NEW in words(thief.visit(f"/console/users/{alice.id}/delete"))
    thief.visit(f"/console/users/{alice.id}/ban")
    ban = next(form for form in thief.page.forms if form.action.endswith("/ban"))
    fields = ban.fields | {"factor_code": new_codes.code(1)}
    thief.post(f"{SITE}/console/users/{alice.id}/delete", fields)
    assert (thief.page.status, "at least a week old" in thief.page.text) == (422, True)
    assert database.count("users") == 2
    age(7)
    assert delete(thief, factor_code=new_codes.code(1)).status == 200


def test_factor_added_on_the_day_of_the_first_one_waits_a_week(signed_in, carol, delete, age, database):
    codes, session = set_up(carol.open_session())
    age(1 / 23)
    new_codes, _ = set_up(session, "thief's")
    visitor = signed_in(codes)
    assert delete(visitor, factor_code=new_codes.code()).status == 422
    assert database.count("users") == 2
    assert delete(visitor, factor_code=codes.code(1)).status == 200


def test_factor_added_after_a_removal_by_the_service_role_key_counts_at_once(
    client, service_role, carol, owner, signed_in, delete
):
    codes, _ = owner
    path = f"/admin/users/{carol.id}/factors/{codes.id}"
    assert client.delete(path, headers=service_role).status_code == 200
    new_codes, _ = set_up(carol.sign_in())
    assert delete(signed_in(new_codes), factor_code=new_codes.code(1)).status == 200
