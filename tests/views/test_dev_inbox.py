"""GET /dev/inbox: sent messages, visible only on this machine or with the service role key."""

import re

import pytest

from auth.delivery.deliverer import Deliverer
from auth.senders.sender import TryLater
from auth.settings import SettingsError
from tests.conftest import SERVICE_ROLE_KEY, secret
from tests.support.answers import A_TIMESTAMP, assert_error
from tests.support.cases import cases
from tests.support.deliverers import deliver_due
from tests.support.outbox import CODE, TOKEN, Outbox, Recorder

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
UNKNOWN = "00000000-0000-0000-0000-000000000000"
KEY = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}


@pytest.fixture
def app(make_app):
    return make_app(AUTH_DEV_INBOX="true")


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
            "created_at": A_TIMESTAMP,
            "outcome": "sent",
            "last_error": None,
            "response": "250 taken",
        }
        assert link in text
        assert CODE in text
        # It is stored encrypted.
        everything = str(database.everything())
        assert database.count("dev_inbox") == 1
        assert TOKEN not in everything
        assert CODE not in everything

    def test_newest_message_is_first_and_recipients_are_a_filter(self, client, outbox, deliver):
        id = outbox.sms()
        recipients = ["+4915112345678", "first+x@example.com", "second+x@example.com"]
        for recipient in recipients[1:]:
            outbox.write(recipient=recipient)
        deliver()
        *mails, sms = inbox(client)
        shown = [sms[name] for name in ("channel", "recipient", "subject", "link", "code")]
        assert shown == ["sms", recipients[0], "", None, CODE]
        assert [mail["recipient"] for mail in mails] == recipients[:0:-1]
        assert_error(client.get(f"/dev/inbox/{id}"), 404, "not_found")
        response = client.get("/dev/inbox", query_string={"recipient": recipients[1]})
        assert [mail["recipient"] for mail in response.json] == [recipients[1]]
        response = client.get("/dev/inbox?recipient=a&recipient=b")
        assert_error(response, 400, "validation_failed", details="recipient: must be given once")

    def test_failed_message_is_listed_with_its_error_until_it_is_sent(self, client, outbox, deliver, target):
        outbox.write()
        target.fails = TryLater("connection refused")
        deliver()
        (mail,) = inbox(client)
        assert (mail["outcome"], mail["last_error"], mail["code"]) == (None, "connection refused", CODE)
        target.fails = None
        outbox.let_time_pass(10)
        deliver()
        (mail,) = inbox(client)
        assert mail["outcome"] == "sent"

    def test_only_the_newest_500_messages_are_kept(self, client, outbox, deliver, database):
        outbox.write(recipient="oldest@example.com")
        deliver()
        database.run(
            "INSERT INTO dev_inbox (id, sealed, kept_at)"
            " SELECT gen_random_uuid(), '', now() + number * interval '1 second' FROM generate_series(1, 499) AS number"
        )
        for recipient in ("newest@example.com", "another@example.com"):
            outbox.write(recipient=recipient)
            deliver()
        assert database.count("dev_inbox") <= 501
        assert "oldest@example.com" not in [mail["recipient"] for mail in inbox(client)]

    def test_message_encrypted_with_another_secret_is_left_out(self, client, deliver, make_app):
        client.post("/signup", json={"email": "dave@example.com", "password": "Correct-Horse-1"})
        deliver()
        other = make_app(AUTH_DEV_INBOX="true", AUTH_SECRET_KEY=secret("x")).test_client()
        assert inbox(other) == []
        (mail,) = inbox(client)
        assert "access_token=" in client.get(mail["link"]).location

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
            "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        assert f'<iframe sandbox src="inbox/{id}"' in response.text
        assert "alice@example.com" in response.text
        assert CODE in response.text
        assert not re.search(r"<script|<style|style=| on\w+=", response.text)

    def test_page_without_messages_says_so_and_other_clients_get_json(self, client, database):
        assert "Nothing has been sent yet" in client.get("/dev/inbox", headers=BROWSER).text
        filtered = client.get("/dev/inbox?recipient=<b>", headers=BROWSER).text
        assert "Nothing has been sent to &lt;b&gt; yet" in filtered
        for accept in ("application/json", "*/*", "", "application/json, text/html;q=0.5"):
            assert client.get("/dev/inbox", headers={"Accept": accept}).mimetype == "application/json"
        for id in (UNKNOWN, "nonsense", "%00"):
            assert_error(client.get(f"/dev/inbox/{id}"), 404, "not_found")

    def test_html_of_a_message_is_served_with_a_sandbox_policy(
        self, client, outbox, deliver, target, make_app, tmp_path
    ):
        path = f"/dev/inbox/{outbox.write()}"
        deliver()
        response = client.get(path)
        assert (response.status_code, response.text) == (200, target.sent[0][1].html)
        policy = "sandbox; default-src 'none'; style-src 'unsafe-inline';{} form-action 'none'; frame-ancestors 'self'; base-uri 'none'"
        assert response.headers["Content-Security-Policy"] == policy.format("")
        # The logo may be loaded.
        (tmp_path / "logo.png").write_bytes(b"png")
        branded = make_app(AUTH_DEV_INBOX="true", AUTH_BRAND_LOGO=str(tmp_path / "logo.png")).test_client()
        assert " img-src 'self';" in branded.get(path).headers["Content-Security-Policy"]


