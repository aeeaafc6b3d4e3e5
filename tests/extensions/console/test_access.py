"""Access to the console, and the further requirements of its routes."""

import html
from urllib.parse import quote, urljoin

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.cases import cases
from tests.support.factors import App
from tests.support.links import SITE, follow
from tests.support.pages import Visitor
from tests.support.server import at_once
from tests.support.users import PASSWORD

PUBLIC_URL = "https://auth.example.com"


@cases(
    ("page", "destination"),
    [
        ("console/users?q=a/b,c%26", "console/users?q=a/b,c%26"),
        ("https://evil.example", "account"),
        ("//evil.example", "account"),
        ("console//evil.example", "account"),
        ("console/../x", "account"),
        ("account", "account"),
        ("oauth/consent?authorization_id=x", "account"),
        (f"oauth/consent?authorization_id={'x' * 43}//evil.example", "account"),
    ],
)
def test_sign_in_leads_back_to_the_page_of_the_console_and_to_no_other(app, carol, page, destination):
    visitor = Visitor(app)
    visitor.visit(f"/sign-in?next={quote(page, safe='')}")
    assert visitor.submit(email=carol.email, password=PASSWORD).url == f"{SITE}/{destination}"


def test_password_of_an_administrator_alone_enrols_no_first_factor(make_app, carol, database):
    """A thief has the password, but neither the mailbox nor the command line."""
    app = make_app(AUTH_BASE_URL=PUBLIC_URL)
    thief = Visitor(app, PUBLIC_URL).signed_in_as(carol)
    by_code = f"{PUBLIC_URL}/account/confirm?by=code&next="
    assert thief.visit("/account/passkeys/new").url == f"{by_code}passkeys%2Fnew"
    assert "current_password" not in thief.page.text
    thief.send("/account/confirm", current_password=PASSWORD, next="two-step")
    assert thief.send("/account/two-step").url == f"{by_code}two-step"
    session = carol.sign_in(client=app.test_client())
    for proof in ({}, {"current_password": PASSWORD}):
        for path, body in (
            ("/factors", {"factor_type": "totp"}),
            ("/factors", {"factor_type": "webauthn"}),
            ("/passkeys/registration/options", {}),
        ):
            response = session.post(path, json=body | proof)
            assert_error(response, 400, "reauthentication_needed", details=A_SENTENCE)
    assert database.count("factors") == database.count("factor_challenges") == 0
    assert thief.visit("/console").url == f"{by_code}console"


def test_code_at_an_address_that_the_thief_has_set_enrols_nothing(client, carol, outbox, database):
    database.run("UPDATE users SET created_at = now() - interval '1 month'")
    database.run("UPDATE identities SET updated_at = now() - interval '1 month'")
    session = carol.sign_in()
    session.put("/user", json={"email": "mallory@evil.example"})
    follow(client, "email_change", outbox.last("mallory@evil.example").token)
    session.get("/reauthenticate")
    nonce = outbox.last("mallory@evil.example", "reauthentication").code
    response = session.post("/factors", json={"factor_type": "totp", "nonce": nonce})
    assert_error(response, 400, "reauthentication_needed", details=A_SENTENCE)
    assert database.count("factors") == 0


def test_one_of_fifty_sessions_enrols_by_one_code(client, carol, outbox, database):
    sessions = [carol.open_session().on(client.application.test_client()) for _ in range(50)]
    sessions[0].get("/reauthenticate")
    body = {"factor_type": "totp", "nonce": outbox.last(carol.email, "reauthentication").code}
    statuses = at_once(50, lambda number: sessions[number].post("/factors", json=body).status_code)
    assert sorted(statuses) == [200] + [400] * 49
    assert database.count("factors") == 1


def follow_button(visitor):
    link = visitor.page.text.partition('<a class="button" href="')[2].partition('"')[0]
    return visitor.visit(urljoin(visitor.page.url, html.unescape(link)))


def test_authenticator_app_that_the_console_asks_for_leads_back(app, carol, alice, outbox, database):
    path = f"/console/users/{alice.id}/delete"
    visitor = Visitor(app).signed_in_as(carol)
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    assert "/account/confirm?next=console" in visitor.visit(path).url
    assert "by=code" in visitor.press("/confirm", current_password=PASSWORD).url
    visitor.press("account/confirm/code")
    visitor.submit(nonce=outbox.last(carol.email, "reauthentication").code)
    assert visitor.page.url.endswith(path)
    follow_button(visitor)
    visitor.press("account/two-step")
    secret = visitor.page.text.partition('<code translate="no">')[2].partition("</code>")[0]
    codes = App("", secret.replace(" ", ""))
    visitor.press("two-step/verify", code=codes.wrong_code())
    visitor.press("two-step/verify", code=codes.code())
    # The link behind the recovery codes.
    assert follow_button(visitor).url.endswith(path)
    assert "factor_code" in visitor.page.text


def test_only_the_browser_of_an_administrator_opens_the_console(
    client, operator, app, alice, carol, service_role
):
    for headers in (carol.open_session().authorization, service_role):
        response = client.get("/console", headers=headers)
        assert (response.status_code, response.location) == (303, "sign-in?next=console")
    for visitor, is_led in ((operator, True), (Visitor(app).signed_in_as(alice), False)):
        assert ('href="console"' in visitor.visit("/account").text) is is_led
