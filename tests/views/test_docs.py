"""GET /docs: the contract, rendered from files that the service ships."""

import hashlib
import re

# The bundle of npm's redoc@2.5.4, unchanged.
SHA256 = "dcaf76612bc4a3fbcc923a8966dee2f6146a5f32e5ce1b6f02dd60cbbf89500b"


def test_page_loads_only_files_of_the_service(client):
    page = client.get("/docs")
    assert (page.status_code, page.mimetype) == (200, "text/html")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert loaded == ["static/docs.css", "static/redoc/redoc.standalone.js", "static/docs.js", "openapi.yaml"]
    for path in loaded:
        assert client.get(f"/{path}").status_code == 200
        assert client.get(f"/auth/v1/{path}").status_code == 200
    parts = (part.strip().split(" ", 1) for part in page.headers["Content-Security-Policy"].split(";"))
    policy = dict(parts)
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert not re.search("http|[*]", " ".join(policy.values()))
    # Other pages do not load the renderer.
    assert "redoc" not in client.get("/").text


def test_renderer_is_the_pinned_release_with_its_licence(client):
    assert hashlib.sha256(client.get("/static/redoc/redoc.standalone.js").data).hexdigest() == SHA256
    assert "MIT License" in client.get("/static/redoc/LICENSE.txt").text
