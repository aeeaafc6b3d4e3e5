"""The search in the documentation."""

import functools

from auth.extensions.docs import guides
from auth.extensions.docs.reference import Reference

MOST = 30
_SNIPPET = 160


def find(words: list[str]) -> list[tuple[guides.Section, str]]:
    """Return the sections that have all words, and the text around the first. Headings come first."""
    sections = [section for text, section in _sections() if all(word in text for word in words)]
    sections.sort(key=lambda section: -sum(word in section.heading.lower() for word in words))
    results = []
    for section in sections[:MOST]:
        start = max(0, section.text.lower().find(words[0]) - _SNIPPET // 2)
        results.append((section, section.text[start : start + _SNIPPET]))
    return results


@functools.cache
def _sections() -> list[tuple[str, guides.Section]]:
    listed = [name for row in guides.groups().values() for name in row]
    others = sorted(name for name, path in guides.library().items() if path.suffix == ".md")
    names = dict.fromkeys([*listed, *others])
    sections = [*Reference().sections(), *(section for name in names for section in guides.sections(name))]
    return [(f"{each.title} {each.heading} {each.text}".lower(), each) for each in sections]
