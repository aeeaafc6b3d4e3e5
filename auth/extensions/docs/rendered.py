"""The rendered pages of the documentation, imported at the first request: most workers get none."""

import functools
import gzip

from flask import render_template
from markupsafe import escape

from auth.extensions.docs import guides
from auth.extensions.docs.reference import PAGE, Reference

_MOST_FOUND = 30
_SNIPPET = 160
_EXAMPLE_URL = "http://localhost:8000"  # the service, in the documents


def search(words: list[str], theme: str | None, base_url: str) -> str:
    """Return the page of a search."""
    found = [section for text, section in _sections() if all(word in text for word in words)]
    found.sort(key=lambda section: -sum(word in section.heading.lower() for word in words))
    shown = []
    for section in found[:_MOST_FOUND]:
        start = max(0, section.text.lower().find(words[0]) - _SNIPPET // 2)
        shown.append((section, section.text[start : start + _SNIPPET]))
    return _render(
        "search.html", "docs", "Search", base_url=base_url, theme=theme, found=shown, most=_MOST_FOUND
    )


@functools.cache
def reference(base_url: str, is_local: bool, theme: str | None) -> bytes:
    values = {"theme": theme, "reference": Reference(), "is_local": is_local}
    return gzip.compress(_render("api.html", PAGE, "HTTP API", base_url=base_url, **values).encode())


@functools.cache
def guide(name: str, theme: str | None, root: str, base_url: str) -> bytes:
    """Return a guide. `root` is the relative URL of the service's root."""
    first, *others = guides.sections(name)
    contents = [section for section in others if section.level == 2]
    values = {"theme": theme, "guide": guides.html(name, root), "root": root, "contents": contents}
    values |= {"anchor": first.anchor}
    return gzip.compress(_render("guide.html", name, first.heading, base_url=base_url, **values).encode())


def _render(template: str, name: str, title: str, *, base_url: str, **values: object) -> str:
    """Return a page, with the URL of this service in place of that of the examples."""
    common = {"name": name, "title": title, "language": "en", "groups": guides.groups()}
    values = common | {"root": "../" * name.count("/"), "base_url": base_url} | values
    page = render_template(f"docs/{template}", **values)
    return page.replace(_EXAMPLE_URL, escape(base_url))


@functools.cache
def _sections() -> list[tuple[str, guides.Section]]:
    listed = [name for row in guides.groups().values() for name in row]
    others = sorted(name for name, path in guides.library().items() if path.suffix == ".md")
    names = dict.fromkeys([*listed, *others])
    found = [*Reference().sections(), *(section for name in names for section in guides.sections(name))]
    return [(f"{each.title} {each.heading} {each.text}".lower(), each) for each in found]
