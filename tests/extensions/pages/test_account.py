"""The pages of the account: each item, the proof that sensitive ones require, and what was added recently."""

import json
import re
import uuid

import pytest

from auth.core.addresses import spaced_phone
from tests.support.answers import assert_error
from tests.support.api_keys import insert_key, use
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.factors import set_up
from tests.support.links import OTHER_PHONE, PHONE, SITE
from tests.support.openid import allow, insert_public_client
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import NEW_EMAIL, PASSWORD

PASS_TWENTY_MINUTES = "UPDATE sessions SET created_at = created_at - interval '20 minutes'"


@pytest.fixture
def visitor(app, alice) -> Visitor:
    """Alice's browser, in which she is signed in."""
    return Visitor(app).with_session_of(alice)


@pytest.fixture
def with_phone(visitor, outbox) -> Visitor:
    """Alice's browser, in which she has just added a phone."""
    visitor.visit("/account/phone")
    visitor.submit(phone=PHONE)
    assert unsigned(visitor.submit(code=outbox.last(PHONE).code)) == f"{SITE}/account?done=phone"
    return visitor


def test_account_page_runs_eight_statements_and_organizations_one_more(visitor, make_app, alice):
    """They read the session, the user twice, the second steps, devices, applications, recent additions, and the
    credentials that the browser keeps.
    """
    with_organizations = Visitor(make_app(AUTH_ORGANIZATIONS="users")).with_session_of(alice)
    for browser, statements in ((visitor, 8), (with_organizations, 9)):
        before = statements_run()
        assert browser.visit("/account").status == 200
        assert statements_run() - before == statements


def test_page_of_an_address_shows_which_one_changes_or_goes(with_phone, alice):
    for kind, address in (("email", alice.email), ("phone", spaced_phone(PHONE))):
        text = words(with_phone.visit(f"/account/{kind}"))
        assert f"Now: {address}" in text.replace("\u200b", "")
        assert f"Remove {address}" in text


def test_user_without_recovery_codes_is_offered_some_and_not_warned_about_them(app, alice):
    phone, _session = set_up(alice.open_session(), "Phone")
    visitor = Visitor(app).with_session_of(alice)
    visitor.visit("/account")
    visitor.press("second-step", code=phone.code())
    assert "Recovery codes None Create" in words(visitor.visit("/account"))
    assert "Create recovery codes? Create" in words(visitor.visit("/account/recovery-codes"))
    text = words(visitor.visit(f"/account/remove?kind=factor&id={phone.id}"))
    assert ("Two-step verification will be off." in text, "stop working" in text) == (True, False)


class TestItems:
    def test_last_used_devices_are_shown_first_and_the_sixth_behind_a_click(self, visitor, alice, database):
        for hours, agent in enumerate(
            ["Firefox/120.0 (X11; Linux)", "curl/8.5.0", "made-up/1", None, None, None]
        ):
            statement = "UPDATE sessions SET user_agent = %(agent)s, refreshed_at = now() - %(hours)s * interval '1 hour'"
            id = alice.sign_in().claims["session_id"]
            database.run(f"{statement} WHERE id = %(id)s", agent=agent, hours=hours, id=id)
        page = visitor.visit("/account")
        devices = page.text.partition('<section id="devices"')[2].partition("</section>")[0]
        names = re.findall(r"<strong>([^<]+)", devices)
        assert names[:4] == ["Sign out everywhere else", "Unknown device", "Firefox on Linux", "curl"]
        visible, _, behind = devices.partition("<summary>2 more</summary>")
        assert (visible.count('account/sessions/end"'), behind.count('account/sessions/end"')) == (4, 2)

    def test_session_of_an_application_stands_below_that_of_its_browser(self, visitor, alice, database):
        laptop, app_session, phone, orphan = (alice.open_session() for _ in range(4))
        opened_by = "UPDATE sessions SET opened_by = %(opener)s WHERE id = %(id)s"
        database.run(opened_by, opener=laptop.id, id=app_session.id)
        database.run(opened_by, opener=str(uuid.uuid4()), id=orphan.id)
        above, *below = visitor.visit("/account").text.split('<li class="opened">')
        assert [f'value="{app_session.id}"' in each for each in below] == [True]
        assert above.rindex(laptop.id) > max(above.rindex(each.id) for each in (phone, orphan))

    def test_account_is_for_signed_in_browsers_only(self, app, client, alice):
        # Pages to which a sign-in may return.
        next_names = {"/account/email": "email", "/account/delete": "delete", "/new-password": "new-password"}
        for path in ("/account", "/account/data", *next_names):
            stranger, query = Visitor(app), f"next={next_names[path]}" if path in next_names else ""
            # Only a browser with a cookie had a session that could end.
            assert stranger.visit(path).url == f"{SITE}/sign-in{query and '?'}{query}"
            stranger.plant("latchkey", "a" * 43)
            url = f"{SITE}/sign-in?error_code=session_expired{query and '&'}{query}"
            assert unsigned(stranger.visit(path)) == url
        response = client.get("/account", headers=alice.open_session().authorization)
        assert_error(response, 401, "session_not_found", "Your session has ended. Please sign in again.")

    def test_present_address_withdraws_the_pending_change_and_the_page_says_what_stays(
        self, with_phone, alice, outbox
    ):
        for kind, present, new, message in (
            ("email", alice.email, NEW_EMAIL, "Your email address stays {}"),
            ("phone", PHONE, OTHER_PHONE, "Your phone number stays {}"),
        ):
            with_phone.visit(f"/account/{kind}")
            with_phone.submit(**{kind: new})
            waiting_url, code = with_phone.page.url, outbox.last(new).code
            # Another tab.
            with_phone.visit(f"/account/{kind}")
            page = with_phone.submit(**{kind: present.upper()})
            assert unsigned(page) == f"{SITE}/account?done={kind}_stays"
            assert (message.format(spaced_phone(present)) in words(page), new in words(page)) == (True, False)
            # The page that waits for the code is still open.
            with_phone.visit(waiting_url)
            assert with_phone.submit(code=code).status == 403


