"""The marks of providers and icons: each that a page names has a file, and each file is named."""

import re
from pathlib import Path

from auth.core.settings.presets import PRESETS
from tests.support.contract import OPENAPI

AUTH = OPENAPI.parent / "auth"
FILES = {path.stem for path in (AUTH / "html" / "templates" / "marks").glob("*.svg")}
# A line that chooses a mark names each of its choices.
_CHOICE = re.compile(r"^.*marks(?:/| =).*$", re.MULTILINE)


def names_in_code() -> set[str]:
    """Return the quoted words of all lines that choose a mark, and the names in paths of marks."""
    names: set[str] = set()
    for path in (*AUTH.rglob("*.html"), *AUTH.rglob("*.py")):
        for line in _CHOICE.findall(Path(path).read_text()):
            names |= {*re.findall(r"marks/(\w+)\.svg", line), *re.findall(r"[\"'](\w+)[\"']", line)}
    return names


def test_each_mark_that_a_page_names_has_a_file():
    included = {
        name
        for path in AUTH.rglob("*.html")
        for name in re.findall(r"include \"marks/(\w+)\.svg\"", path.read_text())
    }
    assert included - FILES == set()


def test_readme_names_exactly_our_own_marks():
    readme = (AUTH / "html" / "templates" / "marks" / "README.md").read_text()
    list_of_own = readme.partition("our own:")[2]
    assert {*re.findall(r"`(\w+)\.svg`", list_of_own)} == FILES - PRESETS.keys()


def test_each_file_is_the_mark_of_a_preset_or_named_by_a_page():
    assert FILES - names_in_code() - PRESETS.keys() == set()
