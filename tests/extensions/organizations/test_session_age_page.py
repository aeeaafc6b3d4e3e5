"""The page with which owners limit how long a sign-in counts, and the button *Sign in again* of members."""

from urllib.parse import parse_qs, urlsplit

import pytest

from auth.extensions.organizations.pages import shut_out as shut_out_pages
from tests.support.factors import set_up
from tests.support.pages import unsigned, words
from tests.support.users import PASSWORD

PATH = "/account/organizations/acme"
PAGE = f"{PATH}/requirement/age"
ASKS = "Acme asks you to sign in again."


@pytest.fixture
def age(database):
    def age(seconds, person=None):
        database.run(
            "UPDATE sessions SET created_at = created_at - make_interval(secs => %(seconds)s),"
            " reauthenticated_at = reauthenticated_at - make_interval(secs => %(seconds)s)"
            " WHERE %(id)s IS NULL OR user_id = %(id)s::uuid",
            seconds=seconds,
            id=person and person.id,
        )

    return age


def test_owner_reads_for_each_choice_whom_it_shuts_out_and_sets_it(
    acme, join, alice, bob, browse, age, database
):
    join(bob, acme)
    visitor = browse(alice)
    age(7_200, bob)
    text = words(visitor.visit(PAGE))
    for sentence in (
        "How long does a sign\u2011in count at Acme ?",
        "Members whose sign\u2011in is older have no access to Acme until they sign in again. They stay signed in"
        " everywhere else.",
        f"“ {ASKS}”",
        "Applications learn of it within an hour.",
        "As long as the session lasts",
        "1 hour 1 of 2 members would have to sign in again now.",
        "8 hours 12 hours 1 day 1 week 1 month",
    ):
        assert sentence in text, text
    page = visitor.submit(max_age="43200")
    assert unsigned(page).endswith(f"{PATH}?done=session_age#settings")
    assert "The sign\u2011in frequency has been changed." in words(page)
    assert "A sign\u2011in counts for 12 hours." in words(page)
    assert database.value("SELECT extract(epoch FROM max_age)::int FROM organizations") == 43_200
    assert 'value="43200" required checked' in visitor.visit(PAGE).text
    visitor.submit(max_age="0")
    assert database.value("SELECT max_age FROM organizations") is None
    assert "A sign\u2011in counts as long as the session lasts." in words(visitor.page)


@pytest.mark.parametrize("value", ["", "899", "31536001", "-1", "1e4", "٩٠٠", "4320000000000", "null"])
def test_forged_choice_is_refused(acme, alice, browse, database, value):
    visitor = browse(alice)
    visitor.visit(PAGE)
    page = visitor.send(PAGE, max_age=value)
    assert page.status == 400
    assert database.value("SELECT max_age FROM organizations") is None


def test_choice_of_the_api_is_among_those_of_the_page(acme, alice, browse, database):
    database.run("UPDATE organizations SET max_age = '10 hours'")
    page = browse(alice).visit(PAGE)
    assert 'value="36000" required checked' in page.text
    assert "10 hours" in words(page)


def test_owner_whose_own_sign_in_is_too_old_is_told_before_and_led_there(acme, alice, browse, age, database):
    visitor = browse(alice)
    age(7_200)
    page = visitor.visit(PAGE)
    assert "Your own sign\u2011in is too old for some of these choices." in words(page)
    url = visitor.link_to("account/confirm?next=organizations%2Facme%2Frequirement%2Fage")
    # The press itself leads there, too.
    page = visitor.submit(max_age="3600")
    assert urlsplit(page.url).path == "/account/confirm"
    assert database.value("SELECT max_age FROM organizations") is None
    # Acme asks for nothing yet.
    assert "We ask this before sensitive changes" in words(visitor.visit(url))
    page = visitor.submit(current_password=PASSWORD)
    assert page.url.endswith(PAGE)
    assert "Your own sign\u2011in" not in words(page)
    visitor.submit(max_age="3600")
    assert database.value("SELECT extract(epoch FROM max_age)::int FROM organizations") == 3_600


def test_page_is_for_owners(acme, join, bob, browse, database):
    join(bob, acme, "admin")
    visitor = browse(bob)
    assert visitor.visit(PAGE).status == 404
    visitor.visit(PATH)
    assert visitor.send(PAGE, max_age="3600").status == 404
    assert database.value("SELECT max_age FROM organizations") is None


