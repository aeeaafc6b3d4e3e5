"""What carries a browser's session (its cookie, and the codes that it has given) changes in the act that raises the
session or records a proof in it. An earlier copy opens nothing.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlencode

import pytest

from auth.html.forms import FIELD
from tests.support import passkeys
from tests.support.answers import assert_error
from tests.support.authenticator import Authenticator
from tests.support.devices import begin, make_television
from tests.support.factors import App, set_up
from tests.support.http_target import HttpTarget
from tests.support.links import CHALLENGE, SITE, VERIFIER
from tests.support.openid import assert_refused
from tests.support.openid_flow import make_application
from tests.support.pages import Visitor
from tests.support.users import PASSWORD, session_of

TARGET = "https://app.example.com/signed-in"
TARGET_QUERY = f"?{urlencode({'redirect_to': TARGET})}"
CODE_QUERY = f"?{urlencode({'redirect_to': TARGET, 'code_challenge': CHALLENGE})}"
SETTINGS = {"AUTH_REDIRECT_ALLOW_LIST": TARGET}
AGE_PROOFS = (
    "UPDATE sessions SET created_at = created_at - interval '16 minutes', reauthenticated_at = NULL,"
    " factor_proved_at = NULL"
)


@pytest.fixture
def app(make_app):
    return make_app(**SETTINGS)


@pytest.fixture
def hook():
    with HttpTarget() as target:
        target.answer = lambda event: {"claims": event["claims"]}
        yield target


@pytest.fixture
def hooked_app(make_app, hook):
    """An application whose token hook is a server."""
    return make_app(
        **SETTINGS,
        AUTH_HOOK_CUSTOM_ACCESS_TOKEN=f"{hook.url}/hook",
        AUTH_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )


def sign_in(visitor: Visitor, email: str = "alice@example.com", query: str = "") -> Visitor:
    visitor.visit(f"/sign-in{query}")
    visitor.press("sign-in", email=email, password=PASSWORD)
    return visitor


def copy_of(visitor: Visitor, app) -> Visitor:
    """Return a thief's browser with a copy of the cookies."""
    thief = Visitor(app)
    thief.cookies, thief.page = list(visitor.cookies), visitor.page
    return thief


def is_out(visitor: Visitor, path: str = "/account") -> bool:
    return visitor.visit(path).url.startswith(f"{SITE}/sign-in")


@pytest.fixture
def doors(database, alice) -> dict[str, Callable[[Visitor], Callable[[], object]]]:
    """How a session is raised: each brings a browser to the form, and returns the press of its button."""

    def app_of(visitor: Visitor) -> App:
        codes = set_up(alice.open_session())[0]
        sign_in(visitor, query=TARGET_QUERY)
        return codes

    def code_of_app(visitor: Visitor):
        code = app_of(visitor).code()
        return lambda: visitor.press("second-step", code=code)

    def recovery_code(visitor: Visitor):
        _, session = set_up(alice.open_session())
        code = session.post("/factors/recovery-codes", json={}).json["codes"][0]
        sign_in(visitor, query=TARGET_QUERY)
        return lambda: visitor.press("second-step/recovery", recovery_code=code)

    def passkey(visitor: Visitor):
        authenticator, _ = passkeys.register(alice.open_session())
        sign_in(visitor, query=TARGET_QUERY)
        credential = json.dumps(authenticator.get(visitor.passkey_options))
        return lambda: visitor.press("second-step/passkey", credential=credential)

    def first_code(visitor: Visitor):
        sign_in(visitor).visit(f"/account/two-step{TARGET_QUERY}")
        shown = visitor.press("account/two-step").text
        secret = shown.partition('<code translate="no">')[2].partition("</code>")[0].replace(" ", "")
        return lambda: visitor.press("verify", code=App("", secret).code())

    def new_passkey(visitor: Visitor):
        sign_in(visitor).visit("/account/passkeys/new")
        credential = json.dumps(Authenticator().create(visitor.passkey_options))
        return lambda: visitor.press("account/passkeys", credential=credential)

    return {each.__name__: each for each in (code_of_app, recovery_code, passkey, first_code, new_passkey)}


DOORS = ("code_of_app", "recovery_code", "passkey", "first_code", "new_passkey")


