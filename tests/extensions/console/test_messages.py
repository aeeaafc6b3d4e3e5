"""/console/messages: the outcomes of mails and SMS, and sending them again."""

import html
import re

import pytest

from auth.delivery.deliverer import Deliverer
from tests.support.answers import assert_ok
from tests.support.cases import cases
from tests.support.links import ON_ITS_WAY, assert_signs_in, type_in
from tests.support.pages import Visitor
from tests.support.smtp_server import MailServer, sender
from tests.support.user_agent import FIREFOX
from tests.support.users import PASSWORD

GERMAN = {"Accept-Language": "de"}


@pytest.fixture
def server():
    with MailServer() as server:
        yield server


@pytest.fixture
def deliver(parts, server):
    """Send the due mails to a real server."""

    def deliver(reply=None):
        server.replies = {"RCPT": reply} if reply else {}
        smtp = sender(server.url())
        Deliverer(parts.settings, parts.db, parts.sealer, {"email": smtp}).deliver_due()
        smtp.close()

    return deliver


def ask(client, person, path="/recover", **options):
    """Request a message, and return its id."""
    response = client.post(path, json={"email": person.email, **options}, headers=GERMAN)
    assert_ok(response, ON_ITS_WAY)
    return response.json["message_id"]


def resend(operator, id):
    """Confirm that a message is to be sent again, and return the page that follows."""
    operator.visit(f"/console/messages/{id}/resend")
    return operator.press("/resend") if operator.page.status == 200 else operator.page


def with_samples(text):
    """Return the text of a message, with samples for the varying parts."""
    for pattern, sample in (
        (r"token=[\w-]{43}", "token=TOKEN"),
        (r"&(amp;)?redirect_to=[^\s\"]+", ""),
        (r"\w+ \d{1,2}, \d{4},? (at )?\d{2}:\d{2} UTC", "TIME"),
        (r"\b\d{6}\b", "CODE"),
        (r'\d{3}(<span style="margin-left: 12px">)\d{3}', r"\1"),
    ):
        text = re.sub(pattern, sample, text)
    return " ".join(text.split())


def rows(page):
    return page.text.partition("<tbody>")[2].partition("</tbody>")[0]


class TestList:
    def test_failed_mail_shows_why_and_no_link_or_code(
        self, operator, client, alice, deliver, outbox, database
    ):
        assert "emails and SMS will appear here" in operator.visit("/console/messages").text
        ask(client, alice)
        message = outbox.last(alice.email)
        deliver("550 5.1.1 No such user here")
        page = operator.visit("/console/messages?state=failed")
        assert "email (password recovery)" in rows(page)
        assert f'href="../console/users/{alice.id}">alice@example.com</a>' in rows(page)
        assert "550 5.1.1 No such user here" in rows(page)
        assert (message.token in page.text, message.code in rows(page)) == (False, False)
        # Expired messages have failed too.
        for _ in range(2):
            assert "alice@example.com" in rows(page)
            assert "Failed (1)" in page.text
            database.run("UPDATE outbox SET outcome = 'expired'")
            page = operator.visit("/console/messages?state=failed")

    def test_states_and_recipients_are_filters(self, operator, client, alice, bob, deliver):
        ask(client, alice)
        deliver()
        ask(client, bob)
        for query, names in {
            "state=sent": ["alice"],
            "state=waiting": ["bob"],
            "to=ALICE@example.com": ["alice"],
            "to=alice@example.com&state=waiting": [],
            "to=nonsense": [],
            "": ["bob", "alice"],
        }.items():
            recipients = re.findall(
                r">(\w+)@example.com<", rows(operator.visit(f"/console/messages?{query}"))
            )
            assert (query, recipients) == (query, names)
        assert "accepted by" in operator.page.text

    def test_pages_of_keys_show_each_message_once(self, operator, database):
        database.run(
            "INSERT INTO outbox (id, channel, kind, recipient, created_at) SELECT gen_random_uuid(), 'email', 'magiclink', n || '@example.com', '2026-01-01'"
            " FROM generate_series(1000, 1119) AS n"
        )
        operator.visit("/console/messages")
        numbers = [name for page in operator.pages() for name in re.findall(r">(\d+)@", rows(page))]
        assert sorted(numbers) == [str(number) for number in range(1000, 1120)]


