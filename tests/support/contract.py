"""Checks each response of the tests against openapi.yaml."""

import functools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from flask import Flask
from flask.testing import FlaskClient
from openapi_schema_validator import OAS30ReadValidator, oas30_format_checker
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from app import VIEWS
from auth.web.declarations import route_of

OPENAPI = Path(__file__).resolve().parents[2] / "openapi.yaml"
PREFIX = "/auth/v1"
# openapi.yaml does not describe the pages for people, their assets and the console. tests/extensions/pages and
# tests/extensions/console test them.
PAGES = ("brand", "pages")
CONSOLE = "console"
# The `frame-ancestors` of the policy for each value of X-Frame-Options.
FRAMED = {"DENY": "'none'", "SAMEORIGIN": "'self'"}
_checked: set[tuple[Any, ...]] = set()
# A directory of all workers, with a file for each problem that a test has failed with.
REPORTED: Path | None = None


class CheckedClient(FlaskClient):
    """Flask's test client, which checks each response against the contract."""

    def open(self, *args: Any, **kwargs: Any) -> Any:
        # Read the body to its end, so that no file stays open.
        response = super().open(*args, buffered=True, **kwargs)
        check(response.request, response, is_of_api=_is_of_api(self.application, response.request))
        return response


def routes(app: Flask) -> Iterator[tuple[str, str, Any]]:
    """Yield method, path and view of each route of the API."""
    return _routes(app, lambda owner: owner not in ("static", CONSOLE, *PAGES))


def page_routes(app: Flask) -> Iterator[tuple[str, str, Any]]:
    """Yield method, path and view of each route of the pages, which openapi.yaml does not describe."""
    return _routes(app, lambda owner: owner in PAGES)


def console_routes(app: Flask) -> Iterator[tuple[str, str, Any]]:
    """Yield method, path and view of each route of the console."""
    return _routes(app, lambda owner: owner == CONSOLE)


def _is_of_api(app: Flask, request: Request) -> bool:
    """Whether a request reaches a route that openapi.yaml describes."""
    try:
        endpoint, _ = app.url_map.bind("localhost").match(_without_prefix(request.path), request.method)
    except HTTPException:
        return False
    return endpoint.partition(".")[0] not in ("static", "docs", CONSOLE, *PAGES)


def _routes(app: Flask, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, str, Any]]:
    for rule in app.url_map.iter_rules():
        if is_wanted(rule.endpoint.partition(".")[0]):
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
                yield method.lower(), path, app.view_functions[rule.endpoint]


@functools.cache
def description() -> dict[str, Any]:
    # libyaml is six times as fast, if PyYAML was built with it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(OPENAPI.read_bytes(), loader)  # noqa: S506


