"""Our pages with the widgets of Turnstile and hCaptcha, in Chromium, against a provider of this machine."""

import sys

import pytest

from tests.support.browser import fill, opened
from tests.support.captcha_widgets import SECRET, SITE_KEY, Provider
from tests.support.processes import GUNICORN
from tests.support.smtp_server import Certificate
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]
DAVE = "dave@example.com"
REFUSED = "We couldn’t check that you’re human. Try again."


@pytest.fixture(scope="module", params=["turnstile", "hcaptcha"])
def widgets(request, tmp_path_factory):
    with Provider(request.param, Certificate(tmp_path_factory.mktemp("tls"))) as provider:
        yield provider


@pytest.fixture(scope="module")
def tab(tmp_path_factory, widgets):
    """A browser that finds the provider on this machine."""
    with opened(tmp_path_factory.mktemp("chromium"), *widgets.flags) as tab:
        yield tab


@pytest.fixture(scope="module")
def settings(mailing, widgets):
    return mailing | {
        "AUTH_CAPTCHA": widgets.kind,
        "AUTH_CAPTCHA_SECRET": SECRET,
        "AUTH_CAPTCHA_SITE_KEY": SITE_KEY,
        "SITEVERIFY_URL": widgets.siteverify,
    }


@pytest.fixture(scope="module")
def gunicorn():
    return [sys.executable, *GUNICORN, "--config", "tests/support/captcha.conf.py"]


@pytest.fixture
def provider(widgets) -> Provider:
    widgets.forget()
    return widgets


def sign_up(page, origin, provider, *, waits=True):
    page.open(f"{origin}/sign-up")
    send(page, provider, waits=waits)


def send(page, provider, *, waits=True):
    field = f"document.querySelector('[name={provider.fields[0]}]')"
    page.wait(lambda: page.run(f"Boolean({field}{'?.value' if waits else ''})"))
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Create account")


def test_token_of_the_widget_signs_up_and_is_verified_once(page, origin, provider, post):
    sign_up(page, origin, provider)
    page.wait_for("Check your inbox")
    assert post.read(DAVE, "Confirm")
    assert provider.forms == [{"secret": SECRET, "response": provider.tokens[0]}]


def test_refused_token_signs_nobody_up_and_a_new_one_signs_up(page, origin, provider, database):
    provider.token = "wrong"
    sign_up(page, origin, provider)
    page.wait_for(REFUSED)
    assert (database.count("users"), database.count("outbox"), len(provider.forms)) == (0, 0, 1)
    # The only complaint is about the refused form.
    assert not [each for each in page.complaints() if "status of" not in each]
    provider.forget()
    sign_up(page, origin, provider)
    page.wait_for("Check your inbox")
    assert database.count("users") == 1


def test_form_sent_before_the_widget_is_done_is_refused_without_asking_the_provider(
    page, origin, provider, database
):
    provider.delay = 600_000
    sign_up(page, origin, provider, waits=False)
    page.wait_for(REFUSED)
    assert (provider.forms, database.count("users")) == ([], 0)


def test_page_allows_the_hosts_of_its_widget_and_no_others(page, origin, site, provider):
    policies = {path: site.get(path).headers["Content-Security-Policy"] for path in ("/sign-up", "/nowhere")}
    allowed = {each.partition(" ")[0]: each.split()[1:] for each in policies["/sign-up"].split("; ")}
    named = {
        name: hosts
        for name, sources in allowed.items()
        if (hosts := [host for host in sources if "https://" in host])
    }
    hosts, names = ["https://challenges.cloudflare.com"], {"script-src", "frame-src"}
    if provider.kind == "hcaptcha":
        hosts, names = (
            ["https://hcaptcha.com", "https://*.hcaptcha.com"],
            names | {"style-src", "connect-src"},
        )
    assert named == dict.fromkeys(names, hosts)
    assert "https://" not in policies["/nowhere"]