each_path = cases("path", ["/dev/inbox", "/auth/v1/dev/inbox", f"/dev/inbox/{UNKNOWN}"])
ELSEWHERE = {"REMOTE_ADDR": "8.8.8.8"}
PUBLIC = {
    "AUTH_DEV_INBOX": "true",
    "AUTH_BASE_URL": "https://auth.example.com",
    "AUTH_RATE_LIMITS_ENABLED": "false",
}


class TestAccess:
    @each_path
    def test_disabled_inbox_is_404(self, default_app, database, path):
        assert_error(default_app.test_client().get(path, headers=KEY), 404, "not_found")

    @cases("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
    @cases("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "app.localhost"])
    def test_local_client_needs_no_key(self, client, database, peer, host):
        response = client.get("/dev/inbox", headers={"Host": host}, environ_base={"REMOTE_ADDR": peer})
        assert response.status_code == 200

    @each_path
    @cases(
        ("name", "values"),
        [
            ("REMOTE_ADDR", ["192.168.1.5", "10.0.0.1", "8.8.8.8", "2001:db8::1", "", "unix"]),
            (
                "Host",
                ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "192.168.1.5:8000", "8.8.8.8"],
            ),
            *((f"X-Forwarded-{name}", ["127.0.0.1"]) for name in ("For", "Host", "Proto", "Server")),
            *((name, ["127.0.0.1"]) for name in ("Forwarded", "X-Real-IP", "Via")),
        ],
    )
    def test_remote_or_proxied_request_needs_the_service_role_key(self, client, database, path, name, values):
        for value in values:
            place = "environ_base" if name == "REMOTE_ADDR" else "headers"
            assert_key_needed(client.get(path, **{place: {name: value}}))

    def test_service_role_key_is_accepted_from_anywhere(self, client, carol):
        def get(headers):
            return client.get("/dev/inbox", headers=headers, environ_base=ELSEWHERE)

        proxied = {"Host": "auth.example.com", "X-Forwarded-For": "9.9.9.9"}
        assert get(KEY | proxied).status_code == 200
        assert get({"apikey": SERVICE_ROLE_KEY}).status_code == 200
        assert_error(get({"Authorization": "Bearer nonsense"}), 401, "bad_jwt")
        assert_error(get(carol.open_session().authorization), 403, "insufficient_permissions")

    def test_public_or_proxied_service_requires_the_service_role_key(self, make_app, database):
        proxied = make_app(AUTH_DEV_INBOX="true", AUTH_TRUSTED_PROXIES="1").test_client()
        assert_key_needed(proxied.get("/dev/inbox", headers={"X-Forwarded-For": "127.0.0.1"}))
        # A proxy on the same machine need not announce itself; nginx does not by default.
        client = make_app(**PUBLIC).test_client()
        assert_key_needed(client.get("/dev/inbox"))
        assert client.get("/dev/inbox", headers=KEY).status_code == 200

    @cases("origin", ["https://evil.example", "null", "http://localhost:3000"])
    def test_script_of_another_origin_cannot_read_the_inbox(self, client, database, origin):
        for response in (
            client.get("/dev/inbox", headers={"Origin": origin}),
            client.get("/dev/inbox", headers={"Origin": origin, "Host": "evil.example"}),
            client.options("/dev/inbox", headers={"Origin": origin, "Access-Control-Request-Method": "GET"}),
        ):
            assert not [name for name in response.headers.keys() if name.startswith("Access-Control-")]  # noqa: SIM118
            assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        # Other routes allow all origins.
        other = client.get("/settings", headers={"Origin": origin})
        assert other.headers["Access-Control-Allow-Origin"] == "*"


def test_public_service_without_a_mail_server_keeps_messages_in_the_inbox_unless_it_is_no_test(
    make_app, database
):
    message = r"^AUTH_DEV_INBOX: Must be false unless AUTH_BASE_URL is this machine"
    with pytest.raises(SettingsError, match=message):
        make_app(**PUBLIC | {"AUTH_RATE_LIMITS_ENABLED": "true"})
    app = make_app(**PUBLIC)
    parts = app.extensions["latchkey"]
    outbox = Outbox(database, parts)
    outbox.write(), outbox.sms()
    deliver_due(parts)
    mails = inbox(app.test_client(), **KEY)
    how = ("sent", "kept in the development inbox")
    kept = sorted((mail["channel"], mail["outcome"], mail["response"]) for mail in mails)
    assert kept == [("email", *how), ("sms", *how)]
