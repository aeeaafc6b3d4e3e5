"""GET /docs: the API and the guides, as pages that need nothing but this service."""

import gzip
import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest

from auth.extensions.docs import guides
from tests.source.test_contract import CONTRACT, OPERATIONS

GZIP = {"Accept-Encoding": "gzip"}
LARGEST = 300_000


class Links(HTMLParser):
    """The ids of a page, and the targets of its links, pictures, styles and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.targets += [attributes[name] for name in ("href", "src", "action") if name in attributes]
        is_loaded = tag in ("link", "script", "img")
        self.loaded += [attributes[name] for name in ("href", "src") if is_loaded and name in attributes]


def test_api_page_is_small_and_loads_only_files_of_the_service(client):
    page = client.get("/docs/api", headers=GZIP)
    assert (page.status_code, page.mimetype, page.content_encoding) == (200, "text/html", "gzip")
    html = gzip.decompress(page.data).decode()
    assert client.get("/docs/api").text == html
    loaded = [client.get(urljoin("/docs/api", path), headers=GZIP) for path in Links(html).loaded]
    assert [answer.status_code for answer in loaded] == [200] * 5
    assert sum(len(answer.data) for answer in [page, *loaded]) < LARGEST
    parts = (part.strip().split(" ", 1) for part in page.headers["Content-Security-Policy"].split(";"))
    policy = dict(parts)
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert not re.search("http|[*]|unsafe|data:", " ".join(policy.values()))
    assert not re.search(r"<style|\bstyle=|<script>|\bon\w+=", html)


def test_api_page_shows_each_operation_with_its_answers_and_each_schema(client):
    page = client.get("/docs/api").text
    ids = Links(page).ids
    assert len(set(ids)) == len(ids)
    schemas = {f"schema-{name}" for name in CONTRACT["components"]["schemas"]}
    assert {*OPERATIONS, *schemas} - set(ids) == set()
    for name, operation in OPERATIONS.items():
        article = page.partition(f'<article id="{name}"')[2].partition("</article>")[0]
        assert re.findall(r"<dt>(\d+)</dt>", article) == [str(status) for status in operation.responses()]
        assert operation.path in article


def test_links_of_all_pages_lead_to_a_page_and_a_heading(client):
    pages: dict[str, Links] = {}
    files: set[str] = set()
    waiting = ["/docs"]
    while waiting:
        url = waiting.pop()
        if url in pages or url in files:
            continue
        answer = client.get(url)
        assert answer.status_code == 200, url
        if answer.mimetype != "text/html":
            files.add(url)
            continue
        pages[url] = Links(answer.text)
        inside = [urljoin(url, target) for target in pages[url].targets if "://" not in target]
        waiting += [target.partition("#")[0] for target in inside]
    documents = {
        guides.address(str(path.relative_to(guides.ROOT))) for path in (guides.ROOT / "docs").rglob("*.md")
    }
    assert {f"/{name}" for name in documents} - pages.keys() == set()
    assert {"/docs/files/deploy/nginx.conf", "/openapi.yaml"} <= files
    for url, page in pages.items():
        for target in page.targets:
            path, _, anchor = urljoin(url, target).partition("#")
            assert not anchor or "://" in target or anchor in pages[path].ids, (url, target)


def test_guide_shows_tables_code_and_pictures_below_any_prefix(client):
    page = client.get("/auth/v1/docs/console").text
    picture = urlsplit(urljoin("/auth/v1/docs/console", Links(page).loaded[-1])).path
    assert client.get(picture).mimetype in ("image/png", "image/webp")
    assert '<pre tabindex="0"><code>' in client.get("/docs/quick-start").text
    assert '<h2 id="where-it-runs">' in client.get("/docs/settings").text
    assert "<td><code>AUTH_BIND</code></td>" in client.get("/docs/settings").text
    example = client.get("/docs/files/examples/README")
    assert example.mimetype == "text/html"


def test_pages_have_the_theme_that_their_reader_chose(client):
    client.set_cookie("latchkey_theme", "dark")
    for path in ("/docs/api", "/docs/quick-start", "/docs?q=passkey"):
        assert '<html lang="en" data-theme="dark">' in client.get(path).text
    client.set_cookie("latchkey_theme", '"><script>')
    answer = client.get("/docs/api")
    assert '<html lang="en">' in answer.text
    assert "Cookie" in answer.vary


def test_only_what_guides_link_to_is_served_and_no_source_code(client):
    hidden = [
        "files/setup.cfg",
        "files/.env",
        "files/auth/web/errors.py",
        "files/../setup.cfg",
        "settings.md",
        "",
    ]
    hidden += ["%2e%2e/setup.cfg", "files/tests/conftest.py", "/etc/passwd", "files//etc/passwd"]
    assert [name for name in hidden if client.get(f"/docs/{name}").status_code != 404] == []
    assert "Page not found" in client.get("/docs/none", headers={"Accept": "text/html"}).text
    text = client.get("/docs/files/deploy/nginx.conf")
    assert (text.mimetype, "sandbox" in text.headers["Content-Security-Policy"]) == ("text/plain", True)
    # A link into the source code is only its text.
    assert "tests/" not in " ".join(Links(client.get("/docs/security").text).targets)


def test_search_finds_settings_error_codes_and_operations(client):
    def search(words: str) -> list[str]:
        page = client.get("/docs", query_string={"q": words}).text
        return Links(page.partition('<ul class="found">')[2].partition("<nav")[0]).targets

    assert "docs/settings#messages" in search("auth_smtp_url")
    assert any(target.startswith("docs/errors#") for target in search("otp_expired"))
    assert search("open a link")[0] == "docs/api#verify_link"
    text = client.get("/docs", query_string={"q": "<script>alert(1)</script>"}).text
    assert "Nothing found for “&lt;script&gt;alert(1)&lt;/script&gt;”" in text


def test_requests_can_be_tried_on_the_machine_of_a_developer_only(make_app, client):
    assert '<main id="main" data-try>' in client.get("/docs/api").text
    settings = {"AUTH_BASE_URL": "https://auth.example.com", "AUTH_SMTP_URL": "console"}
    page = make_app(**settings).test_client().get("/docs/api")
    assert "data-try" not in page.text
    assert "curl -X GET https://auth.example.com/health" in page.text
    assert "connect-src 'none'" in page.headers["Content-Security-Policy"]


def test_pages_write_the_url_of_the_service(make_app):
    client = make_app(AUTH_BASE_URL="http://localhost:8001").test_client()
    paths = [f"/{name}" for name, path in guides.library().items() if path.suffix == ".md"]
    for path in ("/docs", "/docs/api", "/docs?q=paste", *paths):
        page = client.get(path)
        assert (page.status_code, "//localhost:8000" in page.text) == (200, False), path
    assert "URL=http://localhost:8001\n" in client.get("/docs/quick-start").text


@pytest.mark.parametrize("prefix", ["", "/auth/v1"])
def test_documentation_opens_on_the_quick_start(client, prefix):
    home, guide = client.get(f"{prefix}/docs"), client.get(f"{prefix}/docs/quick-start")
    assert (home.status_code, home.mimetype) == (200, "text/html")
    headings = [re.findall("<h1.*?</h1>", page.text) for page in (home, guide, client.get("/docs/api"))]
    assert headings[0] == headings[1] != headings[2]
    for target in Links(home.text).targets:
        url = urljoin(f"{prefix}/docs", target)
        assert "://" in url or client.get(url).status_code == 200, target
