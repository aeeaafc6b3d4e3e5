"""The requests that pages of unlisted origins can make a browser send (W3C Fetch Metadata)."""

import re
from pathlib import Path

import pytest

from tests.support.answers import DIALECT
from tests.support.cases import cases
from tests.support.services import at
from tests.support.users import PASSWORD

EVIL = "https://evil.example"
FORM = "application/x-www-form-urlencoded"
AUTH = Path(__file__).parents[2] / "auth"


def fetch_headers(mode="no-cors", dest="empty", site="cross-site", **others):
    """The headers of a request that a page of another site makes a browser send."""
    names = {name.replace("_", "-"): value for name, value in others.items()}
    return {"Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest, "Sec-Fetch-Site": site} | names


FOREIGN = {
    "image": fetch_headers(dest="image"),
    "script": fetch_headers(dest="script"),
    "of a sibling": fetch_headers(dest="image", site="same-site"),
    "frame": fetch_headers("navigate", "iframe"),
    "object": fetch_headers("navigate", "object"),
    "fetch": fetch_headers("cors", Origin=EVIL),
    "fetch of a sandbox": fetch_headers("cors", Origin="null"),
    "fetch of an old browser": {"Origin": EVIL},
    "prefetch": fetch_headers(Sec_Purpose="prefetch"),
    "speculation": fetch_headers("navigate", "document", "none", Sec_Purpose="prefetch"),
    "prerendering": fetch_headers("navigate", "document", "none", Sec_Purpose="prefetch;prerender"),
    "unknown": {"Sec-Fetch-Site": "elsewhere"},
    "upper case": {"Sec-Fetch-Site": "SAME-ORIGIN"},
    "two sites": {"Sec-Fetch-Site": "same-origin, cross-site"},
    "empty": {"Sec-Fetch-Site": ""},
}
FORMS = {
    "form": fetch_headers("navigate", "document", Origin=EVIL),
    "form of a sandbox": fetch_headers("navigate", "document", Origin="null"),
    "form of an old browser": {"Origin": EVIL},
}
PAGES = ["/authorize?provider=x", "/callback?state=x", "/verify?token=x&type=signup", "/link-identity?flow=x"]
PAGES += [f"/oauth/{name}" for name in ("authorize", "continue", "logout")] + ["/sign-in", "/account", "/"]


def is_refused(answer):
    return (answer.status_code, answer.json["error_code"]) == (403, "origin_not_allowed")


@pytest.fixture
def strict(make_app):
    """A client of a service of which each limit is one request an hour."""
    names = ("LINKS", "AUTHORIZE", "LOGIN", "VERIFY", "LOGOUT", "RECOVER", "SIGNUP")
    changes = {f"AUTH_RATE_LIMIT_{name}": "1 per hour" for name in names}
    return make_app(
        AUTH_RATE_LIMITS_ENABLED="true",
        AUTH_BASE_URL="https://auth.example.com",
        AUTH_JWT_ISSUER="http://localhost:8000",
        AUTH_SITE_URL="https://app.example.com",
        **changes,
    ).test_client()


@pytest.mark.parametrize("kind", FOREIGN)
def test_page_of_another_site_uses_up_no_limit(strict, database, kind):
    for path in (*PAGES, "/user", "/nothing", "/static/page.css"):
        assert is_refused(strict.get(path, headers=FOREIGN[kind]))
    for path in (
        "/token?grant_type=password",
        "/passkeys/authentication/options",
        "/recover",
        "/otp",
        "/signup",
    ):
        assert is_refused(strict.post(path, headers=FOREIGN[kind]))
    assert database.count("request_counts") == 0
    assert database.count("audit_log") == 0


@pytest.mark.parametrize("kind", FORMS)
def test_form_of_another_site_uses_up_no_limit(strict, database, alice, kind):
    fields = {"email": alice.email, "password": PASSWORD, "token": "x", "type": "signup", "flow": "x"}
    for path in ("/sign-in", "/sign-up", "/verify", "/link-identity", "/preferences", "/introspect"):
        assert is_refused(strict.post(path, data=fields, headers=FORMS[kind]))
    assert (database.count("request_counts"), database.count("sessions")) == (0, 0)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "same-origin"])
