"""The operator's logo, and the title of a provider, in mails."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from auth.delivery.messages import Templates
from auth.settings.brand import logo_in_mails

BASE = "https://auth.example.com/auth"


def mail(kind="password_changed", variables=None, **brand):
    templates = Templates(BASE, "https://app.example.com", brand_name="Acme & Sons", **brand)
    named = {"id": "5", "channel": "email", "kind": kind, "recipient": "alice@example.com"}
    times = {"created_at": datetime.now(UTC), "expires_at": None}
    return templates.render(SimpleNamespace(variables=variables or {}, **named, **times), {})


@pytest.mark.parametrize(
    ("logo", "url"),
    [
        ("/etc/latchkey/logo.png", f"{BASE}/brand/logo"),
        ("https://cdn.example.com/logo.png?v=2", "https://cdn.example.com/logo.png?v=2"),
        ("/etc/latchkey/logo.svg", None),
        ("https://cdn.example.com/logo.SVG?v=2", None),
        (None, None),
    ],
)
def test_logo_is_a_hosted_image_that_mail_programs_can_show(logo, url):
    assert logo_in_mails(logo, BASE) == url


def test_texts_name_the_brand_and_the_footer_the_site():
    sent = mail()
    assert "Your account at Acme & Sons".lower() in sent.text.lower()
    assert sent.text.endswith("-- \napp.example.com\n")


def test_logo_stands_for_the_name():
    html = mail(brand_logo="/etc/latchkey/logo.png").html
    assert f'<img src="{BASE}/brand/logo" alt="Acme &amp; Sons"' in html
    assert ">Acme &amp; Sons</p>" not in html


def test_name_stands_where_there_is_no_logo_to_show():
    for html in (mail().html, mail(brand_logo="/etc/latchkey/logo.svg").html):
        assert ">Acme &amp; Sons</p>" in html
        assert "<img" not in html


def test_provider_has_its_title():
    sent = mail("identity_linked", {"provider": "acme"}, provider_titles={"acme": "Acme ID"})
    assert "Acme ID" in sent.text