class TestProof:
    def test_sensitive_pages_ask_for_a_proof_and_go_on(self, make_app, alice, database):
        visitor = Visitor(make_app(AUTH_API_KEYS="true")).with_session_of(alice)
        for path in ("account/email", "account/phone", "account/delete", "new-password", "account/api-keys"):
            database.run(PASS_TWENTY_MINUTES + ", reauthenticated_at = NULL")
            confirm = f"{SITE}/account/confirm?next={path.rpartition('/')[2]}"
            assert visitor.visit(f"/{path}").url == confirm
            assert visitor.submit(current_password=PASSWORD).url == f"{SITE}/{path}"

    @pytest.mark.parametrize(
        ("path", "fields", "text"),
        [
            ("email", {"email": NEW_EMAIL}, "new@example.com"),
            ("delete", {"confirmed": "yes"}, "Your account has been deleted"),
        ],
    )
    def test_form_that_was_open_for_too_long_asks_for_a_proof_and_comes_back_empty(
        self, make_app, alice, database, path, fields, text
    ):
        visitor = Visitor(make_app(AUTH_REAUTHENTICATION_AGE="always")).signed_in_as(alice)
        visitor.visit(f"/account/{path}")
        database.run("UPDATE sessions SET created_at = created_at - interval '6 minutes'")
        assert visitor.submit(**fields).url == f"{SITE}/account/confirm?next={path}"
        assert visitor.submit(current_password=PASSWORD).url == f"{SITE}/account/{path}"
        assert text not in visitor.page.text
        assert text in visitor.submit(**fields).text


def test_only_sessions_of_the_user_are_ended(visitor, alice, bob):
    laptop, tablet, session_of_bob = alice.open_session(), alice.open_session(), bob.open_session()
    visitor.visit("/account")
    for session in (laptop, session_of_bob):
        visitor.send("/account/sessions/end", id=session.id)
        assert unsigned(visitor.page).startswith(f"{SITE}/account?done=device")
    assert (laptop.get("/user").status_code, tablet.get("/user").status_code) == (401, 200)
    visitor.send("/account/sessions/end-others")
    assert unsigned(visitor.page).startswith(f"{SITE}/account?done=devices")
    assert (tablet.get("/user").status_code, session_of_bob.get("/user").status_code) == (401, 200)


class TestApplications:
    def test_application_is_shown_with_what_it_may_see_and_removed(self, visitor, alice, database):
        assert "applications" not in visitor.visit("/account").text
        client_id = insert_public_client(database, name="Grafana")
        session_id = allow(database, alice.id, client_id, age="3 days", scopes=["openid", "email", "groups"])
        html = visitor.visit("/account").text
        scopes = "See your account ID · See your email address · See your groups · Allowed <time "
        assert '<h2 id="applications-heading">Connected applications</h2>' in html
        assert f'<bdi translate="no">Grafana</bdi></strong><span class="small">{scopes}' in html
        assert (
            json.loads(visitor.visit("/account/data").text)["applications"][0]["client"]["name"] == "Grafana"
        )
        visitor.visit("/account")
        page = visitor.remove("application")
        assert unsigned(page) == f"{SITE}/account?done=application_removed"
        assert "The application has been removed." in page.text
        assert database.count("oauth_grants") == database.count("sessions", "id = %(id)s", id=session_id) == 0

    @pytest.mark.parametrize("path", ["/account", "/account/changes"])
    def test_name_is_escaped_isolated_and_short(self, visitor, alice, database, path):
        name, escaped = "<script>\u202e\n x</script>" + "x" * 1024, "&lt;script&gt; x&lt;/script&gt;xxx"
        allow(database, alice.id, insert_public_client(database, name=name, is_dynamic=True))
        allow(database, alice.id, insert_public_client(database, name="\u200b\u202e", is_dynamic=True))
        text = visitor.visit(path).text
        assert re.search(f'<bdi translate="no">{escaped}x+…</bdi>', text)
        assert "Unnamed application" in text


