"""The guides: docs/*.md, and the files that they link to, as pages and files below /docs."""

import functools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

ROOT = Path(__file__).parents[3]
# Links into the source code become text: it is not served.
_SOURCE = {"auth", "bench", "sql", "tests"}
_LINK = re.compile(r"\]\(([^)\s#]+)")
_BLOCK = re.compile(r"^(```.*?^```|#+ [^\n]+)", re.MULTILINE | re.DOTALL)
# Syntax of Markdown: fences, rules of tables, targets of links, and emphasis.
_MARKUP = re.compile(r"^```\w*|^\|[-|]+$|\]\([^)]*\)|[*`\[|]", re.MULTILINE)
_INDEX = Path("docs/README.md")
_GROUP = re.compile(r"^\| (\w+) \| (.*\]\(.*) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A heading and the text below it. `page` and `anchor` are where it is served."""

    page: str
    title: str
    level: int
    heading: str
    anchor: str
    text: str


def markdown() -> MarkdownIt:
    """Return a parser that shows HTML as text. Wide tables and code scroll, also by the keyboard."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    inline = Markup("<code>{}</code>")
    code = Markup('<pre tabindex="0"><code>{}</code></pre>\n')
    rules: dict[str, Callable[..., str]] = {
        "table_open": lambda *_: '<div class="table" tabindex="0" role="group" aria-label="Table"><table>',
        "table_close": lambda *_: "</table></div>",
        # Lists without spaces, such as defaults of settings, may break.
        "code_inline": lambda tokens, place, *_: inline.format(
            Markup(",<wbr>").join(tokens[place].content.split(","))
        ),
        "fence": lambda tokens, place, *_: code.format(tokens[place].content),
    }
    parser.renderer.rules |= rules  # type: ignore[attr-defined]
    return parser


def address(path: str) -> str:
    """Return the path of a file of the checkout, relative to the root of the service."""
    if path == "openapi.yaml":
        return path
    inner = path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}"
    return f"docs/{inner.removesuffix('.md')}"


@functools.cache
def library() -> dict[str, Path]:
    """Return all files that can be requested, by address: README, guides, and what they link to."""
    found: dict[str, Path] = {}
    waiting = [Path("README.md"), *(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))]
    while waiting:
        path = waiting.pop()
        name = address(str(path))
        if name in found or path.parts[0] in {"..", "openapi.yaml", *_SOURCE} or not (ROOT / path).is_file():
            continue
        found[name] = path
        if path.suffix == ".md":
            targets = _LINK.findall(_text(path))
            waiting += [_resolved(path, target) for target in targets if "://" not in target]
    return found


@functools.cache
def groups() -> dict[str, dict[str, str]]:
    """Return the guides in the order of the index's table: by row, titles by address."""
    found: dict[str, dict[str, str]] = {}
    for row, cells in _GROUP.findall(_text(_INDEX)):
        linked = [address(str(_resolved(_INDEX, target))) for target in _LINK.findall(cells)]
        guides = [name for name in linked if name in library() and library()[name].suffix == ".md"]
        found[row] = {name: sections(name)[0].heading for name in guides}
    return found


@functools.cache
def sections(name: str) -> list[Section]:
    """Return the sections of a guide. Anchors are those of GitHub."""
    found: list[Section] = []
    heading, level, anchor, texts = "", 1, "", [""]
    taken: Counter[str] = Counter()
    for block in [*_BLOCK.split(_text(library()[name])), "# "]:
        if not block.startswith("#"):
            texts.append(_MARKUP.sub("", block))
            continue
        if heading:
            title = found[0].heading if found else heading
            found.append(Section(name, title, level, heading, anchor, "".join(texts)))
        hashes, _, heading = block.replace("`", "").partition(" ")
        slug = re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")
        anchor = f"{slug}-{taken[slug]}" if taken[slug] else slug
        taken[slug] += 1
        level, texts = len(hashes), []
    return found


def html(name: str, root: str) -> Markup:
    """Render the guide at an address, without its title."""
    parser, path = markdown(), library()[name]
    tokens = parser.parse(_text(path))
    headings = (token for token in tokens if token.type == "heading_open")
    for token, section in zip(headings, sections(name), strict=True):
        token.attrSet("id", section.anchor)
    for token in tokens:
        for inline in token.children or ():
            _lead_to_page(inline, path, root)
    rendered = parser.renderer.render(tokens[3:], parser.options, {})
    return Markup(rendered)  # noqa: S704 (our own files)


def _lead_to_page(token: Token, document: Path, root: str) -> None:
    """Rewrite a link to a file into one to its address. Remove the target of a link to the source code."""
    name = {"link_open": "href", "image": "src"}.get(token.type)
    if name is None or "://" in (target := str(token.attrs[name])):
        return
    path, separator, anchor = target.partition("#")
    served = address(str(_resolved(document, path))) if path else ""
    if served in {"", "openapi.yaml", *library()}:
        token.attrs[name] = (root + served if served else "") + separator + anchor
    else:
        token.attrs = {}
    if name == "src":
        token.attrs["loading"] = "lazy"


def _text(path: Path) -> str:
    return re.sub(r"<!--.*?-->\n?", "", (ROOT / path).read_text(encoding="utf-8"))


def _resolved(document: Path, target: str) -> Path:
    return Path(normpath(document.parent / target))