class TestCookie:
    @pytest.mark.parametrize("door", DOORS)
    def test_copy_from_before_a_second_step_is_out_though_the_hook_fails(
        self, hooked_app, hook, doors, door, database
    ):
        owner = Visitor(hooked_app)
        press = doors[door](owner)
        thief = copy_of(owner, hooked_app)
        hook.answer, hook.status = None, 500
        press()
        assert database.value("SELECT max(aal) FROM sessions WHERE ended_at IS NULL") == "aal2"
        assert is_out(thief)
        assert is_out(thief, "/account/email")
        # The failed answer has set the new cookie.
        assert owner.visit("/account").url == f"{SITE}/account"

    def test_copy_from_before_a_proof_cannot_change_the_address_or_add_a_passkey(
        self, app, visitor, alice, database
    ):
        visitor.signed_in_as(alice)
        database.run(AGE_PROOFS)
        visitor.visit("/account/email")
        thief = copy_of(visitor, app)
        assert visitor.press("account/confirm", current_password=PASSWORD).url == f"{SITE}/account/email"
        for path in ("/account/email", "/account/passkeys/new", "/account"):
            assert is_out(thief, path)
        assert visitor.visit("/account/passkeys/new").url == f"{SITE}/account/passkeys/new"

    def test_copy_from_before_a_code_of_the_mailbox_is_out(self, app, visitor, alice, database, outbox):
        visitor.signed_in_as(alice)
        database.run(AGE_PROOFS)
        visitor.visit("/account/email")
        visitor.press("account/confirm/code")
        thief = copy_of(visitor, app)
        visitor.press("account/confirm", nonce=outbox.last(alice.email).code)
        assert is_out(thief)
        assert visitor.visit("/account/email").url == f"{SITE}/account/email"

    def test_copy_from_before_a_passkey_as_a_proof_is_out(self, app, visitor, alice, database):
        authenticator, _ = passkeys.register(alice.open_session())
        sign_in(visitor)
        visitor.press(
            "second-step/passkey", credential=json.dumps(authenticator.get(visitor.passkey_options))
        )
        database.run(AGE_PROOFS)
        visitor.visit("/account/email")
        thief = copy_of(visitor, app)
        credential = json.dumps(authenticator.get(visitor.passkey_options))
        visitor.press(visitor.page.forms[0].action.rpartition(f"{SITE}/")[2], credential=credential)
        assert is_out(thief, "/account/email")

    def test_four_threads_with_the_old_cookie_get_nothing_while_the_session_is_raised(
        self, app, alice, database
    ):
        """The row of the cookie is locked: what raises the session waits in the middle of its act."""
        codes = set_up(alice.open_session())[0]
        owner = sign_in(Visitor(app))
        code, session_id = codes.code(), database.value("SELECT session_id::text FROM browser_sessions")
        thieves = [copy_of(owner, app) for _ in range(4)]
        form = {FIELD: owner.page.forms[0].fields[FIELD], "redirect_to": TARGET}
        row_lock = "SELECT FROM browser_sessions WHERE session_id = %s FOR UPDATE"
        ways = (
            lambda thief: thief.visit("/account/email"),
            lambda thief: thief.visit(f"/sign-in{TARGET_QUERY}"),
            lambda thief: thief.post(f"{SITE}/second-step/skip", form),
            lambda thief: thief.post(f"{SITE}/sign-in/continue", form),
        )
        with ThreadPoolExecutor(4) as threads:
            with database.locked("browser_sessions", session_id, row_lock) as lock:
                request = lock.start(lambda: owner.press("second-step", code=code))
                requests = [threads.submit(way, thief) for way, thief in zip(ways, thieves, strict=True)]
            assert request.result().url == f"{SITE}/account"
            pages = [each.result() for each in requests]
        assert database.count("sessions", "opened_by IS NOT NULL AND aal = 'aal2'") == 0
        assert not any("access_token" in page.url or page.url == f"{SITE}/account/email" for page in pages)
        assert all(is_out(thief) for thief in thieves)
        assert owner.visit("/account").url == f"{SITE}/account"

    def test_request_that_waited_while_the_owner_gave_a_proof_gets_nothing(
        self, app, visitor, alice, database
    ):
        """The request came in with the old cookie, and decides after the proof."""
        visitor.signed_in_as(alice)
        database.run(AGE_PROOFS)
        visitor.visit("/account/email")
        thief = copy_of(visitor, app)
        form = {FIELD: visitor.page.forms[0].fields[FIELD], "redirect_to": TARGET}
        with database.locked("users", alice.id) as lock:
            proof = lock.start(lambda: visitor.press("account/confirm", current_password=PASSWORD))
            opening = lock.start(lambda: thief.post(f"{SITE}/sign-in/continue", form))
        assert proof.result().url == f"{SITE}/account/email"
        assert opening.result().url.startswith(f"{SITE}/sign-in?")
        assert database.count("sessions", "opened_by IS NOT NULL") == 0

    def test_act_that_dies_in_the_middle_leaves_neither_the_level_nor_another_cookie(
        self, app, alice, database
    ):
        codes = set_up(alice.open_session())[0]
        owner = sign_in(Visitor(app))
        code, hashes = codes.code(), database.all("SELECT token_hash FROM browser_sessions")
        session_id = database.value("SELECT session_id::text FROM browser_sessions")
        row_lock = "SELECT FROM browser_sessions WHERE session_id = %s FOR UPDATE"
        with database.locked("browser_sessions", session_id, row_lock) as lock:
            request = lock.start(lambda: owner.press("second-step", code=code))
            database.cancel_waiting()
            assert request.result().status >= 500
        assert database.value("SELECT aal FROM sessions WHERE id::text = %(id)s", id=session_id) == "aal1"
        assert database.all("SELECT token_hash FROM browser_sessions") == hashes