class TestApiKeys:
    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_API_KEYS="true")

    def test_key_is_made_shown_once_used_and_removed(self, visitor, client, database, outbox, alice):
        visitor.visit("/account")
        visitor.visit(visitor.link_to("account/api-keys"))
        html = visitor.submit(name=" <b>CI</b> ", days="", scopes="b a").text
        (key,) = re.findall(r">(lk_\w+)</code>", html)
        row = database.one("SELECT name, scopes, expires_at FROM api_keys")
        assert row == ("<b>CI</b>", ["b", "a"], None)
        assert use(client, key).status_code == 200
        page = visitor.visit("/account")
        assert '<bdi translate="no">&lt;b&gt;CI&lt;/b&gt;</bdi>' in page.text
        assert ("used today" in page.text, key in page.text) == (True, False)
        assert json.loads(visitor.visit("/account/data").text)["api_keys"][0]["prefix"] == key[:11]
        visitor.visit("/account")
        assert unsigned(visitor.remove("api_key")) == f"{SITE}/account?done=api_key_removed#api_keys"
        assert [message.kind for message in outbox.sent(alice.email)] == ["api_key_added", "api_key_removed"]


@cases("kind", ["application", "api_key", "change"])
def test_thing_of_another_user_is_not_removed(make_app, client, alice, bob, database, kind):
    visitor = Visitor(make_app(AUTH_API_KEYS="true")).with_session_of(alice)
    client_id = insert_public_client(database)
    allow(database, bob.id, client_id)
    insert_key(database, bob.id)
    things = {
        "application": [client_id],
        "api_key": [row.id for row in database.all("SELECT id FROM api_keys")],
        # Her own address is no recent change either.
        "change": [row.id for row in database.all("SELECT id FROM identities")],
    }
    before = database.everything("oauth_grants", "api_keys", "identities")
    for id in (*things[kind], "x"):
        visitor.visit("/account/changes")
        assert visitor.send("/account/remove", kind=kind, id=str(id)).status == 404
    assert database.everything("oauth_grants", "api_keys", "identities") == before


def test_download_has_no_secrets_and_no_devices_of_administrators(app, alice, client, service_role):
    headers = service_role | {"User-Agent": "Console of the operator"}
    client.put(f"/admin/users/{alice.id}", json={"user_metadata": {"plan": "gold"}}, headers=headers)
    alice.try_to_sign_in("Wrong-Horse-1")
    visitor = Visitor(app).signed_in_as(alice)
    alice.open_session()
    page = visitor.visit("/account/data")
    assert page.headers["Content-Disposition"] == 'attachment; filename="account.json"'
    data = json.loads(page.text)
    assert data["user"]["email"] == alice.email
    assert [session["current"] for session in data["sessions"]] == [True, False]
    for part in ('"action": "sign_in_refused"', '"by": "you"', '"by": "administrator"'):
        assert part in page.text
    assert "Console of the operator" not in page.text
    assert "password" not in page.text.replace('"method": "password"', "")


def test_addition_is_shown_and_removed_with_other_sessions_after_a_proof(with_phone, alice, database):
    thief = alice.open_session()
    assert "1 recent change" in with_phone.visit("/account").text
    assert spaced_phone(PHONE) in with_phone.visit("/account/changes").text
    database.run(PASS_TWENTY_MINUTES)
    removal = with_phone.link_to("account/remove?kind=change")
    assert with_phone.visit(removal).url.startswith(f"{SITE}/account/confirm?next=account%2Fremove")
    assert with_phone.submit(current_password=PASSWORD).url == removal
    assert database.value("SELECT phone FROM users") == PHONE
    page = with_phone.press("account/remove")
    assert unsigned(page) == f"{SITE}/account/changes?done=removed"
    assert "All other devices have been signed out" in page.text
    assert database.value("SELECT phone FROM users") is None
    assert thief.get("/user").status_code == 401


@cases(("site", "is_kept"), [("same-site", False), (None, False), ("same-origin", True)])
def test_form_with_a_wrong_token_comes_back_without_foreign_values(app, visitor, site, is_kept):
    headers = {"Cookie": f"latchkey={visitor.session_cookie.value}", "Accept": "text/html"}
    headers |= {"Sec-Fetch-Site": site} if site else {}
    form = {"name": "Mallory", "form_token": "old"}
    page = app.test_client(use_cookies=False).post("/account/name", data=form, headers=headers)
    assert (page.status_code, "Mallory" in page.text) == (403, is_kept)
