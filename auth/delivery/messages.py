"""What messages say: Jinja templates, one for each kind, whose first line is the subject."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from auth.settings import Settings

TEMPLATES = Path(__file__).parent / "templates"
# Plain text: nothing is escaped, and nothing that a user could have written is put in.
_environment = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701


@dataclass(frozen=True)
class Message:
    """A message as it is sent."""

    subject: str
    text: str


def render(settings: Settings, kind: str, recipient: str, secret: str | None, variables: Mapping[str, str]) -> Message:
    """Return a message; `secret` is the token of the link that it carries."""
    link = None
    if secret:
        query = {"token": secret, "type": kind} | {name: variables[name] for name in ("redirect_to",) if variables.get(name)}
        link = f"{settings.base_url}/verify?{urlencode(query)}"
    text = _environment.get_template(f"en/{kind}.txt").render(recipient=recipient, link=link, site_url=settings.site_url)
    subject, _, body = text.partition("\n")
    return Message(subject, body.lstrip("\n"))
