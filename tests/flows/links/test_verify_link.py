"""GET and POST /verify with a link: which requests spend it, for which type, and where it redirects."""

import re
from urllib.parse import urlencode

import pytest

from auth.html.forms import token_of
from tests.support.answers import A_SENTENCE, assert_error
from tests.support.cases import cases
from tests.support.links import (
    BROWSER,
    BY_LINK,
    EXPIRED,
    SITE,
    assert_dead,
    decline,
    follow,
    fragment,
    hand_in,
    later,
    own_form,
    path,
    press,
    send,
    tokens_for,
)
from tests.support.pages import Visitor

EFFECTS = (
    *("users", "identities", "sessions", "outbox"),
    *("authorization_codes", "known_networks", "one_time_tokens"),
)
INCOMPLETE = {
    "en": "This link is incomplete",
    "de": "Dieser Link ist unvollständig",
    "es": "Este enlace está incompleto",
    "fr": "Ce lien est incomplet",
    "zh": "此链接不完整",
}
CHANGED = {"message": "The new email address is confirmed", "type": "email_change"}
# In the user agents of programs that preview, check or prefetch links in chats and mails: some of each kind.
PREVIEWS = ["Twitterbot", "Slurp", "WhatsApp", "SafeLinks", "ms-office"]


@pytest.fixture(name="type")
def default_type():
    return "magiclink"


@pytest.fixture
def message(client, service_role, outbox, type):
    return send(type, client, service_role, outbox)


@pytest.fixture
def unspent(client, database, type, message):
    """Assert that the requests of a test changed nothing, and that the link works after them."""
    before = database.everything(*EFFECTS)
    yield
    assert database.everything(*EFFECTS) == before
    assert hand_in(client, type, message.token).status_code == 200


