"""Acts: a page that says what will be done, in numbers, and the form that does it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response, request
from marshmallow import Schema

from auth.console.access import act as acting
from auth.console.access import administrator, count_challenges, explain, needs_factor, require_proof
from auth.console.page import console_page
from auth.console.proofs import asked_factors, give_factor
from auth.pages.page import to_own
from auth.pages.problems import Problem, shows
from auth.web import View, g
from auth.web.input import read_form
from auth.web.schemas import Input


@dataclass(frozen=True)
class Subject:
    """What an act is about: its name for people, and the path of its page."""

    name: str
    path: str
    row: Any = None


@dataclass(frozen=True)
class Act:
    """One act of the console.

    `effects` returns sentences about what the act will do, in numbers. `undo` says how to undo it, or that
    it cannot be undone. `do` gets the subject and what `check` returns for the form read by `form`; it may
    return a response to show instead of the subject's page.
    """

    title: str
    effects: Callable[[Subject], Iterable[str]]
    undo: str
    do: Callable[[Subject, dict[str, Any]], object]
    done: str
    needs_factor: bool = False
    is_destructive: bool = False
    form: type[Schema] = Input
    # Before the factor, so that a wrong field does not cost a code.
    check: Callable[[Subject, dict[str, Any]], dict[str, Any]] = lambda _subject, form: form
    template: str = "act.html"


def serve(
    blueprint: Blueprint, path: str, acts: Mapping[str, Act], find: Callable[..., Subject], section: str
) -> None:
    """Add a page and a form for each act, at `path`/<name>. `find` gets the variables of the path."""
    for name, act in acts.items():
        show, submit = _views(name, act, find, section)
        endpoint = name.replace("-", "_")
        blueprint.add_url_rule(f"{path}/{name}", f"show_{endpoint}", show, methods=["GET"])
        blueprint.add_url_rule(f"{path}/{name}", f"submit_{endpoint}", submit, methods=["POST"])


def told(acts: Mapping[str, Act]) -> str | None:
    """Return the message for the query's `done`, which an act adds when it leads back to the subject's
    page."""
    act = acts.get(request.args.get("done", ""))
    return act.done if act else None


def _views(name: str, act: Act, find: Callable[..., Subject], section: str) -> tuple[View, View]:
    def confirmation(problem: Problem | None = None, **ids: Any) -> Response:
        subject = find(**ids)
        effects = act.effects(subject)
        ways = asked_factors() if act.needs_factor else None
        values: dict[str, Any] = {"act": act, "subject": subject, "effects": effects, "ways": ways}
        return console_page(act.template, section=section, problem=problem, **values)

    @administrator
    def show(**ids: Any) -> Response:
        require_proof()
        if act.needs_factor and not g.administrator.has_factor:
            return needs_factor()
        if act.needs_factor:
            count_challenges()
        return confirmation(**ids)

    # A form of another site is not shown again, and one that no limit has counted gets no challenges.
    @administrator
    @acting
    @shows(confirmation, explain)
    def submit(**ids: Any) -> Response:
        subject = find(**ids)
        form = act.check(subject, read_form(act.form()))
        if act.needs_factor:
            give_factor()
        shown = act.do(subject, form)
        return shown if isinstance(shown, Response) else to_own(f"{subject.path}?done={name}")

    return show, submit
