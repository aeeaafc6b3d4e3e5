"""The application of a test service: the production application, which fails where a test wants it."""

import json
from fnmatch import fnmatchcase

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
    line = f"{request.method} {request.path}"
    with_grant = f"{line}?grant_type={request.args.get('grant_type')}"
    for path in sorted(_failures.iterdir()):
        failure = json.loads(path.read_text(encoding="utf-8"))
        if fnmatchcase(line, failure["request"]) or fnmatchcase(with_grant, failure["request"]):
            path.unlink()
            headers = {"Retry-After": "1"} if ERRORS[failure["key"]][0] in (429, 503) else None
            raise ApiError(failure["key"], headers=headers, request_id=g.request_id)
