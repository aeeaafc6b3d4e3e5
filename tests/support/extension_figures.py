"""Prints the size of each extension, as docs/architecture.md shows it: `python -m tests.support.extension_figures`.

Lines are not blank. A guide is counted for the extension that it is about.
"""

from collections.abc import Iterable
from pathlib import Path

from auth.registry import EXTENSIONS

ROOT = Path(__file__).parents[2]
_STATEMENTS = {"sso": "identity_providers*", "social": "oauth*"}
_GUIDES = {
    "api_keys": ["api-keys.md"],
    "captcha": ["abuse.md"],
    "console": ["console.md"],
    "hooks": ["hooks.md"],
    "openid": ["openid.md", "agents.md"],
    "organizations": ["organizations.md"],
    "pages": ["pages.md"],
    "social": ["oauth.md"],
    "sso": ["sso.md"],
    "webhooks": ["webhooks.md"],
}
_SUFFIXES_OF_PAGES = {".html", ".txt", ".css", ".js"}


def row_of(name: str) -> str:
    """Return the row of an extension: its name, three figures of its code, its tests, and words."""
    code = [path for path in (ROOT / "auth/extensions" / name).rglob("*") if path.is_file()]
    folders = (ROOT / "tests/extensions" / name, ROOT / "tests/system/extensions" / name)
    figures = (
        lines_of(path for path in code if path.suffix == ".py"),
        lines_of(path for path in code if path.suffix in _SUFFIXES_OF_PAGES and ".min." not in path.name),
        lines_of((ROOT / "sql").glob(_STATEMENTS.get(name, f"{name}*") + ".sql")),
        lines_of(path for folder in folders for path in folder.rglob("*.py")),
        sum(len((ROOT / "docs" / guide).read_text().split()) for guide in _GUIDES.get(name, ())),
    )
    return f"| {name} | {' | '.join(f'{figure:,}' for figure in figures)} |"


def lines_of(paths: Iterable[Path]) -> int:
    return sum(bool(line.strip()) for path in paths for line in path.read_text().splitlines())


def main() -> None:
    print("| extension | Python | templates, styles, scripts | statements | tests | words of its guides |")
    print("| --- | --: | --: | --: | --: | --: |")
    print("\n".join(map(row_of, sorted(EXTENSIONS))))


if __name__ == "__main__":
    main()