def resolved(node: Any) -> Any:
    """Return a part of the description with all references resolved."""
    if isinstance(node, list):
        return [resolved(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        return _target(node["$ref"])
    return {name: resolved(value) for name, value in node.items()}


@functools.cache
def _target(reference: str) -> Any:
    target: Any = description()
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return resolved(target)


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema, and the schemas that it combines."""
    yield schema
    for part in schema.get("allOf", []):
        yield from parts(part)


def check(request: Request, response: Response, *, is_of_api: bool = True) -> None:
    """Fail if a response violates openapi.yaml."""
    if response.mimetype == "text/html" and response.data:
        policy, framed = response.headers["Content-Security-Policy"], response.headers["X-Frame-Options"]
        assert f"frame-ancestors {FRAMED[framed]};" in policy, request.path
    # openapi.yaml does not describe the dialect of the Supabase clients.
    path = _without_prefix(request.path)
    in_dialect = path != request.path or "X-Supabase-Api-Version" in request.headers
    if request.method in ("HEAD", "OPTIONS") or in_dialect or response.content_encoding:
        return
    if response.status_code == 403 and b'"origin_not_allowed"' in response.data:
        return
    template = _template(path)
    if response.status_code >= 400 and response.mimetype == "text/html" and template in _refusing_by_page():
        return
    if template is None or request.method.lower() not in description()["paths"][template]:
        assert response.status_code in (404, 405, 413, 415) or not is_of_api, (
            f"{request.method} {path} is not in openapi.yaml"
        )
        return
    # Check responses once that differ only in ids, times and tokens.
    shape = re.sub(rb"[0-9A-Za-z_-]{16,}|[0-9]+", b"", str(response.headers).encode() + response.data)
    kind = (request.method, template, response.status_code, shape)
    if kind not in _checked:
        # A hook may refuse with any status.
        is_of_hook = b'"hook_refused"' in response.data
        status = "default" if is_of_hook else str(response.status_code)
        problems = list(_problems(_described(request.method.lower(), template, status), response))
        place = f"openapi.yaml:{line_of(template)}"
        headline = f"{request.method} {path} answers {response.status_code} other than {place} says:"
        new_problems = [problem for problem in problems if _is_new(problem)]
        assert not new_problems, "\n".join([headline, *new_problems])
        _checked.add(kind)


@functools.cache
def described_members() -> frozenset[str]:
    """Return the names of all members in openapi.yaml."""
    names, waiting = set[str](), list[Any]([description()])
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            names |= {*node.get("properties", {})}
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return frozenset(names)


def _is_new(problem: str) -> bool:
    """Return whether no test of this run has failed with it: an undescribed member of a user would fail a thousand."""
    if REPORTED is None:
        return True
    # Without its place in the body, and without numbers of members.
    digest = sha256(re.sub(r"\d+", "", problem.partition(": ")[2]).encode()).hexdigest()
    try:
        (REPORTED / digest).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def line_of(template: str) -> int:
    """Return the line of openapi.yaml at which a path begins."""
    return OPENAPI.read_text().partition(f"\n  {template}:\n")[0].count("\n") + 2


class _Described(NamedTuple):
    """The description of an operation's responses with one status."""

    required: set[str]
    headers: dict[str, Any]
    bodies: dict[str, Any]


@functools.cache
def _described(method: str, template: str, status: str) -> _Described | None:
    responses = description()["paths"][template][method]["responses"]
    if status not in responses:
        return None
    response = resolved(responses[status])
    headers = response.get("headers", {})
    return _Described(
        {name for name, header in headers.items() if header.get("required")},
        {name: _validator(header["schema"]) for name, header in headers.items()},
        {kind: _validator(body["schema"]) for kind, body in response.get("content", {}).items()},
    )


def _validator(schema: dict[str, Any]) -> Any:
    return OAS30ReadValidator(schema, format_checker=oas30_format_checker)


def _problems(described: _Described | None, response: Response) -> Iterator[str]:
    if described is None:
        yield "no such status is described"
        return
    yield from (
        f"the header {name} is missing" for name in described.required if name not in response.headers
    )
    for name, validator in described.headers.items():
        for value in response.headers.getlist(name):
            is_number = validator.schema["type"] == "integer" and value.isdecimal()
            yield from (
                f"{name}: {problem.message}"
                for problem in validator.iter_errors(int(value) if is_number else value)
            )
    if response.mimetype in described.bodies:
        text = response.get_data(as_text=True)
        body = json.loads(text) if response.is_json else text
        if response.is_json and set(re.findall(r'[{,]\s*"\w+"(\s*:\s*)', text)) - {": "}:
            yield "its members are not spaced like those of other responses"
        problems = described.bodies[response.mimetype].iter_errors(body)
        for problem in _leaves(problems):
            message = problem.message
            if problem.validator == "maxProperties":
                unknown = sorted(problem.instance.keys() - described_members())
                message = f"has {len(problem.instance)} members, undescribed: {', '.join(unknown) or 'none'}"
            yield f"{'/'.join(map(str, problem.absolute_path))}: {message}"
    elif described.bodies or response.data:
        yield f"a body of type {response.mimetype!r} is not described"


@functools.cache
def _refusing_by_page() -> set[str]:
    """Return the paths that show browsers a page instead of the envelope that openapi.yaml has for all errors."""
    # Imported here, because some tests run without these extensions.
    from auth.extensions.api_keys import ApiKeys
    from auth.extensions.docs import Docs
    from auth.extensions.openid import OpenId
    from auth.extensions.social import Social
    from auth.extensions.webhooks import Webhooks

    app = Flask("routes")
    for view in VIEWS:
        app.register_blueprint(view.blueprint)
    for extension in (Social, OpenId, ApiKeys, Webhooks, Docs):
        extension(cast("Any", None)).init_app(app)
    return {path for _, path, view in routes(app) if route_of(view).refuses_by_page}


def _without_prefix(path: str) -> str:
    return path.removeprefix(PREFIX) or "/" if path == PREFIX or path.startswith(PREFIX + "/") else path


@functools.cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    templates = [template for template in description()["paths"] if "{" in template]
    return [
        (
            re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.sub(r"\\{\w+_path\\}", ".+", re.escape(template)))),
            template,
        )
        for template in sorted(templates, key=lambda template: template.count("{"))
    ]


def _template(path: str) -> str | None:
    # Paths without a parameter take precedence, as in OpenAPI.
    if path in description()["paths"]:
        return path
    return next((template for pattern, template in _templates() if pattern.fullmatch(path)), None)


def _leaves(errors: Iterable[Any]) -> Iterator[Any]:
    """Yield the innermost errors. `oneOf` and the like only report that their branches failed: follow the branch that
    matches furthest.
    """
    for error in errors:
        branches = defaultdict[Any, list[Any]](list)
        for leaf in error.context:
            branches[leaf.relative_schema_path[0]] += _leaves([leaf])
        depths = {name: max(len(leaf.absolute_path) for leaf in leaves) for name, leaves in branches.items()}
        yield from branches[max(depths, key=lambda name: depths[name])] if depths else [error]
