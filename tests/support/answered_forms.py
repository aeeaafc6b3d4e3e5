"""The forms of all extensions, and how the service answers each: with a redirect, or as `ANSWERED_BY_A_PAGE` says."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from flask import Flask, request, request_finished
from werkzeug.wrappers import Response

from auth.web.application import FORM
from auth.web.declarations import route_of

# The only forms whose answer is a page, because reloading it sends the form again. A refused form shows its fields
# again, and a form for another website is answered by the page that goes there, which `LEAVING` begins.
ANSWERED_BY_A_PAGE = {
    "/account/api-keys": "shows a secret once",
    "/account/recovery-codes": "shows secrets once",
    "/account/two-step": "shows a secret once",
    "/account/two-step/verify": "shows recovery codes once",
    "/console/applications/<client_id>/new-secret": "shows a secret once",
    "/console/applications/new": "shows a secret once",
    "/console/keys/new": "shows a secret once",
    "/console/users/export": "downloads a file, and the page stays",
    "/console/webhooks/<webhook_id>/new-secret": "shows a secret once",
    "/console/webhooks/new": "shows a secret once",
}
LEAVING = '<meta http-equiv="refresh"'
# The script of the pages sends these forms, and gets JSON.
SENT_BY_THE_SCRIPT = {"/account/email/waiting/state", "/new-password/common", "/waiting/state"}
# Two rules of one view, of which the tests use the second: providers with a preset use the first.
PLAYED_INSTEAD = {"/callback": "/providers/<name>/callback"}
# Programs send these forms, as OAuth says.
SENT_BY_PROGRAMS = {
    "/introspect", "/oauth/device_authorization", "/oauth/revoke", "/oauth/token", "/oauth/userinfo",
}  # fmt: skip


class Answer(NamedTuple):
    """The answer to a form, by the rule of the URL map that it matched."""

    rule: str
    status: int
    location: str
    kind: str
    text: str

    @property
    def is_page(self) -> bool:
        """Whether the browser shows the answer as the result of the form."""
        return self.status == 200 and self.kind != "application/json" and LEAVING not in self.text

    @property
    def is_refusal(self) -> bool:
        asks_for_proof = "account/confirm" in self.location and "sent=yes" not in self.location
        return self.status >= 400 or "error_code=" in self.location or asks_for_proof


@contextmanager
def answers_to_forms(app: Flask) -> Iterator[list[Answer]]:
    """Collect the answers to all forms that are sent."""
    answers = []

    def note(_sender: Flask, response: Response, **_rest: Any) -> None:
        if request.method == "POST" and request.mimetype == FORM and request.url_rule:
            text = "" if response.is_streamed else response.get_data(as_text=True)
            location = response.headers.get("Location", "")
            answers.append(
                Answer(request.url_rule.rule, response.status_code, location, response.mimetype or "", text)
            )

    with request_finished.connected_to(note, app):
        yield answers


def forms_of(app: Flask, *, of_console: bool) -> set[str]:
    """Return the rules that take a form from a person."""
    return {
        rule.rule
        for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ())
        and route_of(app.view_functions[rule.endpoint]).accepts_forms
        and rule.rule.startswith("/console") is of_console
    } - SENT_BY_PROGRAMS


def check_answers(app: Flask, answers: list[Answer], *, of_console: bool) -> None:
    """Check that every form was accepted once, and answered with a redirect or as listed."""
    accepted = [answer for answer in answers if not answer.is_refusal]
    forms = forms_of(app, of_console=of_console)
    unplayed = {PLAYED_INSTEAD.get(rule, rule) for rule in forms} - {answer.rule for answer in accepted}
    assert not unplayed, f"no play sends {unplayed}"
    assert {answer.rule for answer in accepted if answer.is_page} == forms & ANSWERED_BY_A_PAGE.keys()
    assert {answer.rule for answer in accepted if answer.kind == "application/json"} <= SENT_BY_THE_SCRIPT
    assert {answer.status for answer in accepted} <= {200, 303}
