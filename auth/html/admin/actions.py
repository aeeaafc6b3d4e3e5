"""Actions of the console: a page that shows the effects in numbers, and the form that performs the action.

Some actions require a factor or passkey besides that of the session. One added in the last seven days does
not count, unless it was added within an hour of the first one: see docs/decisions.md.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from flask import Blueprint, Response, current_app, request
from werkzeug.exceptions import HTTPException

from auth.flows.admin.actions import AdminAction
from auth.flows.factors import recovery_codes
from auth.flows.factors.factor_codes import check_totp
from auth.flows.passkeys import assertions
from auth.html import browser_sessions, forms
from auth.html.admin.access import administrator, changing, explain, needs_factor, require_proof
from auth.html.admin.console_page import console_page
from auth.html.challenges import factors_without_challenge, own_factors, sent_credential, verify_key
from auth.html.page import redirect_to_own
from auth.html.problems import Problem, shows
from auth.rules.factors import trusted_before
from auth.web import View, callers, fields, g, guard, limits, takes_metadata
from auth.web.asked import Asked, current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from auth.web.input import read_form
from auth.web.schemas import Input
from sql import queries

_CodeForm = Input.of(factor_code=fields.Code(required=True))
_TOTP_LENGTH = 6


@dataclass(frozen=True)
class Subject:
    """The subject of an action: its displayed name, the path of its page, and hidden fields of the form.

    Without an effect, the page of the action has no form.
    """

    name: str
    path: str
    row: Any = None
    hidden: Mapping[str, str] = field(default_factory=dict)
    has_effect: bool = True


@dataclass(frozen=True, kw_only=True)
class Action(AdminAction):
    """An action of the console.

    `effects` returns sentences about the effects, in numbers; empty ones are left out. `do` gets the request,
    the subject, and what `check` returns for the form. It may return a response to show instead of the
    subject's page, or the page `then`.
    """

    effects: Callable[[Subject], Iterable[str]]
    do: Callable[[Asked, Subject, dict[str, Any]], object]
    then: str = ""
    # Whether an administrator without a factor needs none while AUTH_BASE_URL is this machine.
    is_spared_here: bool = False
    takes_metadata: bool = False
    is_download: bool = False
    # Called before the factor is spent, so that a wrong field does not cost a code.
    check: Callable[[Subject, dict[str, Any]], dict[str, Any]] = lambda _subject, form: form
    template: str = "act.html"

    @classmethod
    def of(cls, action: AdminAction, **members: Any) -> Self:
        """Return an action of the console with the words of another declaration, and these members."""
        shared = {each.name: getattr(action, each.name) for each in dataclasses.fields(AdminAction)}
        return cls(**shared | members)


def serve(
    blueprint: Blueprint, path: str, actions: Mapping[str, Action], find: Callable[..., Subject]
) -> None:
    """Add a page and a form for each action, at `path`/<name>. `find` gets the variables of the path."""
    for name, action in actions.items():
        show, submit = _views(name, action, find)
        vars(show)["title"] = action.title
        endpoint = name.replace("-", "_")
        blueprint.add_url_rule(f"{path}/{name}", f"show_{endpoint}", show, methods=["GET"])
        blueprint.add_url_rule(f"{path}/{name}", f"submit_{endpoint}", submit, methods=["POST"])


def title_and_page_above(path: str) -> tuple[str | None, str]:
    """Return the title of the action at a path of the console, if any, and the path of the page above."""
    title = getattr(_view_at(path), "title", None)
    while "/" in path:
        path = path.rpartition("/")[0]
        view = _view_at(path)
        if view and not hasattr(view, "title"):
            return title, path
    return title, "console"


def _view_at(path: str) -> Callable[..., Any] | None:
    adapter = current_app.create_url_adapter(request)
    with suppress(HTTPException):
        endpoint, values = adapter.match(f"/{path}", "GET") if adapter else ("", {})
        # `/console/users/chosen` is not the page of a user.
        return current_app.view_functions[endpoint] if all(map(is_uuid, values.values())) else None
    return None


def notice_of(actions: Mapping[str, Action]) -> str | None:
    """Return the message of the action that just redirected this browser to the subject's page."""
    action = actions.get(forms.signed_value("done"))
    return action.done if action else None


def _views(name: str, action: Action, find: Callable[..., Subject]) -> tuple[View, View]:
    def confirmation(problem: Problem | None = None, **ids: Any) -> Response:
        subject = find(**ids)
        ways = None
        if _asks_factor(action) and subject.has_effect:
            added_before = _trusted_before()
            row = queries.select_second_steps(
                latchkey.db, user_id=guard.caller_id(), added_before=added_before
            )
            ways = factors_without_challenge(row) if request.method == "HEAD" else own_factors(row)
            ways["has_passkey"] = row.has_passkey
        values: dict[str, Any] = {"action": action, "subject": subject, "problem": problem, "ways": ways}
        return console_page(action.template, effects=[*filter(None, action.effects(subject))], **values)

    @administrator
    def show(**ids: Any) -> Response:
        require_proof()
        if _asks_factor(action) and not g.administrator.has_factor:
            return needs_factor()
        if _asks_factor(action):
            # The challenges are rows. Links from other sites to this page must not use up the limit of
            # actions.
            limits.count("confirm_administration", guard.caller_on_network())
        return confirmation(**ids)

    # `shows` is inside: it does not show a form again that came from another site or exceeds the limit.
    @administrator
    @changing
    @shows(confirmation, explain)
    def submit(**ids: object) -> Response:
        subject = find(**ids)
        form = action.check(subject, read_form(action.form))
        if _asks_factor(action):
            _give_factor()
        result = action.do(current_asked(), subject, form)
        return result if isinstance(result, Response) else redirect_to_own(action.then or subject.path, name)

    return show, takes_metadata(submit) if action.takes_metadata else submit


def _asks_factor(action: Action) -> bool:
    is_spared = action.is_spared_here and latchkey.settings.is_local and not g.administrator.has_factor
    return action.needs_factor and not is_spared


def _give_factor() -> None:
    """Spend the code, or the response of a passkey or security key, in a form."""
    asked = current_asked()
    added_before = _trusted_before()
    if "factor_id" in request.form:
        session = verify_key(added_before=added_before)
        browser_sessions.keep(session.cookie, session.aal)
        return
    if "credential" in request.form:
        owner = assertions.own_session(asked)
        _, session = assertions.prove(asked, sent_credential(), added_before=added_before, owner=owner)
        browser_sessions.keep(session.cookie, session.aal)
        return
    code = read_form(_CodeForm)["factor_code"]
    if len(code) != _TOTP_LENGTH:
        session = recovery_codes.verify(asked, code, made_before=added_before)
        browser_sessions.keep(session.cookie, session.aal)
    elif not check_totp(asked, guard.caller_id(), code, added_before=added_before):
        details = "factor_code: must be an unused code from an authenticator app that is at least a week old"
        raise ApiError("mfa_verification_failed", details)


def _trusted_before() -> datetime:
    person = found(callers.select(latchkey.db, g.caller), "caller.user_not_found")
    return trusted_before(person.first_factor_at, person.now)
