"""The pages for signing in and up, without a browser: every form, and every way in which it fails."""

import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.cast import PASSWORD
from tests.support.links import CHALLENGE, SITE, VERIFIER, later, press
from tests.support.pages import Visitor

APPLICATION = "https://app.example.com/signed-in"
APP = {"AUTH_REDIRECT_ALLOW_LIST": "https://app.example.com/**"}
WITH_APPLICATION = urlencode({"redirect_to": APPLICATION, "code_challenge": CHALLENGE})


@pytest.fixture
def visitor(make_app) -> Visitor:
    return Visitor(make_app(**APP))


def trade(client, url: str):
    """Trade the code of a redirect to the application for tokens."""
    target, _, query = url.partition("?")
    assert target == APPLICATION
    code = parse_qs(query, strict_parsing=True)["code"][0]
    return client.post("/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER})


class TestPassword:
    def test_right_password_leads_to_the_account(self, visitor, alice):
        visitor.visit("/sign-in")
        assert visitor.submit(email=alice.email, password=PASSWORD).url == f"{SITE}/account"

    def test_application_gets_a_code_for_its_own_session(self, visitor, alice, client, database):
        visitor.visit(f"/sign-in?{WITH_APPLICATION}")
        url = visitor.submit(email=alice.email, password=PASSWORD).url
        tokens = trade(client, url).json
        assert tokens["user"]["email"] == alice.email
        assert database.value("SELECT count(*) FROM sessions WHERE opened_by IS NOT NULL") == 1
        assert database.value("SELECT count(*) FROM sessions") == 2

    def test_application_without_a_challenge_gets_tokens_in_the_fragment(self, visitor, alice):
        visitor.visit(f"/sign-in?{urlencode({'redirect_to': APPLICATION})}")
        url = visitor.submit(email=alice.email, password=PASSWORD).url
        assert url.startswith(f"{APPLICATION}#access_token=")

    @pytest.mark.parametrize("email", ["alice@example.com", "nobody@example.com"])
    def test_wrong_password_and_unknown_address_show_the_same_page(self, visitor, alice, email):
        visitor.visit("/sign-in")
        page = visitor.submit(email=email, password="Wrong-Horse-1")
        assert page.status == 403
        assert "That email and password don" in page.text
        assert f'value="{email}"' in page.text
        assert 'aria-invalid="true"' in page.text
        assert "Wrong-Horse-1" not in page.text
        assert visitor.session_cookie is None

    def test_banned_user_is_told_so(self, visitor, alice, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        visitor.visit("/sign-in")
        assert "This account is blocked." in visitor.submit(email=alice.email, password=PASSWORD).text

    def test_unconfirmed_address_is_asked_for_its_code_or_another_one(self, visitor, app, outbox, database):
        email = "dave@example.com"
        app.test_client().post("/signup", json={"email": email, "password": PASSWORD})
        visitor.visit(f"/sign-in?{WITH_APPLICATION}")
        assert "sign-up/code" not in visitor.submit(email=email, password="Wrong-Horse-1").text
        page = visitor.submit(email=email, password=PASSWORD)
        assert (page.status, "Confirm your email address first" in page.text) == (403, True)
        later(database, mins=2)
        visitor.press("sign-up/code")
        assert len(outbox.sent(email)) == 2
        assert visitor.press("sign-up/verify", code=outbox.last(email).code).url.startswith(
            f"{APPLICATION}?code="
        )

    @pytest.mark.parametrize(
        ("email", "password"), [("alice", PASSWORD), ("alice@example.com", "a\0b"), ("", "")]
    )
    def test_malformed_fields_are_refused_with_a_sentence(self, visitor, email, password):
        visitor.visit("/sign-in")
        page = visitor.submit(email=email, password=password)
        assert page.status == 400
        assert 'role="alert"' in page.text

    def test_audit_log_and_event_tell_of_one_sign_in(self, visitor, alice, database):
        visitor.visit("/sign-in")
        visitor.submit(email=alice.email, password=PASSWORD)
        assert database.value("SELECT count(*) FROM audit_log WHERE action = 'signed_in'") == 1

    def test_refusal_is_in_the_audit_log(self, visitor, alice, database):
        visitor.visit("/sign-in")
        visitor.submit(email=alice.email, password="Wrong-Horse-1")
        row = database.one("SELECT action, reason, user_id FROM audit_log WHERE reason IS NOT NULL")
        assert row == ("sign_in_refused", "invalid_credentials", alice.id)


class TestSession:
    @pytest.fixture
    def signed_in(self, visitor, alice) -> Visitor:
        visitor.visit("/sign-in")
        visitor.submit(email=alice.email, password=PASSWORD)
        return visitor

    def test_cookie_is_stored_as_a_hash_and_kept_from_scripts_and_other_sites(self, signed_in, database):
        cookie = signed_in.session_cookie
        assert cookie
        assert re.fullmatch(r"[\w-]{43}", cookie.value)
        assert (cookie.http_only, cookie.same_site, cookie.path) == (True, "lax", "/")
        assert cookie.value not in str(database.everything())

    def test_cookie_is_bound_to_the_host_over_tls(self, make_app, alice):
        app = make_app(AUTH_BASE_URL="https://auth.example.com")
        visitor = Visitor(app, "https://auth.example.com")
        visitor.visit("/sign-in")
        visitor.submit(email=alice.email, password=PASSWORD)
        cookie = visitor.cookie("__Host-latchkey")
        assert cookie
        assert cookie.secure

    def test_planted_cookie_is_replaced_at_the_sign_in(self, visitor, alice):
        visitor.visit("/sign-in")
        visitor.plant("latchkey", "a" * 43)
        visitor.visit("/sign-in")
        visitor.submit(email=alice.email, password=PASSWORD)
        assert visitor.session_cookie
        assert visitor.session_cookie.value != "a" * 43

    def test_signed_in_browser_is_asked_before_it_continues(self, signed_in, client):
        page = signed_in.visit(f"/sign-in?{WITH_APPLICATION}")
        assert "Continue as" in page.text
        assert trade(client, signed_in.submit().url).status_code == 200

    def test_application_gets_no_newer_proof_than_the_browser_has(self, signed_in, client, database):
        database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
        signed_in.visit(f"/sign-in?{WITH_APPLICATION}")
        tokens = trade(client, signed_in.submit().url).json
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        for body in ({"email": "mallory@example.com"}, {"password": "New-Horse-22"}):
            response = client.put("/user", json=body, headers=headers)
            assert response.json["error_code"] == "reauthentication_needed"
        assert client.delete("/user", headers=headers).json["error_code"] == "reauthentication_needed"
        proof = {"current_password": PASSWORD}
        assert client.post("/reauthenticate", json=proof, headers=headers).status_code == 200
        assert client.delete("/user", headers=headers).status_code == 200

    def test_other_account_ends_the_session(self, signed_in, database):
        signed_in.visit(f"/sign-in?{WITH_APPLICATION}")
        page = signed_in.submit(number=1)
        assert page.url.startswith(f"{SITE}/sign-in?redirect_to=")
        assert signed_in.session_cookie is None
        assert database.value("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == 0

    def test_signing_out_ends_the_session_of_the_application(self, signed_in, client):
        signed_in.visit(f"/sign-in?{WITH_APPLICATION}")
        tokens = trade(client, signed_in.submit().url).json
        signed_in.visit(f"/sign-in?{WITH_APPLICATION}")
        signed_in.submit(number=1)
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert client.get("/user", headers=headers).json["error_code"] == "session_not_found"

    def test_signing_out_voids_a_code_that_was_not_traded(self, signed_in, client):
        signed_in.visit(f"/sign-in?{WITH_APPLICATION}")
        url = signed_in.submit().url
        signed_in.visit(f"/sign-in?{WITH_APPLICATION}")
        signed_in.submit(number=1)
        assert trade(client, url).json["error_code"] == "flow_state_not_found"

    def test_ended_session_is_no_longer_signed_in(self, signed_in, database):
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
        assert signed_in.visit("/new-password").url == f"{SITE}/sign-in?error_code=session_expired"
        assert "Your session has ended." in signed_in.page.text


class TestOtherSites:
    @pytest.mark.parametrize(
        "url", ["https://evil.example/", "//evil.example", "javascript:alert(1)", f"{SITE}.evil.example/"]
    )
    def test_other_targets_are_replaced_by_the_site(self, visitor, alice, url):
        visitor.visit(f"/sign-in?{urlencode({'redirect_to': url})}")
        assert "evil" not in visitor.page.headers["Content-Security-Policy"]
        assert urlsplit(visitor.submit(email=alice.email, password=PASSWORD).url).netloc == "localhost:8000"

    def test_link_with_an_invalid_code_challenge_does_not_lead_to_an_application(self, client, alice, outbox):
        back = f"{SITE}/sign-in?{urlencode({'redirect_to': APPLICATION, 'code_challenge': chr(0)})}"
        client.post("/magiclink", json={"email": alice.email, "redirect_to": back})
        response = press(client, "magiclink", outbox.last(alice.email).token)
        assert (response.status_code, response.location) == (303, f"{SITE}/account")

    def test_pages_of_ours_get_no_tokens(self, visitor, alice):
        visitor.visit(f"/sign-in?{urlencode({'redirect_to': f'{SITE}/sign-in?redirect_to=x'})}")
        assert visitor.submit(email=alice.email, password=PASSWORD).url == f"{SITE}/account"

    def test_form_of_another_site_is_refused(self, visitor, alice, database):
        visitor.visit("/sign-in")
        fields = visitor.page.forms[0].fields | {"email": alice.email, "password": PASSWORD}
        visitor.be_at("https://evil.example/")
        page = visitor.post(f"{SITE}/sign-in", fields)
        assert page.status == 403
        assert database.value("SELECT count(*) FROM sessions") == 0

    def test_form_without_the_browsers_own_token_is_refused(self, visitor, alice, database):
        visitor.visit("/sign-in")
        for token in ("", "0" * 64):
            page = visitor.submit(email=alice.email, password=PASSWORD, form_token=token)
            assert page.status == 403
        assert database.value("SELECT count(*) FROM sessions") == 0

    @pytest.mark.parametrize(
        "path", ["/sign-in", "/forgot-password", "/", "/verify?token=x&type=signup", "/verify", "/nowhere"]
    )
    def test_no_page_may_be_framed_or_read_by_others(self, client, path):
        headers = client.get(path, headers={"Accept": "text/html"}).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers

    @pytest.mark.parametrize("path", ["/sign-in", "/sign-up", "/forgot-password"])
    def test_no_script_of_another_site_may_post_to_a_page(self, client, path):
        preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        assert "Access-Control-Allow-Origin" not in client.options(path, headers=preflight).headers
