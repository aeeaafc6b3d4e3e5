"""/console/webhooks: the state of webhooks, their deliveries, and what administrators do with them."""

import html
import json
import re
from functools import partial

import pytest

from auth.core.net.webhook_urls import EVENTS
from tests.support.cases import cases
from tests.support.hooks import verified
from tests.support.pages import words

ALL = [*EVENTS]
TICKED = {event.replace(".", "_"): "yes" for event in ALL}
_SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")


@pytest.fixture
def submit(act_at):
    """Submit a form with a factor's code, and return the next page."""
    return partial(act_at, "/console/webhooks")


def heading_of(operator, id) -> str:
    """Return the heading of a webhook's page."""
    return re.findall("<h1>(.*?)</h1>", operator.visit(f"/console/webhooks/{id}").text)[0]


def test_states_are_shown_and_paths_of_urls_are_not(operator, hooks, target, database):
    assert "No webhooks yet" in words(operator.visit("/console/webhooks"))
    webhook = hooks.register(f"{target.url}/hooks/s3cret?key=s3cret", description="Billing")
    gone_webhook = hooks.register(f"{target.url}/gone")
    hooks.emit()
    target.status = 500
    hooks.deliver()
    disable = "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'gone' WHERE id = %(id)s"
    database.run(disable, id=gone_webhook["id"])
    text = words(operator.visit("/console/webhooks"))
    parts_of_page = (
        "Billing",
        "failing for less than a minute",
        "disabled responded 410 Gone",
        "Waiting events",
    )
    assert [part for part in (target.url, *parts_of_page) if part not in text] == []
    # A webhook is named by its description, and without one by where it is.
    assert [heading_of(operator, id) for id in (webhook["id"], gone_webhook["id"])] == ["Billing", target.url]
    for path in ("/console/webhooks", f"/console/webhooks/{webhook['id']}"):
        assert "s3cret" not in operator.visit(path).text
    assert operator.visit("/console/webhooks/nonsense").status == 404


class TestDeliveries:
    def test_failed_deliveries_are_a_filter(self, operator, hooks, target, database):
        webhook = hooks.register(target)
        for event in ("auth.login", "user.created"):
            hooks.emit(event)
        database.run("UPDATE outbox SET outcome = 'failed', finished_at = now() WHERE kind = 'auth.login'")
        text = operator.visit(f"/console/webhooks/{webhook['id']}?state=failed").text
        assert (">Sign-in</a>" in text, ">User created</a>" in text) == (True, False)

    def test_delivery_has_a_page_with_its_body_and_no_secret(self, operator, hooks, target):
        target.status, target.body = 500, b"<b>out of order</b> " + b"x" * 200
        webhook = hooks.register(f"{target.url}/hooks/s3cret?key=s3cret")
        hooks.emit("auth.login")
        operator.visit(f"/console/webhooks/{webhook['id']}")
        operator.visit(operator.link("Sign-in"))
        assert "No attempt yet." in words(operator.page)
        hooks.deliver()
        page = operator.visit(operator.page.url)
        (delivery,), (request,) = hooks.deliveries(webhook), target.requests
        assert json.loads(html.unescape(re.findall("(?s)<pre.*?>(.*?)</pre>", page.text)[0])) == json.loads(
            request.body
        )
        assert f"webhook-id: {delivery['event_id']}" in page.text
        assert f"500 Internal Server Error &lt;b&gt;out of order&lt;/b&gt; {'x' * 200}" in page.text
        for secret in ("s3cret", webhook["secret"], request.headers["webhook-signature"]):
            assert secret not in page.text
        assert f"deliveries/{delivery['id']}/redeliver" in page.text

    def test_delivery_of_another_or_a_disabled_webhook_is_not_sent_again(
        self, operator, hooks, target, database
    ):
        webhook, other = hooks.register(target), hooks.register(target, events=["user.deleted"])
        hooks.emit()
        (delivery,) = hooks.deliveries(webhook)
        path = f"deliveries/{delivery['id']}"
        for other_path in (f"{other['id']}/{path}", f"{other['id']}/{path}/redeliver", f"x/{path}"):
            assert operator.visit(f"/console/webhooks/{other_path}").status == 404
        operator.visit(f"/console/webhooks/{webhook['id']}/{path}/redeliver")
        hooks.change(webhook, disabled=True)
        assert "The webhook is disabled" in words(operator.press("/redeliver"))
        assert database.count("outbox") == 1


class TestActs:
    def test_secret_of_a_webhook_is_shown_once_and_signs(self, submit, armed, hooks, target, carol, database):
        page = submit("new", url=f"{target.url}/hooks", description=" Billing ", user_updated="yes")
        (secret,) = set(_SECRET.findall(page.text))
        (webhook,) = hooks.ask("get").json["data"]
        assert (webhook["events"], webhook["description"]) == (["user.updated"], "Billing")
        assert page.headers["Cache-Control"] == "no-store"
        assert secret not in armed.visit(f"/console/webhooks/{webhook['id']}").text
        hooks.emit()
        hooks.deliver()
        assert verified(target.requests[0], secret)["event"] == "user.updated"
        row = database.one("SELECT actor, actor_id, details FROM audit_log WHERE action = 'webhook_created'")
        assert (row.actor, row.actor_id, row.details["url"]) == ("user", carol.id, target.url)

    @cases(
        ("fields", "problem"),
        [
            ({"url": "ftp://192.0.1.1/", **TICKED}, "must be an http or https URL"),
            ({"url": "https://192.0.1.1/"}, "Choose at least one event."),
            ({"url": "", **TICKED}, "URL is required."),
        ],
    )
    def test_wrong_webhook_is_refused_and_nothing_is_lost(self, submit, database, fields, problem):
        page = submit("new", description="Billing", **fields)
        assert (page.status, problem in words(page)) == (400, True)
        assert 'value="Billing"' in page.text
        assert page.text.count(" checked") == len(fields.keys() & TICKED.keys())
        assert database.count("webhooks") == 0

    def test_change_keeps_a_url_that_is_left_empty_and_an_old_secret_that_signs(self, submit, hooks, target):
        webhook = hooks.register(f"{target.url}/hooks?key=s3cret", description="Billing")
        page = submit(f"{webhook['id']}/change", url="", description="", auth_login="yes")
        assert "Webhook changed." in words(page)
        new_state = hooks.show(webhook)
        assert (new_state["url"], new_state["events"], new_state["description"]) == (
            webhook["url"],
            ["auth.login"],
            None,
        )
        (secret,) = set(_SECRET.findall(submit(f"{webhook['id']}/new-secret").text))
        hooks.emit("auth.login")
        hooks.deliver()
        for each in (secret, webhook["secret"]):
            assert verified(target.requests[0], each)
