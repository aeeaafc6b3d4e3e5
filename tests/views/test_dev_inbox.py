"""GET /dev/inbox: sent messages, visible only on this machine or with the service role key."""

import re
import urllib.parse

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
    def test_inbox_shows_a_mail_with_its_link_and_code(self, client, outbox, deliver):
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

    def test_inbox_shows_an_sms_with_its_code(self, client, outbox, deliver):
        outbox.sms()
        deliver()
        (sms,) = inbox(client)
        assert (sms["channel"], sms["recipient"], sms["subject"], sms["link"], sms["code"]) == (
            "sms",
            "+4915112345678",
            "",
            None,
            CODE,
        )

    def test_newest_message_is_first(self, client, outbox, deliver):
        for name in ("first", "second", "third"):
            outbox.write(recipient=f"{name}@example.com")
        deliver()
        assert [mail["recipient"] for mail in inbox(client)] == [
            "third@example.com",
            "second@example.com",
            "first@example.com",
        ]

    def test_messages_can_be_filtered_by_recipient(self, client, outbox, deliver):
        for name in ("alice", "bob"):
            outbox.write(recipient=f"{name}+x@example.com")
        deliver()
        response = client.get(f"/dev/inbox?recipient={urllib.parse.quote('bob+x@example.com')}")
        assert [mail["recipient"] for mail in response.json] == ["bob+x@example.com"]
        assert_error(
            client.get("/dev/inbox?recipient=a&recipient=b"),
            400,
            "validation_failed",
            details="recipient: must be given once",
        )

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

    def test_link_of_a_listed_mail_works(self, client, deliver):
        client.post("/signup", json={"email": "dave@example.com", "password": "Correct-Horse-1"})
        deliver()
        (mail,) = inbox(client)
        assert "access_token=" in client.get(mail["link"]).location

    def test_only_the_newest_500_messages_are_kept(self, client, outbox, deliver, database):
        outbox.write(recipient="oldest@example.com")
        deliver()
        database.run(
            "INSERT INTO dev_inbox (id, sealed, kept_at)"
            " SELECT gen_random_uuid(), '', now() + number * interval '1 second' FROM generate_series(1, 499) AS number"
        )
        outbox.write(recipient="newest@example.com")
        deliver()
        outbox.write(recipient="another@example.com")
        deliver()
        assert database.count("dev_inbox") <= 501
        assert "oldest@example.com" not in [mail["recipient"] for mail in inbox(client)]

    def test_messages_are_stored_encrypted(self, outbox, deliver, database):
        outbox.write()
        deliver()
        everything = str(database.everything())
        assert database.count("dev_inbox") == 1
        assert TOKEN not in everything
        assert CODE not in everything

    def test_message_encrypted_with_another_secret_is_left_out(self, client, outbox, deliver, make_app):
        outbox.write()
        deliver()
        other = make_app(AUTH_DEV_INBOX="true", AUTH_SECRET_KEY=secret("x")).test_client()
        assert inbox(other) == []
        assert len(inbox(client)) == 1

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
        assert response.status_code == 200
        assert response.mimetype == "text/html"
        assert response.headers["Content-Security-Policy"] == (
            "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        assert f'<iframe sandbox src="inbox/{id}"' in response.text
        assert "alice@example.com" in response.text
        assert CODE in response.text
        assert not re.search(r"<script|<style|style=| on\w+=", response.text)

    def test_page_without_messages_says_so(self, client, database):
        assert "Nothing has been sent yet" in client.get("/dev/inbox", headers=BROWSER).text
        assert (
            "Nothing has been sent to &lt;b&gt; yet"
            in client.get("/dev/inbox?recipient=<b>", headers=BROWSER).text
        )

    @pytest.mark.parametrize("accept", ["application/json", "*/*", "", "application/json, text/html;q=0.5"])
    def test_other_clients_get_json(self, client, database, accept):
        assert client.get("/dev/inbox", headers={"Accept": accept}).mimetype == "application/json"

    def test_html_of_a_message_is_served_with_a_sandbox_policy(self, client, outbox, deliver, target):
        id = outbox.write()
        deliver()
        response = client.get(f"/dev/inbox/{id}")
        assert response.status_code == 200
        assert response.text == target.sent[0][1].html
        assert response.headers["Content-Security-Policy"] == (
            "sandbox; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'self'; base-uri 'none'"
        )

    def test_html_of_a_message_may_load_the_logo(self, make_app, outbox, deliver, tmp_path):
        (tmp_path / "logo.png").write_bytes(b"png")
        id = outbox.write()
        deliver()
        client = make_app(AUTH_DEV_INBOX="true", AUTH_BRAND_LOGO=str(tmp_path / "logo.png")).test_client()
        policy = client.get(f"/dev/inbox/{id}").headers["Content-Security-Policy"]
        assert "sandbox; default-src 'none';" in policy
        assert " img-src 'self';" in policy

    @pytest.mark.parametrize("id", [UNKNOWN, "nonsense", "%00"])
    def test_unknown_message_is_404(self, client, database, id):
        assert_error(client.get(f"/dev/inbox/{id}"), 404, "not_found")

    def test_html_of_an_sms_is_404(self, client, outbox, deliver):
        id = outbox.sms()
        deliver()
        assert_error(client.get(f"/dev/inbox/{id}"), 404, "not_found")


each_path = pytest.mark.parametrize("path", ["/dev/inbox", "/auth/v1/dev/inbox", f"/dev/inbox/{UNKNOWN}"])


class TestAccess:
    @each_path
    def test_disabled_inbox_is_404(self, default_app, database, path):
        assert_error(default_app.test_client().get(path, headers=KEY), 404, "not_found")

    @cases("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
    @cases("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "app.localhost"])
    def test_local_client_needs_no_key(self, client, database, peer, host):
        assert (
            client.get("/dev/inbox", headers={"Host": host}, environ_base={"REMOTE_ADDR": peer}).status_code
            == 200
        )

    @each_path
    @cases("peer", ["192.168.1.5", "10.0.0.1", "8.8.8.8", "2001:db8::1", "", "unix"])
    def test_remote_client_needs_the_service_role_key(self, client, database, path, peer):
        assert_key_needed(client.get(path, environ_base={"REMOTE_ADDR": peer}))

    @each_path
    @cases(
        "host",
        [
            "evil.example",
            "auth.example.com",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "192.168.1.5:8000",
            "8.8.8.8",
        ],
    )
    def test_request_for_another_host_name_needs_the_service_role_key(self, client, database, path, host):
        assert_key_needed(client.get(path, headers={"Host": host}))

    @each_path
    @cases(
        "header",
        [
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
            "X-Forwarded-Server",
            "Forwarded",
            "X-Real-IP",
            "Via",
        ],
    )
    def test_request_with_proxy_headers_needs_the_service_role_key(self, client, database, path, header):
        assert_key_needed(client.get(path, headers={header: "127.0.0.1"}))

    def test_request_through_a_trusted_proxy_needs_the_service_role_key(self, make_app, database):
        client = make_app(AUTH_DEV_INBOX="true", AUTH_TRUSTED_PROXIES="1").test_client()
        assert_key_needed(client.get("/dev/inbox", headers={"X-Forwarded-For": "127.0.0.1"}))

    def test_service_role_key_is_accepted_from_anywhere(self, client, database):
        elsewhere = {"environ_base": {"REMOTE_ADDR": "8.8.8.8"}}
        assert (
            client.get(
                "/dev/inbox",
                headers={**KEY, "Host": "auth.example.com", "X-Forwarded-For": "9.9.9.9"},
                **elsewhere,
            ).status_code
            == 200
        )
        assert client.get("/dev/inbox", headers={"apikey": SERVICE_ROLE_KEY}, **elsewhere).status_code == 200
        assert_error(
            client.get("/dev/inbox", headers={"Authorization": "Bearer nonsense"}, **elsewhere),
            401,
            "bad_jwt",
        )

    def test_access_token_of_an_administrator_is_refused(self, client, carol):
        response = client.get(
            "/dev/inbox", headers=carol.open_session().authorization, environ_base={"REMOTE_ADDR": "8.8.8.8"}
        )
        assert_error(response, 403, "insufficient_permissions")

    def test_public_service_requires_the_service_role_key(self, make_app, database):
        # A proxy on the same machine need not announce itself; nginx does not by default.
        client = make_app(
            AUTH_DEV_INBOX="true", AUTH_BASE_URL="https://auth.example.com", AUTH_RATE_LIMITS_ENABLED="false"
        ).test_client()
        assert_key_needed(client.get("/dev/inbox"))
        assert client.get("/dev/inbox", headers=KEY).status_code == 200

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000"])
    def test_script_of_another_origin_cannot_read_the_inbox(self, client, database, origin):
        for response in (
            client.get("/dev/inbox", headers={"Origin": origin}),
            client.get("/dev/inbox", headers={"Origin": origin, "Host": "evil.example"}),
            client.options("/dev/inbox", headers={"Origin": origin, "Access-Control-Request-Method": "GET"}),
        ):
            assert not [name for name in response.headers.keys() if name.startswith("Access-Control-")]  # noqa: SIM118
            assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"

    def test_other_routes_still_allow_all_origins(self, client, database):
        assert (
            client.get("/settings", headers={"Origin": "https://app.example"}).headers[
                "Access-Control-Allow-Origin"
            ]
            == "*"
        )


class TestSetting:
    def test_inbox_is_refused_for_a_public_service(self, make_app):
        with pytest.raises(
            SettingsError, match=r"^AUTH_DEV_INBOX: Must be false unless AUTH_BASE_URL is this machine"
        ):
            make_app(
                AUTH_DEV_INBOX="true",
                AUTH_BASE_URL="https://auth.example.com",
                AUTH_RATE_LIMITS_ENABLED="true",
            )

    def test_test_environment_without_a_mail_server_keeps_messages_in_the_inbox(self, make_app, database):
        app = make_app(
            AUTH_DEV_INBOX="true", AUTH_BASE_URL="https://auth.example.com", AUTH_RATE_LIMITS_ENABLED="false"
        )
        parts = app.extensions["latchkey"]
        outbox = Outbox(database, parts)
        outbox.write(), outbox.sms()
        deliver_due(parts)
        found = inbox(app.test_client(), **KEY)
        assert {(mail["channel"], mail["outcome"], mail["response"]) for mail in found} == {
            ("email", "sent", "kept in the development inbox"),
            ("sms", "sent", "kept in the development inbox"),
        }
