"""What an operator reads about an organization, in the console and from the command."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from auth.core.text import languages
from auth.core.text.catalogues import DEFAULT


def of_requirement(requires: Mapping[str, Any]) -> str:
    demands = {"a second factor": requires["aal"] == "aal2", "its own sign-in": "providers" in requires}
    names = [name for name, is_made in demands.items() if is_made]
    if "max_age" in requires:
        age = languages.duration(timedelta(seconds=requires["max_age"]), DEFAULT)
        names.append(f"a sign-in of the last {age}")
    return " and ".join(names) or "nothing"


def of_domain(domain: Mapping[str, Any]) -> str:
    if missing := domain.get("missing_since"):
        return f"record missing since {missing[:10]}"
    if domain.get("proved_at"):
        return f"proved, looked up {domain['checked_at'][:10]}"
    if domain.get("proved_by_command_at"):
        return "proved by command, which counts only on this machine"
    return "not proved"


def of_provider(provider: Mapping[str, Any]) -> str:
    if provider["enabled"]:
        return "on"
    if provider.get("is_blocked"):
        return "disabled"
    return "off" if provider.get("tried_at") else "off, not tested"
