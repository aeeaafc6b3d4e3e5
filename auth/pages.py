"""The few pages that people see: small, in their language, and closed to everything but their own style sheet."""

from typing import Any

from flask import Response, render_template

_CSP = "default-src 'none'; style-src 'self'; {script}form-action 'self'{target}; frame-ancestors 'none'; base-uri 'none'"


def page(template: str, *, status: int = 200, form_target: str | None = None, script: bool = False, **values: Any) -> Response:
    """Return a page. `form_target` is the origin that a form's answer redirects to: browsers apply form-action to that too."""
    response = Response(render_template(template, **values), status)
    response.headers["Content-Security-Policy"] = _CSP.format(script="script-src 'self'; " if script else "", target=f" {form_target}" if form_target else "")
    return response