def test_admins_and_members_read_the_requirement(acme, join, bob, browse, database):
    join(bob, acme)
    database.run("UPDATE organizations SET max_age = '12 hours'")
    page = browse(bob).visit(PATH)
    assert "Sign\u2011in frequency A sign\u2011in counts for 12 hours." in words(page)
    assert "requirement/age" not in page.text


def test_member_signs_in_again_from_the_account_and_comes_back(acme, join, bob, browse, age, database):
    join(bob, acme)
    visitor = browse(bob)
    database.run("UPDATE organizations SET max_age = '1 hour'")
    age(3_601)
    page = visitor.visit("/account")
    assert ASKS in words(page)
    url = visitor.link_to("account/confirm")
    assert parse_qs(urlsplit(url).query) == {"next": ["organizations/acme"]}
    text = words(visitor.visit(url))
    assert ASKS in text, text
    assert "sensitive changes" not in text
    # Nor after an error.
    assert ASKS in words(visitor.submit(current_password="wrong"))
    page = visitor.submit(current_password=PASSWORD)
    assert (page.status, page.url.endswith(PATH)) == (200, True)
    assert ASKS not in words(visitor.visit("/account"))
    # Nobody was signed out.
    assert database.count("sessions", "ended_at IS NOT NULL") == 0


def test_member_with_a_second_step_signs_in_again_with_it(acme, join, bob, owner, browse, age, database):
    session = join(bob, acme)
    app, _ = set_up(session)
    visitor = browse(bob)
    database.run("UPDATE organizations SET max_age = '1 hour'")
    database.run("UPDATE sessions SET aal = 'aal2', factor_proved_at = now() - interval '2 hours'")
    age(3_601)
    visitor.visit("/account")
    page = visitor.visit(visitor.link_to("account/confirm"))
    assert urlsplit(page.url).path == "/second-step"
    assert f"{ASKS} Enter the code from your authenticator app." in words(page)
    # The account is open without it.
    assert visitor.link("Back to your account").endswith("/account")
    page = visitor.submit(code=app.code(1))
    assert (page.status, page.url.endswith(PATH)) == (200, True)


def test_history_says_it(acme, alice, browse, owner, client, service_role):
    for seconds in (43_200, None):
        body = {"requires": {"max_age": seconds}}
        assert client.put(acme, json=body, headers=service_role).status_code == 200
    text = words(browse(alice).visit(f"{PATH}/history"))
    assert "The operator of localhost:8000 limited how long a sign\u2011in counts to 12 hours." in text
    assert "The operator of localhost:8000 stopped limiting how long a sign\u2011in counts." in text


@pytest.mark.parametrize(
    ("change", "shut_out"),
    [
        ("", False),
        ("UPDATE sessions SET created_at = created_at - interval '2 hours' WHERE user_id = %(id)s", True),
        # One young session is enough.
        (
            "INSERT INTO sessions (user_id, method, created_at) VALUES (%(id)s, 'password', now() - interval '9 hours')",
            False,
        ),
        (
            "UPDATE sessions SET created_at = created_at - interval '2 hours', reauthenticated_at = now() WHERE user_id = %(id)s",
            False,
        ),
        ("UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE user_id = %(id)s", True),
        ("DELETE FROM sessions WHERE user_id = %(id)s", True),
    ],
    ids=["young", "old", "two", "proved", "ended", "none"],
)
def test_count_is_of_members_without_a_young_sign_in(
    acme, join, alice, bob, browse, database, change, shut_out
):
    join(bob, acme)
    visitor = browse(alice)
    if change:
        database.run(change, id=bob.id)
    text = words(visitor.visit(PAGE))
    assert ("1 hour 1 of 2 members would have to sign in again now." in text) is shut_out, text
    # Nobody's name: it would tell when a member uses other parts of the service.
    assert "bob@example.com" not in text


def test_count_looks_at_the_first_members_and_says_so(acme, join, alice, bob, browse, age, monkeypatch):
    join(bob, acme)
    visitor = browse(alice)
    monkeypatch.setattr(shut_out_pages, "MOST_MEMBERS", 1)
    age(7_200)
    assert "1 hour 1 of the 10,000 members who joined first would have" in words(visitor.visit(PAGE))
