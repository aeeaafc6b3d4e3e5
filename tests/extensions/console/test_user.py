"""A user's page: whether they can sign in, what they have, and what happened."""

import re
from itertools import chain

import pytest

from tests.support.api_keys import make_key, use
from tests.support.audit import clear_history, record
from tests.support.factors import set_up
from tests.support.links import PHONE
from tests.support.pages import Visitor, words
from tests.support.passkeys import make_unasked
from tests.support.passkeys import register as register_passkey

UNKNOWN_ID = "11111111-1111-1111-1111-111111111111"


@pytest.fixture
def look(operator):
    """Return the text of a user's page."""

    def look(user_id, query=""):
        page = operator.visit(f"/console/users/{user_id}{query}")
        assert page.status == 200, page.text
        return words(page)

    return look


def entries(operator):
    """Return the sentences of the timeline on the current page."""
    return re.findall(r"<span>(.*?)</span></li>", operator.page.text.partition('id="timeline"')[2])


def test_first_sentence_tells_whether_the_user_can_sign_in(look, alice, database):
    assert "Can sign in with a password or an emailed link. Details" in look(alice.id)
    database.run("UPDATE users SET banned_until = '9999-12-31T23:59:59Z' WHERE role <> 'admin'")
    text = look(alice.id)
    assert "Can’t sign in: Banned permanently. Lift the ban to let them in." in text
    assert "Send a recovery" not in text
    database.run("UPDATE users SET banned_until = NULL, email_confirmed_at = NULL WHERE role <> 'admin'")
    text = look(alice.id)
    assert "Can sign in with an emailed link, but: The email isn’t confirmed" in text
    assert "Send a recovery email: its link confirms the address." in text


def test_first_sentence_names_the_second_step_and_leads_to_its_reset(operator, look, alice, database):
    assert "Two-step" not in operator.visit(f"/console/users/{alice.id}").text.partition("Details")[0]
    _app, session = set_up(alice.open_session(), "Pixel 9")
    text = look(alice.id)
    assert (
        "Can sign in with a password or an emailed link, then a code from “Pixel 9”. No recovery codes."
        in text
    )
    # A user who loses that phone cannot sign in.
    assert '<section class="verdict "' in operator.page.text
    assert operator.link("Reset two-step").endswith(f"/console/users/{alice.id}/reset-two-step")
    session.post("/factors/recovery-codes")
    assert "10 recovery codes left." in look(alice.id)
    assert '<section class="verdict good"' in operator.page.text
    register_passkey(session)
    assert "then a code from “Pixel 9”, or with a passkey alone. " in look(alice.id)
    database.run(INSERT_WRONG_TRIES, kind="totp", subject=alice.id)
    database.run("DELETE FROM factors WHERE factor_type = 'totp'")
    assert "then a code" not in look(alice.id).partition("Details")[0]


def test_buttons_are_quiet_and_name_what_support_needs(operator, alice):
    def buttons():
        head = (
            operator.visit(f"/console/users/{alice.id}")
            .text.partition('class="acts"')[2]
            .partition("<details")[0]
        )
        return re.findall(r'<a class="(.*?)" .*?>(.*?)</a>', head)

    assert buttons() == [("button other", "Send recovery email")]
    set_up(alice.open_session())
    names = ["Send recovery email", "Sign out everywhere", "Reset two-step"]
    assert buttons() == [("button other", name) for name in names]
    assert operator.page.text.count(">Sign out everywhere</a>") == 2


INSERT_WRONG_TRIES = (
    "INSERT INTO failure_counts (key, count, expires_at, kind, subject, network) VALUES"
    " ('1', 20, now() + interval '1 hour', %(kind)s, %(subject)s, '10.0.0.1')"
)


def test_lock_is_named_first_with_the_ways_that_still_work(make_app, carol, alice, database):
    operator = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true")).with_session_of(carol)
    for kind, subject, sentence in (
        ("login", alice.email, "Locked, except with an emailed link: 10 of 10"),
        ("code", alice.email, "Locked, except with a password or an emailed link: 20 of 20"),
        ("totp", alice.id, "Locked: 20 of 20 wrong authenticator codes"),
    ):
        database.run(INSERT_WRONG_TRIES, kind=kind, subject=subject)
        text = words(operator.visit(f"/console/users/{alice.id}"))
        assert sentence in text
        assert f"{alice.email} Locked Email" in words(operator.visit("/console/users?status=locked"))
        assert "Locked locked after wrong passwords or codes" in text
        assert "Can sign in" not in text
        assert "a passkey works" not in text
        database.run("DELETE FROM failure_counts")


def test_passkey_that_was_not_used_is_shown_as_that_and_is_no_way_to_sign_in(look, alice, database):
    make_unasked(alice.open_session())
    database.run("UPDATE users SET password_hash = NULL WHERE role <> 'admin'")
    text = look(alice.id)
    assert re.search(r"passkey, added [^,]+, made by the browser, not used yet", text)
    assert "Can sign in with an emailed link" in text
    assert "or a passkey" not in text
    # An operator's reset removes it.
    assert "Reset two-step" in text


