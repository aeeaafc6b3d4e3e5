"""The application of a test service: the production application, which fails where a test wants it."""

import json
from fnmatch import fnmatchcase
from typing import Any

from flask import request

from auth.ops.testkit import FAILURES
from auth.web import g
from auth.web.context import EXTENSION
from auth.web.errors import ERRORS, ApiError
from wsgi import app

_failures = app.extensions[EXTENSION].settings.state_dir / FAILURES


@app.before_request
def fail() -> None:
    """Fail once for each file."""
    for path in sorted(_failures.iterdir()):
        failure = json.loads(path.read_text())
        if _is_meant(failure["request"]):
            path.unlink()
            raise _error(failure["key"])


def _is_meant(pattern: str) -> bool:
    line = f"{request.method} {request.path}"
    grant = request.args.get("grant_type")
    return any(fnmatchcase(each, pattern) for each in (line, f"{line}?grant_type={grant}"))


def _error(key: str) -> ApiError:
    values: Any = {"request_id": g.request_id} if key == "unexpected_failure" else {}
    may_retry = ERRORS[key][0] in (429, 503)
    return ApiError(key, headers={"Retry-After": "1"} if may_retry else None, **values)
