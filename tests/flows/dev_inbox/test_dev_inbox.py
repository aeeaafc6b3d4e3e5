"""GET /dev/inbox: sent messages, visible with the key that the start prints or the service role key."""

import re

import pytest

from auth.core.settings import SettingsError, served
from auth.delivery.deliverer import Deliverer
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, NO_ID, assert_error
from tests.support.cases import cases
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.outbox import CODE, TOKEN, Outbox, Recorder

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
INBOX_KEY = "the-key-of-the-inbox-of-these-tests"
KEY = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}


@pytest.fixture
def app(make_app, monkeypatch):
    monkeypatch.setattr(served, "inbox_key", INBOX_KEY)
    return make_app(AUTH_DEV_INBOX="true")


@pytest.fixture
def stranger(app):
    return app.test_client()


@pytest.fixture
def client(app):
    """A browser that has opened the inbox."""
    client = app.test_client()
    client.set_cookie("latchkey_inbox", INBOX_KEY)
    return client


@pytest.fixture
def parts(app):
    return app.extensions["latchkey"]


@pytest.fixture
def outbox(database, parts):
    return Outbox(database, parts)


@pytest.fixture
def target():
    return Recorder()


@pytest.fixture
def deliver(parts, target):
    return Deliverer(parts.settings, parts.db, parts.sealer, {"email": target, "sms": target}).deliver_due


def assert_key_needed(response):
    assert_error(response, 401, "no_authorization", details="Authorization: must be Bearer <token>")


def inbox(client, **headers):
    response = client.get("/dev/inbox", headers=headers)
    assert response.status_code == 200
    return response.json


class TestMessages:
    def test_inbox_shows_a_mail_with_its_link_and_code(self, client, outbox, deliver, database):
        id = outbox.write(redirect_to="http://localhost:8000/x")
        deliver()
        link = f"http://localhost:8000/verify?token={TOKEN}&type=magiclink&redirect_to=http%3A%2F%2Flocalhost%3A8000%2Fx"
        (mail,) = inbox(client)
        text = mail.pop("text")
        assert mail == {
            "id": id,
            "channel": "email",
            "kind": "magiclink",
            "recipient": "alice@example.com",
            "subject": "Sign in to localhost:8000",
            "link": link,
            "code": CODE,
            "refused_target": None,
            "created_at": A_TIMESTAMP,
            "outcome": "sent",
            "last_error": None,
            "response": "250 taken",
        }
        assert link in text
        assert CODE in text
        # The message is stored encrypted.
        everything = str(database.everything())
        assert database.count("dev_inbox") == 1
        assert TOKEN not in everything
        assert CODE not in everything

    def test_only_the_newest_500_messages_are_kept(self, client, outbox, deliver, database):
        outbox.write(recipient="oldest@example.com")
        deliver()
        database.run(
            "UPDATE dev_inbox SET kept_at = now() - interval '1 hour';"
            "INSERT INTO dev_inbox (id, sealed, kept_at)"
            " SELECT gen_random_uuid(), '', now() - number * interval '1 second' FROM generate_series(1, 499) AS number"
        )
        for recipient in ("newest@example.com", "another@example.com"):
            outbox.write(recipient=recipient)
            deliver()
            assert database.count("dev_inbox") == 500
        assert "oldest@example.com" not in [mail["recipient"] for mail in inbox(client)]
        mails = client.get("/dev/inbox?recipient=newest@example.com").json
        assert [mail["recipient"] for mail in mails] == ["newest@example.com"]

    def test_disabled_inbox_keeps_no_message(self, default_app, database):
        parts = default_app.extensions["latchkey"]
        Outbox(database, parts).write()
        Deliverer(parts.settings, parts.db, parts.sealer, {"email": Recorder()}).deliver_due()
        assert database.count("dev_inbox") == 0


