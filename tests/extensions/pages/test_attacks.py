"""Attempts of other sites, networks and curious visitors on the pages."""

import re
from urllib.parse import urlsplit

import pytest

from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.links import OTHER_PHONE, PHONE, SITE, path
from tests.support.pages import Visitor, unsigned
from tests.support.users import PASSWORD

NOBODY = "anne@example.com"
BROWSER = {"Accept": "text/html"}
# The pages that ask for a code, and the actions that send another one.
PAGES = ["sign-in", "sign-up", "forgot-password"]
AGAIN = ["sign-in/code", "sign-up/code", "forgot-password"]


class TestEnumeration:
    @pytest.mark.parametrize(
        ("start", "action", "fields"),
        [
            ("/sign-in", "sign-in", {"password": "Wrong-Horse-1"}),
            ("/sign-in", "sign-in/code", {"password": ""}),
            ("/sign-up", "sign-up", {"password": PASSWORD}),
            ("/forgot-password", "forgot-password", {}),
            *(("/sign-in", f"{page}/verify", {"code": "123456"}) for page in PAGES),
            *(("/sign-in", action, {"page": "sign-in"}) for action in AGAIN),
        ],
    )
    @pytest.mark.parametrize("user_address", ["alice@example.com", PHONE])
    def test_known_and_unknown_addresses_get_one_page_for_the_same_work(
        self, app, parts, hashes, alice, database, user_address, start, action, fields
    ):
        database.run("UPDATE users SET phone = %(phone)s, phone_confirmed_at = now()", phone=PHONE)
        results = []
        for address in (user_address, NOBODY if "@" in user_address else OTHER_PHONE):
            visitor = Visitor(app)
            visitor.visit(start)
            address_fields = (
                {"typed": visitor.typed(address)} if fields.keys() & {"code", "page"} else {"email": address}
            )
            statements, before = statements_run(), hashes.count
            page = visitor.send(f"/{action}", **address_fields, **fields)
            work = (statements_run() - statements, hashes.count - before)
            html = re.sub("<bdi.*?</bdi>", "", page.text).replace(address, "")
            text = re.sub(r'form_token" value="\w+"|typed(=|" value=")[0-9a-f-]{36}', "", html)
            cookie_names = sorted(cookie.name for cookie in visitor.cookies)
            results.append((page.status, work, text, page.url.partition("?")[0], cookie_names))
        assert results[0] == results[1]

    @cases("page", PAGES)
    @cases("typed", ["", "x", "\0", "00000000-0000-4000-8000-000000000000", "x" * 5000])
    def test_page_of_a_code_without_an_address_leads_to_its_start(self, visitor, page, typed):
        visitor.visit("/sign-in")
        answers = [visitor.send(f"/{page}/verify", typed=typed, code="123456")]
        if typed != "\0":
            answers.append(visitor.visit(f"/{page}/code?typed={typed}"))
        query = "?error_code=insufficient_permissions"
        assert {unsigned(answer) for answer in answers} == {f"{SITE}/{page}{query}"}


class TestRedirects:
    @cases(
        "back", ["//evil.example", "//evil", "/\\evil.example", "https://evil.example/", "/x//evil.example"]
    )
    def test_choice_of_a_language_leads_to_no_other_site(self, visitor, back):
        visitor.visit("/sign-in")
        page = visitor.send("/preferences", language="de", back=back)
        assert [urlsplit(url).netloc for url in page.trail] == ["localhost:8000"] * len(page.trail)

    @cases("next_page", ["//evil.example", "https://evil.example", "../../evil"])
    def test_proof_leads_to_known_pages_only(self, app, alice, next_page):
        visitor = Visitor(app).signed_in_as(alice)
        assert "evil" not in visitor.visit(f"/account/confirm?next={next_page}").text
        page = visitor.send("/account/confirm", current_password=PASSWORD, next=next_page)
        assert page.url == f"{SITE}/account"


class TestForms:
    def test_token_of_another_browser_is_refused(self, app, visitor, alice, database):
        """Login CSRF: the attacker's own form signs the visitor in as the attacker."""
        attacker = Visitor(app)
        attacker.visit("/sign-in")
        form = attacker.page.forms[0].fields | {"email": alice.email, "password": PASSWORD}
        visitor.visit("/sign-in")
        assert visitor.post(f"{SITE}/sign-in", form).status == 403
        assert database.count("sessions") == 0

    def test_form_from_before_the_sign_in_does_not_act_but_leads_on(self, visitor, alice, database):
        visitor.visit("/sign-in")
        form = visitor.page.forms[0].fields | {"email": alice.email, "password": PASSWORD}
        visitor.signed_in_as(alice)
        before = database.everything()
        fields = {"form_token": form["form_token"], "scope": "global"}
        assert visitor.post(f"{SITE}/sign-out", fields).status == 403
        assert database.everything() == before
        page = visitor.post(f"{SITE}/sign-in", form)
        assert (page.status, "Continue as" in page.text) == (403, True)
        assert visitor.press("sign-in/continue").url == f"{SITE}/account"
        # Browsers do not send the cookie with a form of another site, but would forget it if told so.
        visitor.be_at("https://evil.example/")
        assert visitor.post(f"{SITE}/account/name", {"name": "Al"}).status == 403
        assert visitor.visit(f"{SITE}/account").url == f"{SITE}/account"

    @cases(
        ("fields", "status"),
        [({"password": "x" * 17 * 1024}, 413), ({f"x{number}": "x" for number in range(100)}, 400)],
    )
    def test_form_that_is_too_long_or_wide_is_not_shown_again(self, visitor, fields, status):
        visitor.visit("/sign-in")
        page = visitor.send("/sign-in", email=NOBODY, **fields)
        assert (page.status, NOBODY in page.text) == (status, False)

    def test_form_of_another_content_type_is_refused_by_a_page(self, client):
        page = client.post("/sign-in", data={"x": "x"}, content_type="multipart/form-data", headers=BROWSER)
        assert (page.status_code, page.mimetype) == (415, "text/html")


def test_every_cookie_is_bound_to_the_host_and_kept_from_scripts(make_app, alice):
    origin = "https://auth.example.com"
    visitor = Visitor(make_app(AUTH_BASE_URL=origin), origin)
    visitor.visit("/sign-in")
    visitor.press("sign-in/code", email=alice.email)
    visitor.visit("/sign-in")
    visitor.send("/preferences", language="en", theme="dark", back="/sign-in")
    visitor.press("sign-in", email=alice.email, password=PASSWORD)
    assert len(visitor.cookies) == 7
    for cookie in visitor.cookies:
        assert cookie.name.startswith("__Host-latchkey")
        assert (cookie.secure, cookie.http_only, cookie.same_site, cookie.path) == (True, True, "lax", "/")


def test_secrets_of_a_link_are_in_no_url_after_its_page(visitor, alice, client, outbox):
    client.post("/recover", json={"email": alice.email})
    token = outbox.last(alice.email).token
    visitor.visit(path("recovery", token))
    assert visitor.page.headers["Referrer-Policy"] == "no-referrer"
    assert "no-store" in visitor.page.headers["Cache-Control"]
    visitor.submit()
    visitor.submit(password="Fresh-Horse-2")
    assert [url for _method, url, _headers in visitor.requests if token in url] == [visitor.requests[0][1]]