@pytest.mark.parametrize("type", BY_LINK)
class TestEachType:
    @pytest.mark.parametrize("open_link", [follow, press], ids=["program", "button of the page"])
    def test_program_or_button_is_redirected_and_signed_in_once(
        self, client, message, database, type, open_link
    ):
        sessions = database.count("sessions")
        response = open_link(client, type, message.token)
        assert fragment(response) == (CHANGED if type == "email_change" else tokens_for(type))
        assert database.count("sessions") == sessions + (type != "email_change")
        assert database.count("users", "email = %(to)s AND email_confirmed_at <= now()", to=message.to) == 1
        headers = response.headers["Cache-Control"], response.headers["Referrer-Policy"]
        assert headers == ("no-store", "no-referrer")
        before = database.everything(*EFFECTS)
        assert_dead(client, type, message.token)
        assert fragment(client.get("/auth/v1" + path(type, message.token))) == EXPIRED
        body = {"type": type, "token_hash": message.token}
        assert_error(client.post("/auth/v1/verify", json=body), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before

    def test_link_expires_after_its_lifetime(self, client, message, database, type):
        later(database, secs=(7 * 86_400 if type == "invite" else 3600) - 60)
        assert client.get(path(type, message.token), headers=BROWSER).status_code == 200
        later(database, secs=60)
        before = database.everything(*EFFECTS)
        assert_dead(client, type, message.token)
        assert client.get(path(type, message.token), headers=BROWSER).status_code == 403
        assert database.everything(*EFFECTS) == before

    @pytest.mark.usefixtures("unspent")
    def test_browser_gets_a_page_and_head_nothing(self, client, message, database, type):
        response = client.get(path(type, message.token), headers=BROWSER)
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert response.headers["Cache-Control"] == "no-store"
        assert message.to in response.text.replace("<wbr>", "")
        assert response.headers["Set-Cookie"].startswith("latchkey_form=")
        assert "access_token" not in response.text
        before = database.everything()
        for headers in ({}, BROWSER, {"User-Agent": "curl/8.5.0"}):
            response = client.head(path(type, message.token), headers=headers)
            assert (response.data, response.headers.get("Location")) == (b"", None)
        assert database.everything() == before

    def test_link_of_a_banned_user_does_not_sign_in(self, client, message, database, type):
        database.run("UPDATE users SET banned_until = 'infinity'")
        before = database.everything("users", "identities", "sessions", "outbox")
        response = fragment(follow(client, type, message.token))
        assert response == EXPIRED | {"error_code": "user_banned", "error_description": "User is banned"}
        assert hand_in(client, type, message.token).status_code == 403
        assert database.everything("users", "identities", "sessions", "outbox") == before


class TestRequestsThatDoNotSpendALink:
    @pytest.mark.usefixtures("unspent")
    @cases(
        "headers",
        [
            *({"User-Agent": f"Mozilla/5.0 (compatible; {name}/2.0)", "Accept": "*/*"} for name in PREVIEWS),
            {"Accept": "text/html"},
            {"Accept": "application/json, text/html;q=0.1"},
            {"Accept": "TEXT/HTML"},
            {"Sec-Fetch-Site": "none"},
            {"Sec-Fetch-Dest": "empty", "Accept": "*/*"},
            {"sec-fetch-user": "?1"},
            {"Purpose": "prefetch"},
            {"X-Purpose": "preview"},
            {"X-Moz": "prefetch"},
        ],
    )
    def test_preview_does_not_spend_the_link(self, client, message, headers):
        headers = {"User-Agent": "Mozilla/5.0"} | headers
        response = client.get(path("magiclink", message.token), headers=headers)
        assert (response.status_code, response.mimetype) == (200, "text/html")

    @pytest.mark.usefixtures("unspent")
    def test_browser_gets_a_403_page_for_a_dead_link(self, client, message):
        for type in ("magiclink", "signup", "recovery", "undo"):
            response = client.get(path(type, "x" * 43), headers=BROWSER)
            assert (response.status_code, response.mimetype) == (403, "text/html")
            assert message.to not in response.text

    @pytest.mark.usefixtures("unspent")
    @cases("locale", INCOMPLETE)
    def test_browser_is_told_that_a_damaged_link_is_incomplete(self, client, message, locale):
        whole_link, heading = path("magiclink", message.token), INCOMPLETE[locale]
        damaged_links = [
            *(
                whole_link.replace("&", "&amp;"),
                whole_link.replace("=", "=3D"),
                whole_link.replace("&type=magiclink", ""),
            ),
            *(
                whole_link[: -len("iclink")],
                whole_link.replace("&", "%26"),
                whole_link.partition("?")[0],
                f"{whole_link}.",
            ),
            *(path("nonsense", message.token), path("magiclink", ""), path("magiclink", message.token[:-1])),
            *(f"{whole_link}&type=magiclink", f"{whole_link}&token=x", whole_link.replace("type", "ty")),
        ]
        for link in damaged_links:
            response = client.get(link, headers=BROWSER | {"Accept-Language": locale})
            assert (response.status_code, response.mimetype) == (400, "text/html"), link
            assert f"<h1>{heading}</h1>" in response.text, link
            assert "X-Request-Id" not in response.text
            assert message.to not in response.text

    def test_browser_whose_former_session_ends_meanwhile_is_signed_in(
        self, app, alice, bob, client, service_role, outbox, database
    ):
        visitor = Visitor(app).with_session_of(alice)
        client.post("/magiclink", json={"email": bob.email})
        visitor.visit(path("magiclink", outbox.last(bob.email).token, redirect_to=f"{SITE}/account"))
        with database.locked("users", alice.id) as lock:
            future = lock.start(lambda: visitor.submit(number=0))
            database.run(
                "UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE user_id = %(id)s",
                id=alice.id,
            )
        assert future.result().status == 200
        assert bob.email in visitor.visit("/account").text

    @pytest.mark.usefixtures("unspent")
    def test_program_is_told_what_a_damaged_link_lacks(self, client, message):
        link = path("magiclink", message.token).replace("&", "&amp;")
        assert_error(client.get(link), 400, "validation_failed", details="type: is required")

    @pytest.mark.parametrize(
        ("settings", "spends"),
        [
            ({}, True),
            ({"AUTH_BASE_URL": "https://auth.example.com"}, False),
            ({"AUTH_BASE_URL": "https://auth.example.com", "AUTH_VERIFY_ON_GET": "programs"}, True),
            ({"AUTH_VERIFY_ON_GET": "never"}, False),
        ],
        ids=str,
    )
    def test_program_spends_links_on_this_machine_or_if_the_setting_allows_it(
        self, make_app, message, database, settings, spends
    ):
        client = make_app(**settings).test_client()
        before = database.everything(*EFFECTS)
        response = follow(client, "magiclink", message.token)
        assert response.status_code == (303 if spends else 200)
        if not spends:
            assert response.mimetype == "text/html"
            assert database.everything(*EFFECTS) == before
            assert hand_in(client, "magiclink", message.token).status_code == 200


@pytest.mark.usefixtures("unspent")
class TestInvalidLinks:
    @cases(
        "change",
        [
            *("x" * 43, "", "x", "x" * 44, "x" * 2000, "é" * 43, "' OR 1=1 --"),
            *(str.swapcase, lambda token: token + "=", lambda token: token[:-1], lambda token: " " + token),
        ],
    )
    def test_unknown_token_or_another_spelling_is_refused(self, client, message, change):
        token = change(message.token) if callable(change) else change
        assert fragment(follow(client, "magiclink", token)) == EXPIRED

    @cases(
        ("parameters", "details"),
        [
            ("type=magiclink", "token: is required"),
            ("token={}", "type: is required"),
            ("token={}&type=magiclink&token=x", "token: must be given once"),
            ("token={}&type=magiclink&type=x", "type: must be given once"),
            ("token={}&type=magiclink&redirect_to=x&redirect_to=x", "redirect_to: must be given once"),
            ("token=x%00&type=magiclink", A_SENTENCE),
            ("token={}&type=magiclink%00", A_SENTENCE),
            ("token={}&type=magiclink&redirect_to=x%00", A_SENTENCE),
            ("token_hash={}&type=magiclink", "token: is required"),
            ("type={}&token=magiclink&email=erin@example.com&token_hash={}&type=x", A_SENTENCE),
        ],
    )
    def test_invalid_query_or_form_is_400(self, client, message, parameters, details):
        query = parameters.replace("{}", message.token)
        assert_error(client.get(f"/verify?{query}"), 400, "validation_failed", details=details)
        form = f"{query}&{urlencode(own_form(client))}"
        response = client.post("/verify", data=form, content_type="application/x-www-form-urlencoded")
        assert_error(response, 400, "validation_failed", details=details)


class TestForm:
    @pytest.mark.usefixtures("unspent")
    @pytest.mark.parametrize(
        ("cookie", "form_token"),
        [
            *((None, None), (None, token_of("")), ("", token_of("")), ("x", token_of("x"))),
            *(("a" * 43, None), ("a" * 43, ""), ("a" * 43, "a" * 43)),
            *(("a" * 43, token_of("b" * 43)), (None, token_of("a" * 43))),
        ],
    )
    def test_form_without_the_token_of_its_cookie_is_refused(self, client, message, cookie, form_token):
        if cookie is not None:
            client.set_cookie("latchkey_form", cookie)
        form = {"token": message.token, "type": "magiclink"}
        form |= {"form_token": form_token} if form_token is not None else {}
        assert_error(client.post("/verify", data=form), 403, "insufficient_permissions")

    def test_browser_that_opened_the_page_may_send_its_form_from_any_tab(self, make_app, client, message):
        pages = [client.get(path("magiclink", message.token), headers=BROWSER) for _ in range(2)]
        cookie, other_cookie = (page.headers["Set-Cookie"] for page in pages)
        assert cookie == other_cookie
        assert re.fullmatch(r"latchkey_form=[\w-]{43}; HttpOnly; Path=/; SameSite=Lax", cookie)
        public_client = make_app(AUTH_BASE_URL="https://auth.example.com").test_client()
        cookie = public_client.get(path("magiclink", message.token), headers=BROWSER).headers["Set-Cookie"]
        assert re.fullmatch(r"__Host-latchkey_form=[\w-]{43}; Secure; HttpOnly; Path=/; SameSite=Lax", cookie)
        (form_token,) = re.findall('name="form_token" value="([0-9a-f]+)"', pages[0].text)
        form = {"token": message.token, "type": "magiclink", "form_token": form_token}
        assert fragment(client.post("/verify", data=form)) == tokens_for("magiclink")

    @pytest.mark.usefixtures("unspent")
    def test_fields_of_a_form_are_read_neither_from_the_query_nor_from_json(self, client, message):
        for response in (
            client.post(path("magiclink", message.token), data=own_form(client) | {"x": "1"}),
            client.post("/verify", json={"type": "magiclink", "token": message.token}),
            client.post(f"/verify?token_hash={message.token}", json={"type": "magiclink"}),
        ):
            assert_error(response, 400, "validation_failed", details=A_SENTENCE)


class TestMisplacedTokens:
    @pytest.mark.usefixtures("unspent")
    def test_token_of_a_link_is_refused_as_any_other_token(self, client, message):
        token = message.token
        assert client.get("/user", headers={"Authorization": f"Bearer {token}"}).status_code == 401
        for grant, body, status, error_code in (
            ("refresh_token", {"refresh_token": token}, 400, "refresh_token_not_found"),
            ("pkce", {"auth_code": token, "code_verifier": "x" * 43}, 404, "flow_state_not_found"),
            ("password", {"email": message.to, "password": token}, 401, "invalid_credentials"),
        ):
            assert_error(client.post(f"/token?grant_type={grant}", json=body), status, error_code)

    def test_access_token_and_refresh_token_are_refused_as_links(self, client, alice, database):
        session = alice.open_session()
        before = database.everything(*EFFECTS)
        for token in (session.access_token, session.refresh_token, session.id):
            for type in BY_LINK:
                assert fragment(follow(client, type, token)) == EXPIRED
        assert database.everything(*EFFECTS) == before

    def test_wrong_links_do_not_count_as_tries_of_the_code(self, client, message, database):
        for _ in range(6):
            assert fragment(follow(client, "magiclink", "x" * 43)) == EXPIRED
        assert database.count("failure_counts", "kind IN ('try', 'code')") == 0


class TestDecliningASignUp:
    @pytest.fixture(name="type")
    def signup(self):
        return "signup"

    def decline(self, client, token, type="signup"):
        return press(client, type, token, action="decline")

    def test_declining_deletes_the_sign_up_once(self, client, message, database):
        page = decline(client, "signup", message.token)
        assert (page.status_code, "was deleted" in page.text) == (200, True)
        tables = ("users", "identities", "one_time_tokens", "sessions")
        assert [database.count(table) for table in tables] == [0, 0, 0, 0]
        assert_dead(client, "signup", message.token)
        assert self.decline(client, message.token).status_code == 403

    def test_declining_needs_post(self, client, message, database):
        client.get(path("signup", message.token, action="decline"), headers=BROWSER)
        assert database.count("users") == 1
        assert fragment(follow(client, "signup", message.token, action="decline")) == tokens_for("signup")

    def test_declining_is_refused_without_the_token_after_confirmation_or_sign_in_and_after_an_hour(
        self, client, message, database
    ):
        for token in ("x" * 43, "", message.token[:-1], message.code):
            assert self.decline(client, token).status_code == 403
        for change in ("email_confirmed_at = now()", "last_sign_in_at = now(), email_confirmed_at = NULL"):
            database.run(f"UPDATE users SET {change}")
            assert self.decline(client, message.token).status_code == 403
        database.run("UPDATE users SET last_sign_in_at = NULL")
        later(database, secs=3600)
        assert self.decline(client, message.token).status_code == 403
        assert database.count("users") == 1

    @pytest.mark.usefixtures("unspent")
    @pytest.mark.parametrize("type", [type for type in BY_LINK if type != "signup"])
    def test_declining_is_refused_for_links_of_other_types(self, client, message, type):
        assert self.decline(client, message.token).status_code == 403
        assert self.decline(client, message.token, type).status_code == 403
