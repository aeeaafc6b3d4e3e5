"""The settings of mail and SMS: valid values, and errors at the start that quote no secret."""

import base64
import contextlib
import dataclasses
import ipaddress
import re
import socket

import pytest

from auth.core.sender import TryLater
from auth.core.settings import SettingsError
from auth.core.settings.values import urls
from auth.delivery.rendering import load_templates
from auth.delivery.senders import channels
from auth.delivery.senders.channels import ConsoleSender
from auth.delivery.senders.sms import TwilioSender
from auth.delivery.senders.smtp import SmtpSender
from auth.extensions.hooks.message_hooks import HookSender
from tests.support.cases import cases
from tests.support.outbox import message
from tests.support.smtp_server import MailServer, sender

SECRET = "whsec_" + base64.b64encode(bytes(24)).decode()
TWILIO = {
    "AUTH_SMS_PROVIDER": "twilio",
    "AUTH_TWILIO_ACCOUNT_SID": "AC1",
    "AUTH_TWILIO_AUTH_TOKEN": "t",
    "AUTH_TWILIO_FROM": "+15555550100",
}
PUBLIC = {"AUTH_BASE_URL": "https://auth.example.com"}
MAIL = {"AUTH_SMTP_URL": "smtp://mail.example.com"}
HOOKS = {
    "AUTH_HOOK_SEND_EMAIL": "https://hooks.example.com/mail",
    "AUTH_HOOK_SEND_EMAIL_SECRETS": SECRET,
    "AUTH_HOOK_SEND_SMS": "https://hooks.example.com/sms",
    "AUTH_HOOK_SEND_SMS_SECRETS": SECRET,
}
CONSOLE = {"AUTH_SMTP_URL": "console", "AUTH_SMS_PROVIDER": "console"}


def assert_refused_without_secrets(load, name, value):
    with pytest.raises(SettingsError) as error:
        load(**{name: value})
    (line,) = str(error.value).splitlines()
    assert re.match(f"{name}: (Must|Has|Ends) ", line)
    assert "hunter2" not in line


class TestSmtpUrl:
    @cases(
        ("url", "expected"),
        [
            ("smtp://a.example", ("a.example", 587, "", "", False, "required")),
            ("smtp://localhost", ("localhost", 587, "", "", False, "offered")),
            ("smtp://localhost:25/?starttls=never", ("localhost", 25, "", "", False, "never")),
            ("smtps://u%40b.c:p%2F%40@a.example", ("a.example", 465, "u@b.c", "p/@", True, "required")),
            ("smtp://u:p@x@a.example", ("a.example", 587, "u", "p@x", False, "required")),
            ("smtp://[::1]:2525", ("::1", 2525, "", "", False, "offered")),
        ],
    )
    def test_valid_smtp_url_is_accepted(self, url, expected):
        assert dataclasses.astuple(urls.smtp_server(url)) == expected

    @cases(
        "url",
        [
            *("mail.example.com", "mail.example.com:587", "http://mail.example.com", "smtp://"),
            *(f"smtp://u:hunter2@mail.example.com:{port}" for port in ("port", "99999", "0")),
            *("smtp://u:hunter2/x@mail.example.com", "smtp://u:hunter2#x@mail.example.com"),
            "smtp://u:hunter2@mail.example.com/path",
            *(f"smtp://u:hunter2@mail.example.com?{query}" for query in ("starttls=maybe", "tls=1")),
            "smtps://u:hunter2@mail.example.com?starttls=required",
            *("smtp://hunter2@mail.example.com", "smtp://:hunter2@mail.example.com"),
            *("smtp://u:hunter2%0A@mail.example.com", "smtp://u:hunter2ü@mail.example.com"),
            *("console ", "Console"),
        ],
    )
    def test_invalid_smtp_url_is_refused_without_printing_the_password(self, load, url):
        assert_refused_without_secrets(load, "AUTH_SMTP_URL", url)

    def test_repr_of_a_server_has_no_password(self):
        assert "hunter2" not in repr(urls.smtp_server("smtp://u:hunter2@mail.example.com"))


class TestMailFrom:
    @cases(
        ("text", "name"),
        [
            *((f"{name} <a@b.c>", name) for name in ("Acme, Inc.", "Acme: Login", "Acme (EU) [x]", "A.B")),
            ('"Acme: Login" <a@b.c>', "Acme: Login"),
            ("Acme, Inc.  <a@b.c>", "Acme, Inc."),
            ("Müller, Söhne<a@b.c>", "Müller, Söhne"),
        ],
    )
    def test_text_before_the_address_is_the_name(self, load, text, name):
        sender = urls.mail_address(load(AUTH_MAIL_FROM=text).mail_from)
        assert (sender.display_name, sender.addr_spec) == (name, "a@b.c")

    @cases(
        ("text", "name"),
        [("a@example.com", "Acme, Inc."), ("<a@example.com>", "Acme, Inc."), ("Billing <a@b.c>", "Billing")],
    )
    def test_sender_has_the_name_of_the_brand_unless_it_has_its_own(self, load, text, name):
        settings = load(AUTH_MAIL_FROM=text, AUTH_BRAND_NAME="Acme, Inc.", **MAIL)
        assert channels.mail_server(settings).mail_from.display_name == name

    @cases(
        "text",
        [
            *("", "Example", "a@b@c.example", "Example <>", "a@x.example, b@x.example", "jörg@x.example"),
            *("A <a@x.example>\r\nBcc: b@x.example", "x" * 101 + "<a@b.c>"),
        ],
    )
    def test_invalid_sender_is_refused(self, load, text):
        with pytest.raises(SettingsError, match="AUTH_MAIL_FROM: "):
            load(AUTH_MAIL_FROM=text)


