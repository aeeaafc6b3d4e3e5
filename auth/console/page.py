from typing import Any

from flask import Response, request

from auth.pages.page import ago, page
from auth.text import user_agents
from auth.text.labels import label
from auth.web import g

# Name, title and path of each section, in the order of the navigation.
SECTIONS = (
    ("overview", "Overview", "console"),
    ("users", "Users", "console/users"),
    ("audit", "Audit log", "console/audit"),
    ("webhooks", "Webhooks", "console/webhooks"),
    ("messages", "Messages", "console/messages"),
    ("settings", "Settings", "console/settings"),
)


def console_page(template: str, *, section: str | None, status: int = 200, **values: Any) -> Response:
    """Render a page of the console, in a section of `SECTIONS`.

    Templates extend `console/layout.html` and import the macros of `console/parts.html`.
    """
    common = {
        "section": section,
        "sections": SECTIONS,
        "administrator": g.administrator,
        "here": request.path,
        "ago": ago,
        "label": label,
        "problem": None,
    }
    return page(f"console/{template}", status=status, script=True, **common | values)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 session`, `1,000 sessions`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def device(user_agent: str | None) -> str:
    return user_agents.device(user_agent) or "Unknown device"