class TestCodes:
    """Each code was given at `aal1`, and is redeemed after the owner's second step."""

    @pytest.fixture
    def authenticator(self, alice) -> Authenticator:
        return passkeys.register(alice.open_session())[0]

    @pytest.fixture
    def raise_session(self, authenticator) -> Callable[[Visitor], None]:
        def raise_session(owner: Visitor) -> None:
            owner.visit("/second-step")
            credential = json.dumps(authenticator.get(owner.passkey_options))
            assert owner.press("second-step/passkey", credential=credential).url == f"{SITE}/account"

        return raise_session

    def test_code_for_a_page_is_void_after_the_step(self, app, client, visitor, raise_session, database):
        sign_in(visitor, query=CODE_QUERY)
        url = visitor.press("second-step/skip").url
        raise_session(visitor)
        body = {"auth_code": parse_qs(url.partition("?")[2])["code"][0], "code_verifier": VERIFIER}
        assert_error(client.post("/token?grant_type=pkce", json=body), 404, "flow_state_not_found")
        assert database.count("sessions", "opened_by IS NOT NULL") == 0

    def test_code_given_after_the_step_has_its_level(self, client, visitor, raise_session):
        sign_in(visitor)
        raise_session(visitor)
        visitor.visit(f"/sign-in{CODE_QUERY}")
        url = visitor.press("sign-in/continue").url
        body = {"auth_code": parse_qs(url.partition("?")[2])["code"][0], "code_verifier": VERIFIER}
        session = session_of(client, client.post("/token?grant_type=pkce", json=body))
        assert session.claims["aal"] == "aal2"

    def test_application_has_to_request_another_code(self, client, visitor, alice, database):
        application = make_application(client, database)
        visitor.signed_in_as(alice)
        code = application.code(visitor)
        database.run(AGE_PROOFS)
        visitor.visit("/account/email")
        visitor.press("account/confirm", current_password=PASSWORD)
        assert_refused(application.redeem(code), "invalid_grant")
        assert database.count("sessions", "method = 'oauth_client'") == 0
        assert application.tokens(visitor)["access_token"]

    def test_device_learns_that_its_code_has_expired_and_begins_again(self, client, visitor, alice, database):
        television = make_television(database)
        visitor.signed_in_as(alice)
        first = begin(client, television)
        first.decide(visitor)
        database.run(AGE_PROOFS)
        visitor.visit("/account/email")
        visitor.press("account/confirm", current_password=PASSWORD)
        assert_refused(first.poll(), "expired_token")
        second = begin(client, television)
        second.decide(visitor)
        assert second.poll().status_code == 200

    def test_codes_of_other_sessions_stay(self, app, client, visitor, alice, raise_session, database):
        other = sign_in(Visitor(app), query=CODE_QUERY)
        url = other.press("second-step/skip").url
        sign_in(visitor)
        raise_session(visitor)
        body = {"auth_code": parse_qs(url.partition("?")[2])["code"][0], "code_verifier": VERIFIER}
        session = session_of(client, client.post("/token?grant_type=pkce", json=body))
        assert session.claims["aal"] == "aal1"