class TestPage:
    def test_browser_gets_a_page(self, client, outbox, deliver):
        id = outbox.write()
        deliver()
        response = client.get("/dev/inbox", headers=BROWSER)
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert response.headers["Content-Security-Policy"] == (
            "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        assert f'<iframe sandbox src="inbox/{id}"' in response.text
        assert "alice@example.com" in response.text
        assert CODE in response.text
        assert not re.search(r"<script|<style|style=| on\w+=", response.text)

    def test_html_of_a_message_is_in_a_sandbox(self, client, outbox, deliver, target, make_app, tmp_path):
        path = f"/dev/inbox/{outbox.write()}"
        deliver()
        response = client.get(path)
        assert (response.status_code, response.text) == (200, target.sent[0][1].html)
        policy = "sandbox; default-src 'none'; style-src 'unsafe-inline';{} form-action 'none'; frame-ancestors 'self'; base-uri 'none'"
        assert response.headers["Content-Security-Policy"] == policy.format("")
        # The logo may be loaded.
        (tmp_path / "logo.png").write_bytes(b"png")
        branded = make_app(AUTH_DEV_INBOX="true", AUTH_BRAND_LOGO=str(tmp_path / "logo.png")).test_client()
        assert " img-src 'self';" in branded.get(path, headers=KEY).headers["Content-Security-Policy"]


each_path = cases("path", ["/dev/inbox", "/auth/v1/dev/inbox", f"/dev/inbox/{NO_ID}"])
REFUSED = {(401, "no_authorization"), (401, "bad_jwt")}


class TestAccess:
    @each_path
    def test_disabled_inbox_is_404(self, default_app, database, path):
        assert_error(default_app.test_client().get(f"{path}?key={INBOX_KEY}", headers=KEY), 404, "not_found")

    @each_path
    @cases(
        "headers",
        [{}, {"Host": "localhost"}, {"Authorization": f"Bearer {INBOX_KEY}"}, {"apikey": INBOX_KEY}],
    )
    def test_request_without_the_key_is_refused_even_from_this_machine(
        self, stranger, database, path, headers
    ):
        response = stranger.get(path, headers=headers)
        assert (response.status_code, response.json["error_code"]) in REFUSED

    @each_path
    @cases("key", ["", "x", INBOX_KEY[:-1], INBOX_KEY + "x", INBOX_KEY.upper(), "ü", "%ED%A0%80", "%00"])
    def test_wrong_key_is_refused(self, stranger, database, path, key):
        assert_key_needed(stranger.get(f"{path}?key={key}"))
        assert_key_needed(stranger.get(path, headers={"Cookie": f"latchkey_inbox={key}"}))

    def test_printed_link_opens_the_page_and_its_key_disappears(self, stranger, database):
        response = stranger.get(f"/auth/v1/dev/inbox?key={INBOX_KEY}", headers=BROWSER)
        assert (response.status_code, response.location) == (303, "../dev/inbox")
        cookie = f"latchkey_inbox={INBOX_KEY}; HttpOnly; Path=/; SameSite=Lax"
        assert response.headers["Set-Cookie"] == cookie
        page = stranger.get("/dev/inbox", headers=BROWSER)
        assert (page.status_code, INBOX_KEY in page.text) == (200, False)
        # The link of an earlier start does not close it.
        assert stranger.get("/dev/inbox?key=old", headers=BROWSER).status_code == 303
        assert stranger.get("/dev/inbox", headers=BROWSER).status_code == 200

    def test_process_that_no_master_started_has_no_key(self, stranger, database, monkeypatch):
        monkeypatch.setattr(served, "inbox_key", "")
        for path in ("/dev/inbox", "/dev/inbox?key=", f"/dev/inbox?key={INBOX_KEY}"):
            assert_key_needed(stranger.get(path, headers={"Cookie": "latchkey_inbox="}))

    def test_service_role_key_is_accepted_from_anywhere(self, stranger, carol):
        def get(headers):
            return stranger.get("/dev/inbox", headers=headers, environ_base={"REMOTE_ADDR": "8.8.8.8"})

        assert get(KEY | {"Host": "auth.example.com", "X-Forwarded-For": "9.9.9.9"}).status_code == 200
        assert get({"apikey": SERVICE_ROLE_KEY}).status_code == 200
        assert_error(get({"Authorization": "Bearer nonsense"}), 401, "bad_jwt")
        assert_error(get(carol.open_session().authorization), 403, "insufficient_permissions")

    def test_script_of_another_origin_cannot_read_the_inbox(self, client, database):
        response = client.get("/dev/inbox", headers={"Origin": "https://evil.example"})
        assert_error(response, 403, "origin_not_allowed", details=A_SENTENCE)
        assert "Access-Control-Allow-Origin" not in response.headers


@cases("limits", ["true", "false"])
def test_service_elsewhere_does_not_start_with_the_inbox(make_app, limits):
    settings = {"AUTH_BASE_URL": "https://auth.example.com", "AUTH_RATE_LIMITS_ENABLED": limits}
    problem = "Must be false unless AUTH_BASE_URL is this machine, because it shows every link."
    with pytest.raises(SettingsError, match=rf"^AUTH_DEV_INBOX: {re.escape(problem)}$"):
        make_app(AUTH_DEV_INBOX="true", **settings)