class TestPreview:
    @cases(
        ("message", "language", "text", "parameter"),
        [
            ("email.signup", "de", "Bestätigen Sie Ihre E\u2011Mail-Adresse", "&amp;type=signup"),
            ("email.invite", "fr", "Ada Lovelace vous invite", "&amp;type=invite"),
            ("sms.passkey_added", "es", "llave de acceso", "&amp;type=undo"),
        ],
    )
    def test_preview_has_the_texts_and_samples_in_place_of_links_and_codes(
        self, make_app, carol, message, language, text, parameter
    ):
        operator = Visitor(make_app(AUTH_BRAND_NAME="Acme")).with_session_of(carol)
        assert 'href="messages/preview">Preview</a>' in operator.visit("/console/messages").text
        page = operator.visit(f"/console/messages/preview?message={message}&language={language}")
        assert (text in page.text, parameter in page.text) == (True, True)

    def test_preview_is_what_the_api_sends(self, operator, client, alice, deliver, server):
        """A real server receives the mail."""
        client.post("/magiclink", json={"email": alice.email}, headers={"User-Agent": FIREFOX})
        deliver()
        query = "message=email.magiclink&language=en"
        page = operator.visit(f"/console/messages/preview?{query}").text
        (text,) = re.findall("<pre[^>]*>(.*?)</pre>", page, re.S)
        assert with_samples(html.unescape(text)) == with_samples(server.text())
        frame = operator.visit(f"/console/messages/preview/html?{query}").text
        assert with_samples(frame) == with_samples(server.mails[-1].get_body(("html",)).get_content())

    def test_html_is_in_a_frame_that_runs_and_loads_nothing(self, operator, app):
        page = operator.visit("/console/messages/preview")
        assert page.headers["Content-Security-Policy"].endswith("base-uri 'none'; frame-src 'self'")
        frame = operator.visit("/console/messages/preview/html?message=email.recovery&language=de")
        policy = frame.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'")
        assert frame.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Neues Passwort wählen</a>" in frame.text


class TestSendingAgain:
    def test_failed_mail_is_sent_again(
        self, operator, client, alice, carol, deliver, outbox, database, server
    ):
        id = ask(client, alice)
        first_message = outbox.last(alice.email)
        deliver("550 5.1.1 No such user here")
        page = operator.visit(f"/console/messages/{id}/resend")
        assert "Sends 1 message again: the email (password recovery) to alice@example.com." in page.text
        assert "will be sent within seconds" in operator.press("/resend").text
        second_message = outbox.last(alice.email)
        assert (second_message.kind, second_message.variables["languages"]) == ("recovery", "de")
        assert second_message.token not in (None, first_message.token)
        deliver()
        assert len(server.mails) == 1
        assert_signs_in(client, "recovery", second_message.token)
        row = database.one("SELECT * FROM audit_log WHERE action = 'message_resent'")
        assert (row.actor, row.actor_id, row.user_id) == ("user", carol.id, alice.id)
        assert row.details == {"kind": "recovery", "administrator": carol.email}

    def test_code_of_a_page_still_works_in_its_browser_alone(
        self, app, operator, client, alice, deliver, outbox, database
    ):
        visitor = Visitor(app)
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=alice.email)
        deliver()
        resend(operator, database.value("SELECT id FROM outbox WHERE kind = 'magiclink'"))
        code = outbox.last(alice.email).code
        lifetimes = "SELECT extract(epoch FROM code_expires_at - created_at)::int FROM one_time_tokens"
        assert database.all(lifetimes) == [(600,)] * 2
        assert type_in(client, "magiclink", alice.email, code).status_code == 403
        assert visitor.press("sign-in/verify", code=code).url.endswith("/account")

    def test_waiting_mail_is_sent_once_at_once(self, operator, client, alice, deliver, database, server):
        id = ask(client, alice)
        deliver("451 Later")
        assert server.mails == []
        resend(operator, id)
        deliver()
        assert (len(server.mails), database.count("outbox")) == (1, 1)

    def test_notice_keeps_its_time_with_a_new_link(self, operator, alice, deliver, outbox, database):
        alice.sign_in().put("/user", json={"password": "Fresh-Horse-2"})
        first_message = outbox.last(alice.email, "password_changed")
        deliver("550 No")
        id = database.value("SELECT id FROM outbox WHERE kind = 'password_changed'")
        database.run("UPDATE outbox SET created_at = '2026-01-02 03:04:05+00' WHERE id = %(id)s", id=id)
        resend(operator, id)
        second_message = outbox.sent(alice.email, first_message.kind)[-1]
        assert second_message.variables["requested_at"].startswith("2026-01-02T03:04:05")
        has_token = "token_hash = sha256(convert_to(%(token)s, 'UTF8'))"
        assert database.count("one_time_tokens", has_token, token=second_message.token) == 1
        assert database.count("one_time_tokens", has_token, token=first_message.token) == 0

    @cases(
        ("name", "inviter"),
        [
            ("Carol Jones", "Carol Jones"),
            *((name, "carol@example.com") for name in (None, "visit evil.example", "a@b c")),
        ],
    )
    def test_invitation_sent_again_names_the_administrator_who_sent_the_first(
        self, operator, deliver, outbox, database, name, inviter
    ):
        rename = "UPDATE users SET user_metadata = jsonb_build_object('name', %(name)s) WHERE role = 'admin'"
        database.run(rename, name=name)
        operator.visit("/console/users/invite")
        operator.press("invite", email="dave@example.com")
        deliver("550 No")
        database.run(rename, name="Mallory")
        resend(operator, database.value("SELECT id FROM outbox"))
        messages = outbox.sent("dave@example.com")
        assert [message.variables["inviter"] for message in messages] == [inviter] * 2
        database.run("DELETE FROM outbox")


