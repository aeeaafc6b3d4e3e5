"""The check of hooks: SQL functions are there, and servers accept connections. Nothing is called."""

from auth.core.settings.values.hooks import NAMES
from auth.operator.doctor.check import Check, Context, Failure, NotChecked
from auth.operator.processes import start_checks


def _hooks(context: Context) -> Failure | None:
    found = {name: hook for name in NAMES if (hook := context.settings.hook(name))}
    if not found:
        raise NotChecked("there are none")
    for name, hook in found.items():
        if problem := start_checks.hook_problem(hook, context.db, context.seconds_left):
            setting = f"AUTH_HOOK_{name.upper()}"
            return Failure(f"The hook {hook.name} can't be asked: {problem}.", setting)
    return None


CHECKS = (Check("hooks", "Hooks can be asked", _hooks),)