def test_page_shows_facts_sessions_factors_identities_and_metadata(look, alice, client, service_role):
    body = {"phone": PHONE, "user_metadata": {"name": "Alice"}, "app_metadata": {"plan": "team"}}
    client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
    set_up(alice.sign_in(), "Alice's phone")
    text = look(alice.id)
    for fact in (
        f"ID {alice.id} Copy Email alice@example.com confirmed Phone {PHONE} not confirmed Role User",
        "Password set Two-step 1 set up, no recovery codes",
        "Unknown device two-step 127.0.0.1, last used just now , started just now End Unknown device",
        "Alice's phone authenticator app, added just now , last used just now Remove Alice's phone",
        "Email alice@example.com",
        f"Phone {PHONE}",
        '{ "name": "Alice" }',
        '{ "plan": "team" }',
        "Second factor added waiting to alice@example.com, created just now",
    ):
        assert fact in text
    # The subject of an email is the user's ID, which is above.
    assert f"{alice.id}, " not in text


def test_page_shows_the_claims_of_the_next_token(make_app, alice, carol, database):
    operator = Visitor(make_app(AUTH_TOKEN_CLAIMS='{"roles": "app_metadata.roles"}')).with_session_of(carol)
    database.run('UPDATE users SET app_metadata = \'{"roles": "<b>"}\'')
    page = operator.visit(f"/console/users/{alice.id}")
    assert "<dt>Claims</dt><dd><code>{&#34;roles&#34;: &#34;&lt;b&gt;&#34;}</code></dd>" in page.text


def test_administrators_are_shown_without_acts(look, operator, carol, client, service_role, alice):
    assert "This is you. Manage your account" in look(carol.id)
    client.put(f"/admin/users/{alice.id}", json={"role": "admin"}, headers=service_role)
    alice.sign_in()
    client.post("/recover", json={"email": alice.email})
    assert "To change an administrator, use the service role key." in look(alice.id)
    assert f"{alice.id}/" not in operator.page.text
    assert "/resend" not in operator.page.text


def test_page_has_no_secret(look, operator, alice, client, outbox, database):
    session = alice.open_session()
    app, _session = set_up(session)
    client.post("/recover", json={"email": alice.email})
    message = outbox.last(alice.email, kind="recovery")
    look(alice.id)
    hashed = database.value("SELECT password_hash FROM users WHERE id = %(id)s", id=alice.id)
    for secret in (message.token, message.code, session.refresh_token, hashed, app.secret):
        assert secret not in operator.page.text


class TestTimeline:
    @pytest.fixture
    def long_story(self, alice, database):
        """Sixty entries, four of each moment."""
        clear_history(database)
        database.run(
            """
            INSERT INTO audit_log (at, action, reason, user_id, actor, details)
            SELECT now() - make_interval(hours => hour), name,
                   CASE name WHEN 'sign_in_refused' THEN 'invalid_credentials' END, %(id)s, 'service',
                   jsonb_build_object('method', 'm' || hour)
              FROM generate_series(1, 15) AS hour
             CROSS JOIN unnest('{banned,unbanned,signed_in,sign_in_refused}'::text[]) AS name
            """,
            id=alice.id,
        )

    def test_pages_of_keys_show_each_entry_once_and_in_order(self, operator, alice, long_story, database):
        operator.visit(f"/console/users/{alice.id}")
        pages = [entries(operator) for _page in operator.pages()]
        sentences = [*chain(*pages)]
        assert (len(sentences), len(pages)) == (60, 3)
        methods = [text.split()[3] for text in sentences if text.startswith("signed in")]
        assert methods == [f"m{hour}," for hour in range(1, 16)]
        assert operator.visit(operator.link("First")).status == 200
        assert entries(operator) == sentences[:25]
        # Concurrent writes do not shift a page.
        older = operator.link("Next")
        record(database, alice.id, "banned")
        operator.visit(older)
        assert entries(operator) == sentences[25:50]

    def test_unknown_user_is_not_found_and_a_malformed_query_refused(self, operator, alice):
        for user_id in (UNKNOWN_ID, "x", "%27"):
            assert operator.visit(f"/console/users/{user_id}").status == 404
        for query in ("kind=x", "before_at=now", "before_place=4", "before_id=x"):
            assert operator.visit(f"/console/users/{alice.id}?{query}").status == 400


def test_api_key_is_shown_and_removed(make_app, alice, carol, database, outbox):
    app = make_app(AUTH_API_KEYS="true")
    operator, client = Visitor(app).with_session_of(carol), app.test_client()
    id, key = make_key(alice.open_session(client), "<b>CI</b>", scopes=["read"], expires_in=86_400)
    page = operator.visit(f"/console/users/{alice.id}")
    assert f"API keys <b>CI</b> {key[:11]}… Added just now , never used, expires " in words(page)
    assert ("<b>CI" in page.text, key in page.text) == (False, False)
    operator.visit(f"/console/users/{alice.id}/api-keys/{id}/remove")
    assert "Removes 1 API key: “<b>CI</b>”." in words(operator.page)
    assert "No API keys." in words(operator.press("/remove"))
    assert use(client, key).status_code == 401
    assert outbox.sent(alice.email, "api_key_removed") == []
    assert database.value("SELECT actor_id FROM audit_log WHERE action = 'api_key_removed'") == carol.id
