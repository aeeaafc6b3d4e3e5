"""GET and POST /verify with a link: which requests spend it, for which type, and where it redirects."""

import itertools
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from auth.web.forms import token_of
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, token_response
from tests.support.cases import cases
from tests.support.cast import PASSWORD, Session, session_of
from tests.support.links import (
    BROWSER,
    BY_LINK,
    EXPIRED,
    SITE,
    TYPES,
    assert_dead,
    assert_signs_in,
    counted,
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

EFFECTS = (
    "users",
    "identities",
    "sessions",
    "outbox",
    "authorization_codes",
    "known_networks",
    "one_time_tokens",
)
CHANGED = {"message": "The new email address is confirmed", "type": "email_change"}
# User agents of programs that preview, check or prefetch links in chats and mails.
PREVIEWS = [
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Slackbot 1.0 (+https://api.slack.com/robots)",
    "Slack-ImgProxy (+https://api.slack.com/robots)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "facebookexternalhit/1.1 Facebot Twitterbot/1.0",
    "Twitterbot/1.0",
    "WhatsApp/2.23.20.0",
    "TelegramBot (like TwitterBot)",
    "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
    "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
    "Mozilla/5.0 (compatible; MicrosoftPreview/2.0; +https://aka.ms/MicrosoftPreview)",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/8.0.2 Safari/600.2.5 (Applebot/0.1; +http://www.apple.com/go/applebot)",
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
    "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
    "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)",
    "Mozilla/5.0 (Linux; Android 7.0) AppleWebKit/537.36 (KHTML, like Gecko; Mediapartners-Google) Google-Read-Aloud",
    "Pinterest/0.2 (+https://www.pinterest.com/bot.html)",
    "Mozilla/5.0 (compatible; redditbot/1.0; +http://www.reddit.com/feedback)",
    "Iframely/1.3.1 (+https://iframely.com/docs/about)",
    "Mastodon/4.2.0 (http.rb/5.1.1; +https://mastodon.example/)",
    "Mozilla/5.0 (compatible; vkShare; +http://vk.com/dev/Share)",
    "Snapchat/10.77.5.59 (like Safari/604.1)",
    "Mozilla/5.0 (compatible; Embedly/0.2; +http://support.embed.ly/)",
    "Synapse (bot; +https://github.com/matrix-org/synapse)",
    "BarracudaCentral/1.0",
    "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
    "facebookexternalhit/1.1;line-poker/1.0",
    "Viber/13.3.0.15 (Windows 10)",
    "Mozilla/5.0 (compatible; kakaotalk-scrap/1.0; +https://devtalk.kakao.com/t/scrap/33984)",
    "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
]


def assert_untouched(client, database, before, type, token):
    """The database is unchanged, and the link still works."""
    assert database.everything(*EFFECTS) == before
    assert hand_in(client, type, token).status_code == 200


@pytest.mark.parametrize("type", BY_LINK)
class TestEachType:
    def test_get_by_a_program_redirects_to_the_site_and_signs_in(
        self, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        sessions = database.count("sessions")
        response = follow(client, type, message.token)
        assert fragment(response) == (CHANGED if type == "email_change" else tokens_for(type))
        assert database.count("sessions") == sessions + (type != "email_change")
        assert database.value(
            "SELECT email_confirmed_at FROM users WHERE email = %(email)s", email=message.to
        )
        assert (response.headers["Cache-Control"], response.headers["Referrer-Policy"]) == (
            "no-store",
            "no-referrer",
        )

    def test_button_of_the_page_redirects_to_the_site_and_signs_in(
        self, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        response = press(client, type, message.token)
        assert fragment(response) == (CHANGED if type == "email_change" else tokens_for(type))
        assert database.value(
            "SELECT email_confirmed_at FROM users WHERE email = %(email)s", email=message.to
        )

    def test_post_of_json_returns_the_token_response(self, client, service_role, outbox, type):
        message = send(type, client, service_role, outbox)
        response = hand_in(client, type, message.token)
        recent: dict[str, Any] = {"recent_changes": []} if type == "recovery" else {}
        assert (response.status_code, response.json) == (200, token_response(response.json["user"]) | recent)
        assert (response.json["user"]["email"], response.json["user"]["email_confirmed_at"]) == (
            message.to,
            A_TIMESTAMP,
        )
        session = session_of(client, response)
        assert session.get("/user").json == response.json["user"]
        assert session.refresh().status_code == 200

    def test_link_works_once(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        follow(client, type, message.token)
        before = database.everything(*EFFECTS)
        assert_dead(client, type, message.token)
        assert fragment(client.get("/auth/v1" + path(type, message.token))) == EXPIRED
        assert_error(
            client.post("/auth/v1/verify", json={"type": type, "token_hash": message.token}),
            403,
            "otp_expired",
        )
        assert database.everything(*EFFECTS) == before

    def test_link_expires_after_its_lifetime(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        lifetime = 7 * 86_400 if type == "invite" else 3600
        later(database, secs=lifetime - 10)
        assert client.get(path(type, message.token), headers=BROWSER).status_code == 200
        later(database, secs=10)
        before = database.everything(*EFFECTS)
        assert_dead(client, type, message.token)
        assert client.get(path(type, message.token), headers=BROWSER).status_code == 403
        assert database.everything(*EFFECTS) == before

    def test_link_is_refused_for_other_types(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        before = database.everything(*EFFECTS)
        accepted = (
            {type}
            | ({"email"} if type in ("signup", "magiclink", "recovery") else set())
            | ({"magiclink"} if type == "email" else set())
        )
        others = {
            *TYPES,
            "undo",
            "reauthentication",
            "sms_signup",
            "email_change_new",
            "nonsense",
            "",
            type.upper(),
            f" {type}",
        }
        attempts = (
            lambda other: fragment(follow(client, other, message.token)) == EXPIRED,
            lambda other: fragment(press(client, other, message.token)) == EXPIRED,
            lambda other: client.get(path(other, message.token), headers=BROWSER).status_code == 403,
            lambda other: hand_in(client, other, message.token).status_code in (400, 403),
        )
        for other, refused in zip(sorted(others - accepted), itertools.cycle(attempts), strict=False):
            assert refused(other), other
        assert_untouched(client, database, before, type, message.token)

    def test_browser_gets_a_page_and_does_not_spend_the_link(
        self, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        before = database.everything(*EFFECTS)
        response = client.get(path(type, message.token), headers=BROWSER)
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert response.headers["Cache-Control"] == "no-store"
        assert message.to in response.text
        assert response.headers["Set-Cookie"].startswith("latchkey_form=")
        assert "access_token" not in response.text
        assert_untouched(client, database, before, type, message.token)

    def test_head_does_not_spend_the_link(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        before = database.everything()
        for headers in ({}, BROWSER, {"User-Agent": "curl/8.5.0"}):
            response = client.head(path(type, message.token), headers=headers)
            assert (response.data, response.headers.get("Location")) == (b"", None)
        assert database.everything() == before
        assert_untouched(client, database, {table: before[table] for table in EFFECTS}, type, message.token)

    @pytest.mark.parametrize(
        "change",
        [{"email": "elsewhere@example.com"}, {"password": "Another-Horse-1"}, {"ban_duration": "1h"}],
    )
    def test_link_is_void_after_a_ban_or_a_change_of_email_or_password(
        self, client, service_role, outbox, database, type, change
    ):
        message = send(type, client, service_role, outbox)
        id = database.value("SELECT user_id FROM one_time_tokens")
        assert client.put(f"/admin/users/{id}", json=change, headers=service_role).status_code == 200
        client.put(f"/admin/users/{id}", json={"ban_duration": None}, headers=service_role)
        assert_dead(client, type, message.token)
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_link_is_void_after_deletion_of_its_user(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        id = database.value("SELECT user_id FROM one_time_tokens")
        assert client.delete(f"/admin/users/{id}", headers=service_role).status_code == 200
        assert_dead(client, type, message.token)

    def test_link_of_a_banned_user_does_not_sign_in(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        database.run("UPDATE users SET banned_until = 'infinity'")
        before = database.everything("users", "identities", "sessions", "outbox")
        response = fragment(follow(client, type, message.token))
        assert response == EXPIRED | {"error_code": "user_banned", "error_description": "User is banned"}
        assert hand_in(client, type, message.token).status_code == 403
        assert database.everything("users", "identities", "sessions", "outbox") == before


class TestRequestsThatDoNotSpendALink:
    @pytest.fixture
    def message(self, client, service_role, outbox):
        return send("magiclink", client, service_role, outbox)

    @pytest.fixture
    def assert_unspent(self, client, message, database):
        before = database.everything(*EFFECTS)

        def check():
            assert database.everything(*EFFECTS) == before

        yield check
        # The link still works.
        assert hand_in(client, "magiclink", message.token).status_code == 200

    @cases("user_agent", PREVIEWS)
    def test_preview_does_not_spend_the_link(self, client, message, assert_unspent, user_agent):
        response = client.get(
            path("magiclink", message.token), headers={"User-Agent": user_agent, "Accept": "*/*"}
        )
        assert "Location" not in response.headers
        assert_unspent()

    @cases(
        "headers",
        [
            {"Accept": "text/html"},
            {"Accept": "application/json, text/html;q=0.1"},
            {"Accept": "TEXT/HTML"},
            {"Sec-Fetch-Site": "none"},
            {"Sec-Fetch-Dest": "empty", "Accept": "*/*"},
            {"sec-fetch-user": "?1"},
            {"Sec-Purpose": "prefetch"},
            {"Sec-Purpose": "prefetch;prerender"},
            {"Purpose": "prefetch"},
            {"X-Purpose": "preview"},
            {"X-Moz": "prefetch"},
        ],
    )
    def test_browser_or_prefetch_does_not_spend_the_link(self, client, message, assert_unspent, headers):
        response = client.get(
            path("magiclink", message.token), headers={"User-Agent": "Mozilla/5.0"} | headers
        )
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert_unspent()

    @cases("method", ["OPTIONS", "PUT", "DELETE", "PATCH"])
    def test_other_method_does_not_spend_the_link(self, client, message, assert_unspent, method):
        assert "Location" not in client.open(path("magiclink", message.token), method=method).headers
        assert_unspent()

    def test_get_by_a_program_does_not_spend_the_link_when_the_setting_is_never(
        self, make_app, message, database
    ):
        client = make_app(AUTH_VERIFY_ON_GET="never").test_client()
        before = database.everything(*EFFECTS)
        response = follow(client, "magiclink", message.token)
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert database.everything(*EFFECTS) == before
        assert fragment(press(client, "magiclink", message.token)) == tokens_for("magiclink")

    def test_browser_gets_a_403_page_for_a_dead_link(self, client, message, database):
        before = database.everything(*EFFECTS)
        for type, token in (("magiclink", "x" * 43), ("nonsense", message.token), ("magiclink", "")):
            response = client.get(path(type, token), headers=BROWSER)
            assert (response.status_code, response.mimetype) == (403, "text/html")
            assert message.to not in response.text
        assert_untouched(client, database, before, "magiclink", message.token)

    @pytest.mark.parametrize(
        "user_agent",
        [
            "curl/8.5.0",
            "python-requests/2.32",
            "Go-http-client/2.0",
            "okhttp/4.12.0",
            "MyApp/1.0 CFNetwork/1485",
        ],
    )
    def test_get_by_a_program_spends_the_link(self, client, message, user_agent):
        response = client.get(
            path("magiclink", message.token), headers={"User-Agent": user_agent, "Accept": "*/*"}
        )
        assert fragment(response) == tokens_for("magiclink")

    def test_get_by_the_fetch_of_node_spends_the_link(self, client, message):
        headers = {"User-Agent": "node", "Accept": "*/*", "Accept-Language": "*", "Sec-Fetch-Mode": "cors"}
        response = client.get(path("magiclink", message.token), headers=headers)
        assert fragment(response) == tokens_for("magiclink")

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
        self, make_app, message, settings, spends
    ):
        response = follow(make_app(**settings).test_client(), "magiclink", message.token)
        assert response.status_code == (303 if spends else 200)


class TestForm:
    @pytest.fixture
    def message(self, client, service_role, outbox):
        return send("magiclink", client, service_role, outbox)

    @pytest.mark.parametrize(
        "site", ["cross-site", "same-site", "none", "SAME-ORIGIN", "same-origin, cross-site", ""]
    )
    def test_form_posted_from_another_site_is_refused(self, client, message, database, site):
        before = database.everything(*EFFECTS)
        response = client.post(
            "/verify", data={"token": message.token, "type": "magiclink"}, headers={"Sec-Fetch-Site": site}
        )
        assert_error(response, 403, "insufficient_permissions")
        assert "Location" not in response.headers
        assert_untouched(client, database, before, "magiclink", message.token)

    def test_form_without_fetch_metadata_is_accepted(self, client, message):
        form = own_form(client) | {"token": message.token, "type": "magiclink"}
        assert fragment(client.post("/verify", data=form)) == tokens_for("magiclink")

    @pytest.mark.parametrize(
        ("cookie", "form_token"),
        [
            (None, None),
            (None, token_of("")),
            ("", token_of("")),
            ("x", token_of("x")),
            ("a" * 43, None),
            ("a" * 43, ""),
            ("a" * 43, "a" * 43),
            ("a" * 43, token_of("b" * 43)),
            (None, token_of("a" * 43)),
        ],
    )
    def test_form_without_the_token_of_its_cookie_is_refused(
        self, client, message, database, cookie, form_token
    ):
        before = database.everything(*EFFECTS)
        if cookie is not None:
            client.set_cookie("latchkey_form", cookie)
        form = {"token": message.token, "type": "magiclink"}
        form |= {"form_token": form_token} if form_token is not None else {}
        assert_error(client.post("/verify", data=form), 403, "insufficient_permissions")
        assert_untouched(client, database, before, "magiclink", message.token)

    def test_browser_that_opened_the_page_may_send_its_form(self, client, message):
        page = client.get(path("magiclink", message.token), headers=BROWSER)
        (form_token,) = re.findall('name="form_token" value="([0-9a-f]+)"', page.text)
        cookie = page.headers["Set-Cookie"]
        assert re.fullmatch(r"latchkey_form=[\w-]{43}; HttpOnly; Path=/; SameSite=Lax", cookie)
        form = {"token": message.token, "type": "magiclink", "form_token": form_token}
        assert fragment(client.post("/verify", data=form)) == tokens_for("magiclink")

    def test_cookie_is_bound_to_the_host_and_to_tls(self, make_app, client, service_role, outbox):
        token = send("magiclink", client, service_role, outbox).token
        public = make_app(AUTH_BASE_URL="https://auth.example.com").test_client()
        cookie = public.get(path("magiclink", token), headers=BROWSER).headers["Set-Cookie"]
        assert re.fullmatch(r"__Host-latchkey_form=[\w-]{43}; Secure; HttpOnly; Path=/; SameSite=Lax", cookie)

    def test_tabs_share_a_cookie(self, client, message):
        pages = [client.get(path("magiclink", message.token), headers=BROWSER) for _ in range(2)]
        cookies = [page.headers["Set-Cookie"] for page in pages]
        assert cookies[0] == cookies[1]

    def test_form_fields_are_not_read_from_the_query(self, client, message, database):
        before = database.everything(*EFFECTS)
        assert_error(
            client.post(path("magiclink", message.token), data=own_form(client) | {"x": "1"}),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )
        assert_untouched(client, database, before, "magiclink", message.token)

    @cases(
        ("body", "details"),
        [
            ("type=magiclink", "token: is required"),
            ("token=x", "type: is required"),
            ("token=x&token=y&type=magiclink", "token: must be given once"),
            ("token=x&type=magiclink&type=recovery", "type: must be given once"),
            ("token=x&type=magiclink&redirect_to=x&redirect_to=y", "redirect_to: must be given once"),
            ("token=%00&type=magiclink", A_SENTENCE),
        ],
    )
    def test_invalid_form_is_refused(self, client, message, database, body, details):
        before = database.everything()
        body += f"&{urlencode(own_form(client))}"
        response = client.post("/verify", data=body, content_type="application/x-www-form-urlencoded")
        assert_error(response, 400, "validation_failed", details=details)
        assert database.everything() == before

    def test_form_sent_as_json_is_read_as_json(self, client, message, database):
        before = database.everything(*EFFECTS)
        response = client.post("/verify", json={"type": "magiclink", "token": message.token})
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert_untouched(client, database, before, "magiclink", message.token)

    def test_access_token_sent_with_the_form_is_ignored(self, client, message, mallory):
        response = client.post(
            "/verify",
            json={"type": "magiclink", "token_hash": message.token},
            headers=mallory.open_session().authorization,
        )
        assert response.json["user"]["email"] == "erin@example.com"


class TestMisplacedTokens:
    """A token of one kind is refused where another kind is expected."""

    def test_token_of_a_link_is_refused_as_access_token_refresh_token_and_authorization_code(
        self, client, service_role, outbox, database
    ):
        token = send("magiclink", client, service_role, outbox).token
        assert client.get("/user", headers={"Authorization": f"Bearer {token}"}).status_code == 401
        assert_error(
            client.post("/token?grant_type=refresh_token", json={"refresh_token": token}),
            400,
            "refresh_token_not_found",
        )
        exchange = {"auth_code": token, "code_verifier": "x" * 43}
        assert_error(client.post("/token?grant_type=pkce", json=exchange), 404, "flow_state_not_found")
        assert_error(
            client.post("/token?grant_type=password", json={"email": "erin@example.com", "password": token}),
            401,
            "invalid_credentials",
        )
        assert_signs_in(client, "magiclink", token)

    def test_access_token_and_refresh_token_are_refused_as_links(self, client, alice, database):
        session = alice.open_session()
        before = database.everything(*EFFECTS)
        for token in (session.access_token, session.refresh_token, session.id):
            for type in BY_LINK:
                assert fragment(follow(client, type, token)) == EXPIRED
        assert database.everything(*EFFECTS) == before

    def test_token_in_the_wrong_parameter_is_refused(self, client, service_role, outbox, database):
        token = send("magiclink", client, service_role, outbox).token
        before = database.everything(*EFFECTS)
        assert_error(
            client.get(f"/verify?token_hash={token}&type=magiclink"),
            400,
            "validation_failed",
            details="token: is required",
        )
        assert_error(
            client.get(
                f"/verify?type={token}&token=magiclink&email=erin@example.com&token_hash={token}&type=x"
            ),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )
        response = client.post(f"/verify?token_hash={token}", json={"type": "magiclink"})
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert_untouched(client, database, before, "magiclink", token)

    def test_wrong_links_do_not_count_as_tries_of_the_code(self, client, service_role, outbox, database):
        message = send("magiclink", client, service_role, outbox)
        for _ in range(6):
            assert fragment(follow(client, "magiclink", "x" * 43)) == EXPIRED
        assert (
            database.value("SELECT tries FROM one_time_tokens"),
            counted(database, f"code {message.to}"),
        ) == (0, 0)


class TestDecliningASignUp:
    @pytest.fixture
    def signup(self, client, service_role, outbox):
        return send("signup", client, service_role, outbox)

    def test_declining_deletes_the_sign_up(self, client, signup, database):
        response = press(client, "signup", signup.token, action="decline")
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert [
            database.count(table) for table in ("users", "identities", "one_time_tokens", "sessions")
        ] == [0, 0, 0, 0]
        assert_dead(client, "signup", signup.token)

    def test_declining_works_once(self, client, signup):
        press(client, "signup", signup.token, action="decline")
        assert press(client, "signup", signup.token, action="decline").status_code == 403

    def test_declining_is_refused_from_another_site(self, client, signup, database):
        data = {"token": signup.token, "type": "signup", "action": "decline"}
        assert_error(
            client.post("/verify", data=data, headers={"Sec-Fetch-Site": "cross-site"}),
            403,
            "insufficient_permissions",
        )
        assert database.count("users") == 1

    def test_declining_needs_post(self, client, signup, database):
        client.get(path("signup", signup.token, action="decline"), headers=BROWSER)
        assert database.count("users") == 1
        assert fragment(follow(client, "signup", signup.token, action="decline")) == tokens_for("signup")

    def test_declining_is_refused_after_confirmation_or_sign_in(self, client, signup, database):
        for change in ("email_confirmed_at = now()", "last_sign_in_at = now(), email_confirmed_at = NULL"):
            database.run(f"UPDATE users SET {change}")
            assert press(client, "signup", signup.token, action="decline").status_code == 403
            assert database.count("users") == 1

    def test_declining_is_refused_after_an_hour(self, client, signup, database):
        later(database, secs=3600)
        assert press(client, "signup", signup.token, action="decline").status_code == 403
        assert database.count("users") == 1

    @pytest.mark.parametrize("type", [type for type in BY_LINK if type != "signup"])
    def test_declining_is_refused_for_links_of_other_types(
        self, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        before = database.everything(*EFFECTS)
        assert press(client, "signup", message.token, action="decline").status_code == 403
        assert press(client, type, message.token, action="decline").status_code == 403
        assert_untouched(client, database, before, type, message.token)

    def test_declining_is_refused_without_the_token_of_the_link(self, client, signup, database):
        for token in ("x" * 43, "", signup.token[:-1], signup.code):
            assert press(client, "signup", token, action="decline").status_code == 403
        assert database.count("users") == 1


def test_opened_link_may_carry_an_allowed_target(make_app, service_role, outbox):
    client = make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**").test_client()
    message = send("magiclink", client, service_role, outbox)
    response = follow(client, "magiclink", message.token, redirect_to="https://app.example.com/in?x=1")
    assert fragment(response, "https://app.example.com/in?x=1") == tokens_for("magiclink")


def test_opened_link_with_a_forbidden_target_redirects_to_the_site(make_app, alice, outbox):
    client = make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**").test_client()
    client.post("/magiclink", json={"email": alice.email, "redirect_to": "https://app.example.com/in"})
    response = follow(client, "magiclink", outbox.last().token, redirect_to="https://evil.example/")
    assert fragment(response, SITE) == tokens_for("magiclink")


def test_session_started_by_a_link_is_listed_and_can_log_out(client, service_role, outbox):
    session = assert_signs_in(client, "magiclink", send("magiclink", client, service_role, outbox).token)
    (listed,) = session.get("/sessions").json["data"]
    assert (listed["id"], listed["current"]) == (session.id, True)
    assert session.post("/logout").status_code == 200
    assert_error(session.get("/user"), 401, "session_not_found")


def test_sign_in_by_link_ends_the_oldest_session_beyond_the_limit(make_app, alice, outbox):
    client = make_app(AUTH_SESSIONS_PER_USER="2").test_client()
    first, second = alice.sign_in(client=client), alice.sign_in(client=client)
    client.post("/magiclink", json={"email": alice.email})
    third = assert_signs_in(client, "magiclink", outbox.last().token)
    assert_error(first.get("/user"), 401, "session_not_found")
    assert (second.get("/user").status_code, third.get("/user").status_code) == (200, 200)


def test_sign_in_by_link_keeps_the_password(client, service_role, outbox):
    assert_signs_in(client, "magiclink", send("magiclink", client, service_role, outbox).token)
    assert (
        client.post(
            "/token?grant_type=password", json={"email": "erin@example.com", "password": PASSWORD}
        ).status_code
        == 200
    )


def test_tokens_in_the_fragment_can_be_used_and_refreshed(client, service_role, outbox):
    tokens = fragment(follow(client, "magiclink", send("magiclink", client, service_role, outbox).token))
    session = Session(client, tokens["access_token"], tokens["refresh_token"], {})
    assert session.claims["exp"] == int(tokens["expires_at"])
    assert session.refreshed().get("/user").status_code == 200