def test_page_of_another_site_opens_a_page_of_ours_as_the_top_window(strict, database, site):
    headers = fetch_headers("navigate", "document", site)
    for number, path in enumerate(PAGES):
        place = at(f"192.0.2.{number}")
        answer = strict.get(path, headers=headers | {"Accept": "text/html"}, **place)
        assert (answer.status_code == 429, answer.is_json) == (False, False), path


def test_providers_and_applications_send_their_forms_here(strict):
    for number, kind in enumerate(FORMS):
        for path in ("/callback", "/providers/x/callback", "/oauth/authorize", "/oauth/logout"):
            place = at(f"2001:db8:{number}:{len(path)}::1")
            answer = strict.post(path, data={"state": "x"}, headers=FORMS[kind], **place)
            # The form of no client is read, and refused as such.
            status = 400 if path == "/oauth/authorize" else 303
            assert answer.status_code == status, (path, answer.text)
            assert "origin_not_allowed" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "https://app.example.com"},
        {"Sec-Fetch-Mode": "cors"},
        fetch_headers("cors", site="same-site", Origin="https://app.example.com"),
        fetch_headers("cors", site="same-origin"),
    ],
    ids=str,
)
def test_programs_and_pages_of_named_origins_are_served(strict, headers):
    assert strict.post("/recover", json={"email": "dave@example.com"}, headers=headers).status_code == 200


def test_forward_authentication_is_judged_by_its_token(strict, alice):
    """A proxy asks with the headers of the browser's request to an application."""
    token = alice.sign_in().authorization
    for headers in FOREIGN.values():
        assert strict.get("/user", headers=headers | token).status_code == 200
        basic = {"Authorization": "Basic eDp5"}
        assert is_refused(strict.get("/user", headers=headers | basic))


@cases("content_type", [None, "text/plain", FORM, "multipart/form-data; boundary=x"])
@cases("body", [b"", b'{"email": "dave@example.com"}'])
def test_json_that_is_not_called_json_uses_up_no_limit(strict, database, content_type, body):
    for path in (
        "/token?grant_type=password",
        "/passkeys/authentication/options",
        "/recover",
        "/signup",
        "/otp",
    ):
        assert strict.post(path, data=body, content_type=content_type).status_code == 415
    assert database.count("request_counts") == 0


def test_call_with_credentials_needs_no_content_type_without_a_body(strict, alice, service_role):
    session = alice.sign_in()
    assert strict.post("/logout?scope=others", headers=session.authorization).status_code == 200
    path = f"/admin/users/{alice.id}/logout"
    assert strict.post(path, headers=service_role).status_code == 200


def test_call_of_a_supabase_client_needs_no_content_type_without_a_body(strict, database):
    """supabase-swift names none. A page of another site cannot send the header, which its browser asks about."""
    path = "/auth/v1/passkeys/authentication/options"
    for headers in FOREIGN.values():
        assert is_refused(strict.post(path, headers=headers | DIALECT))
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "X-Supabase-Api-Version",
    }
    preflight = strict.options(path, headers={"Origin": EVIL} | asked)
    assert "Access-Control-Allow-Origin" not in preflight.headers
    assert strict.post(path, data=b"{}", headers=DIALECT, content_type=None).status_code == 415
    assert database.count("request_counts") == 0
    assert strict.post("/auth/v1/recover", headers=DIALECT).status_code == 400
    answer = strict.post(path, headers=DIALECT)
    assert (answer.status_code, answer.json.keys()) == (200, {"challenge_id", "options", "expires_at"})


READERS = {
    "web/edge.py": "refuses",
    "html/forms.py": "forgets what another site has filled in",
    "extensions/social/oauth.py": "asks before it signs a user out",
    "api/links.py": "distinguishes programs from browsers, which do not spend a link",
}


def test_only_the_edge_refuses_by_the_headers_of_browsers():
    pattern = re.compile(r"sec[-_](fetch|purpose)", re.IGNORECASE)
    readers = {str(path.relative_to(AUTH)) for path in AUTH.rglob("*.py") if pattern.search(path.read_text())}
    assert readers == READERS.keys()
