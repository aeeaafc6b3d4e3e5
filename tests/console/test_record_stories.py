"""Whole stories of administrators about webhooks and the audit log, in Chromium."""

import pytest

from tests.support.browser import Browser, fill
from tests.support.cast import PASSWORD
from tests.support.deliverers import deliver_due
from tests.support.factors import set_up
from tests.support.hooks import verified

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]


def test_failed_event_is_found_and_sent_again(console, here, hooks, target, parts):
    made = hooks.register(target)
    hooks.emit("user.created", "auth.login")
    target.status = 500
    hooks.deliver()
    target.status = 410
    hooks.end_pauses()
    hooks.deliver()
    target.status = 200
    hooks.change(made, disabled=False)
    console.click("Webhooks")
    console.wait_for("working")
    console.click(target.url)
    console.wait_for("410 Gone")
    console.click("Failed")
    console.wait(lambda: "?state=failed" in console.url and "410 Gone" in console.text)
    console.click("Send again")
    console.wait_for("Sends 1 event")
    console.click("Send again")
    console.wait_for("The event will be sent within seconds.")
    before = len(target.requests)
    deliver_due(parts)
    assert verified(target.requests[before], made["secret"])
    console.open(f"{here}/console/webhooks/{made['id']}")
    console.wait_for("200 OK")


def test_webhook_is_created_with_a_code_without_javascript(page, here, site, carol, hooks, target):
    codes = set_up(carol.open_session())[0]
    page.without_script()
    page.open(f"{here}/console/webhooks/new")
    fill(page, email=carol.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("One more step")
    fill(page, code=codes.code())
    page.click("Continue")
    page.wait_for("Its secret is shown once")
    fill(page, url=f"{target.url}/hooks", factor_code=codes.code(1))
    page.click("Add a webhook")
    page.wait_for("Copy it now")
    secret = page.run("document.querySelector('.card code').textContent")
    hooks.emit()
    hooks.deliver()
    assert verified(target.requests[0], secret)


def test_audit_log_shows_who_did_what(console: Browser, here, site, carol, alice, service_role):
    site.put(f"/admin/users/{alice.id}", json={"ban_duration": "24h"}, headers=service_role)
    console.open(f"{here}/console/users/{alice.id}/unban")
    console.click("Lift the ban")
    console.wait_for("Can sign in")
    console.click("Audit log")
    console.wait_for("Done by")
    fill(console, by=carol.email, user=alice.email)
    console.click("Filter")
    console.wait(lambda: "?by=" in console.url and "ban lifted" in console.text)
    assert "banned until" not in console.text
    console.click("request")
    console.wait(lambda: "request_id=" in console.url and "Only request" in console.text)
    assert "ban lifted" in console.text
    console.click("Clear")
    console.wait_for("banned until")
    console.click(alice.email)
    console.wait_for("What happened")
