"""Who acts, and from where: what the statements that write the audit log are told of the request they serve."""

import click
from flask import g, has_request_context


def origin() -> dict[str, str | None]:
    """Return where what is done now comes from: a request, a command of `flask`, or a thread of the service itself."""
    if not has_request_context():
        return {"actor": "command" if click.get_current_context(silent=True) else "service"}
    known = {"ip": g.ip, "network": g.network, "user_agent": g.user_agent, "request_id": g.request_id}
    # The guards leave None where the service role key came; what is public has no guard.
    if "caller" not in g:
        return {"actor": "anonymous", **known}
    if g.caller is None:
        return {"actor": "service_role", **known}
    return {"actor": "user", "actor_id": g.caller.user_id, **known}
