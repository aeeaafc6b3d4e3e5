"""openapi.yaml as a judge: each response that a test gets must be as it says."""

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from flask import Flask
from flask.testing import FlaskClient
from openapi_core import Config, OpenAPI
from openapi_core.contrib.werkzeug import WerkzeugOpenAPIRequest, WerkzeugOpenAPIResponse
from openapi_core.validation.response.exceptions import InvalidData
from werkzeug.wrappers import Request, Response

OPENAPI = Path(__file__).resolve().parents[2] / "openapi.yaml"
PREFIX = "/auth/v1"
_seen: set[tuple[Any, ...]] = set()


class CheckedClient(FlaskClient):
    """Flask's test client, holding each response to the contract."""

    def open(self, *args: Any, **kwargs: Any) -> Any:
        # Read to its end at once, so that no file is left open.
        response = super().open(*args, buffered=True, **kwargs)
        check(response.request, response)
        return response


class _Request(WerkzeugOpenAPIRequest):
    # The contract describes each path once, and without the prefix.
    @property
    def path(self) -> str:
        return _without_prefix(self.request.path)

    # Only responses are looked at; the body has been read already.
    @property
    def body(self) -> None:
        return None


def routes(app: Flask) -> Iterator[tuple[str, str, Any]]:
    """Yield method, path and view of each route of ours; Flask's own serves what is in auth/static."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint != "static":
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
                yield method.lower(), path, app.view_functions[rule.endpoint]


@functools.cache
def description() -> dict[str, Any]:
    # libyaml is six times as fast where PyYAML was built with it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(OPENAPI.read_bytes(), loader)  # noqa: S506


@functools.cache
def contract() -> OpenAPI:
    # tests/test_contract.py checks the description itself.
    config = Config(spec_validator_cls=None, extra_media_type_deserializers={"application/yaml": bytes.decode})
    return OpenAPI.from_dict(description() | {"servers": [{"url": "/"}]}, config=config)


def check(request: Request, response: Response) -> None:
    """Fail when a response is not as openapi.yaml says."""
    if request.method in ("HEAD", "OPTIONS"):
        return
    path = _without_prefix(request.path)
    template = _template(path)
    if template is None or request.method.lower() not in description()["paths"][template]:
        # What is not described is not there, but for what a page loads.
        assert response.status_code in (404, 405, 413, 415) or path.startswith("/static/"), f"{request.method} {path} is not in openapi.yaml"
        return
    # Looking takes milliseconds. What differs in ids, times and tokens alone was as good the first time.
    kind = (request.method, template, response.status_code, response.mimetype, re.sub(rb"[0-9A-Za-z_-]{16,}|[0-9]+", b"", response.data))
    if kind in _seen:
        return
    try:
        contract().validate_response(_Request(request), WerkzeugOpenAPIResponse(response))
    except InvalidData as error:
        problems = [f"{'/'.join(map(str, problem.absolute_path))}: {problem.message}" for problem in _leaves(getattr(error.__cause__, "schema_errors", []))]
        raise AssertionError(f"{request.method} {path} answers {response.status_code} other than openapi.yaml says:\n" + "\n".join(problems)) from None
    _seen.add(kind)


def _without_prefix(path: str) -> str:
    return path.removeprefix(PREFIX) or "/" if path == PREFIX or path.startswith(PREFIX + "/") else path


@functools.cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    # One without a parameter comes first, as in OpenAPI.
    templates = sorted(description()["paths"], key=lambda template: template.count("{"))
    return [(re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template))), template) for template in templates]


def _template(path: str) -> str | None:
    return next((template for pattern, template in _templates() if pattern.fullmatch(path)), None)


def _leaves(errors: Iterable[Any]) -> Iterator[Any]:
    """Yield what is wrong in the end: `oneOf` and the like only say that something below them is."""
    for error in errors:
        yield from _leaves(error.context) if error.context else [error]