class TestSms:
    def test_missing_settings_of_twilio_are_reported_together(self, load):
        with pytest.raises(SettingsError) as error:
            load(AUTH_SMS_PROVIDER="twilio")
        problem = "Must be set when AUTH_SMS_PROVIDER is twilio."
        assert str(error.value).splitlines() == [f"{name}: {problem}" for name in list(TWILIO)[1:]]

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("AUTH_SMS_PROVIDER", ["pigeon", "webhook"]),
            ("AUTH_SMS_COUNTRIES", ["49", "+1,DE", "+0"]),
            ("AUTH_TWILIO_ACCOUNT_SID", ["AC1/../x"]),
            ("AUTH_TWILIO_API_URL", ["api.twilio.com", "https://u:p@api.twilio.com"]),
            ("AUTH_HOOK_SEND_SMS", ["ftp://example.com", "https://example.com/#x"]),
            ("AUTH_HOOK_SEND_SMS_SECRETS", ["hunter2", "whsec_aHVudGVyMg=="]),
        ],
    )
    def test_invalid_sms_settings_are_refused(self, load, name, values):
        for value in values:
            assert_refused_without_secrets(load, name, value)

    def test_countries_must_be_prefixes(self, load):
        assert load(AUTH_SMS_COUNTRIES="+1,+49").sms_countries == ("+1", "+49")


@pytest.mark.parametrize(
    ("variables", "expected", "missing"),
    [
        ({}, {"email": ConsoleSender, "sms": ConsoleSender}, []),
        (PUBLIC, {}, ["AUTH_SMTP_URL", "AUTH_SMS_PROVIDER"]),
        (PUBLIC | MAIL | TWILIO, {"email": SmtpSender, "sms": TwilioSender}, []),
        (PUBLIC | CONSOLE, {"email": ConsoleSender, "sms": ConsoleSender}, []),
        (PUBLIC | HOOKS | CONSOLE, {"email": HookSender, "sms": HookSender}, []),
    ],
    ids=["localhost", "elsewhere", "twilio", "console", "hooks"],
)
def test_settings_decide_the_senders_and_a_warning_names_missing_ones(load, variables, expected, missing):
    loaded = load(**variables)
    senders = channels.senders(loaded)
    assert {channel: type(sender) for channel, sender in senders.items()} == expected
    assert [notice.split()[0] for notice in channels.notices(loaded)] == missing


class TestTemplates:
    def error_of(self, load, path):
        with pytest.raises(SettingsError) as error:
            load_templates(load(AUTH_MAIL_TEMPLATES=str(path)))
        return str(error.value)

    def test_missing_template_folder_is_refused(self, load, tmp_path):
        (tmp_path / "file").write_text("")
        for name in ("missing", "file"):
            assert self.error_of(load, tmp_path / name) == "AUTH_MAIL_TEMPLATES: Must be a directory."

    def test_worker_starts_without_the_folder(self, make_app, tmp_path):
        client = make_app(AUTH_MAIL_TEMPLATES=str(tmp_path / "removed")).test_client()
        assert client.get("/health").status_code == 200

    def test_faulty_or_unreadable_template_is_refused_with_its_file_and_error(self, load, tmp_path):
        (tmp_path / "en").mkdir()
        (tmp_path / "en" / "signup.txt").write_text("{{ lnik }}")
        assert "Fix it: en/signup: UndefinedError: 'lnik' is undefined." in self.error_of(load, tmp_path)
        (tmp_path / "de.toml").write_text("[email.signup")
        assert "de.toml: Expected" in self.error_of(load, tmp_path)
        (tmp_path / "de.toml").unlink()
        (tmp_path / "en" / "signup.txt").unlink()
        (tmp_path / "en" / "signup.txt").symlink_to("/proc/self/mem")  # which root cannot read either
        assert "Input/output error" in self.error_of(load, tmp_path)


def test_nothing_is_sent_unencrypted_to_another_machine_unless_the_url_says_so():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
        address = ipaddress.ip_address(probe.getsockname()[0])
    if address.is_loopback or address.is_unspecified:
        pytest.skip("this machine has no address but loopback")
    with MailServer(host=str(address)) as server:
        for options, reason in (
            ("", "if the network to it is yours alone, add ?starttls=never to AUTH_SMTP_URL"),
            ("?starttls=offered", "to send the password without it"),
        ):
            smtp = sender(server.url(host=str(address), credentials="u:hunter2@", options=options))
            with pytest.raises(TryLater) as error:
                smtp.send("alice@example.com", message())
            assert reason in str(error.value)
            assert error.value.is_down
        assert server.mails == []
        smtp = sender(server.url(host=str(address), options="?starttls=never"))
        smtp.send("alice@example.com", message())
        smtp.close()
        assert len(server.mails) == 1
