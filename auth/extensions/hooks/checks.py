"""The check of hooks: SQL functions exist, and servers accept connections. Calls no hook."""

from urllib.parse import urlsplit

from auth.core.checks import Context, Failure, NotChecked, check
from auth.core.net import sockets
from auth.core.settings.values.hooks import NAMES, Hook
from auth.extensions.hooks import http_hooks
from sql import Database, queries

_LONGEST = 2.0  # seconds


@check("hooks", "Hooks can be called")
def _hooks(context: Context) -> Failure | None:
    hooks = {name: hook for name in NAMES if (hook := context.settings.hook(name))}
    if not hooks:
        raise NotChecked("there are none")
    for name, hook in hooks.items():
        if problem := problem_of(hook, context.db, context.seconds_left):
            setting = f"AUTH_HOOK_{name.upper()}"
            remedy = f"Start the server of {setting}, or set another that this machine can reach."
            if hook.function:
                remedy = (
                    f"Create and grant that function as docs/hooks.md shows, or set {setting} to another."
                )
            text = f"The hook {hook.name} cannot be called, so what it decides is refused: {problem}."
            return Failure(text, remedy, problem == sockets.NO_ANSWER)
    return None


def problem_of(hook: Hook, db: Database, seconds: float = _LONGEST) -> str | None:
    """Return why a hook cannot be called, without calling it. Raises `psycopg2.Error`."""
    if hook.function:
        schema, name = hook.function
        function = queries.select_function(db, schema=schema, name=name)
        if function.is_allowed is None:
            return f"there is no function {schema}.{name}(jsonb)"
        return None if function.is_allowed else f"the role of DATABASE_URL may not call it: {function.remedy}"
    parts, seconds = urlsplit(hook.url), min(seconds, _LONGEST)
    host, is_safe = parts.hostname or "", parts.scheme == "https"
    try:
        with sockets.Deadline(seconds, http_hooks.allowed_addresses(hook)) as deadline:
            connection = deadline.connect(host, parts.port or (443 if is_safe else 80), seconds)
            with sockets.tls().wrap_socket(connection, server_hostname=host) if is_safe else connection:
                return None
    except OSError as error:
        return sockets.why(error)


CHECKS = [_hooks]