class TestRefusals:
    @pytest.fixture
    def refused(self, operator, database):
        """Try to send a message again, which must change nothing, and return the page."""

        def refused(id, status=409):
            before = database.everything("outbox", "one_time_tokens", "users", "audit_log")
            page = resend(operator, id)
            assert page.status == status, page.text
            assert database.everything("outbox", "one_time_tokens", "users", "audit_log") == before
            return page.text

        return refused

    def test_message_to_an_administrator_and_code_of_a_user_are_not_sent_again(
        self, refused, client, alice, carol, deliver
    ):
        assert "Only the service role key can change" in refused(ask(client, carol), 403)
        id = alice.open_session().get("/reauthenticate").json["message_id"]
        deliver("550 No")
        assert "only the user can request this code" in refused(id)

    @pytest.mark.parametrize("is_waiting", [True, False])
    def test_lock_decides_whether_a_message_is_for_an_administrator(
        self, operator, client, alice, deliver, database, is_waiting
    ):
        id = ask(client, alice)
        if not is_waiting:
            deliver("550 No")
        operator.visit(f"/console/messages/{id}/resend")
        before = database.everything("outbox", "one_time_tokens", "audit_log")
        promotion = "UPDATE users SET role = 'admin' WHERE id = %s"
        with database.locked("users", alice.id, promotion) as lock:
            request = lock.start(lambda: operator.press("/resend"))
        assert request.result().status == 403
        assert database.everything("outbox", "one_time_tokens", "audit_log") == before

    def test_confirmation_that_its_user_cannot_use_is_not_sent_again(
        self, refused, client, database, deliver
    ):
        client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        deliver("550 No")
        id, user_id = database.one("SELECT id, user_id FROM outbox")
        for change, reason in (
            ("UPDATE users SET email_confirmed_at = now()", "needed: the address is confirmed"),
            ("DELETE FROM users", "its user no longer exists"),
        ):
            database.run(f"{change} WHERE id = %(id)s", id=user_id)
            assert reason in refused(id)

    def test_limit_of_the_address_holds(self, make_app, client, alice, carol, deliver, database):
        id = ask(client, alice)
        deliver("550 No")
        operator = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true")).signed_in_as(carol)
        assert resend(operator, id).status == 200
        assert resend(operator, id).status == 429
        assert database.count("outbox") == 2
