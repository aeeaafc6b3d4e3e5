"""The first address of a user who has only a passkey or a provider: who may add it, and who takes it back.

Mallory has a session of Dora, who has no address to which a notice could go.
"""

import json
from urllib.parse import urlencode

import pytest

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.factors import set_up
from tests.support.links import OTHER_PHONE, PHONE, Outbox, press, type_in
from tests.support.oauth import SITE
from tests.support.pages import Visitor
from tests.support.passkeys import assertion, register
from tests.support.passkeys import sign_in as sign_in_by_passkey
from tests.support.server import at_once
from tests.support.users import Session, issue_token, session_of, sign_up_anonymously

pytest_plugins = ["tests.support.oauth_fixtures"]
MALLORY = "mallory@evil.example"
UNDO = "account/changes/undo"


class Dora:
    def __init__(self, service, database):
        self.service, self.client, self.database = service, service.client, database

    def age(self, **intervals):
        interval = f"make_interval({', '.join(f'{name} => {number}' for name, number in intervals.items())})"
        for table, columns in {
            "users": ("created_at", "converted_at", "first_factor_at"),
            "identities": ("created_at", "updated_at"),
            "factors": ("created_at", "verified_at"),
            "sessions": ("created_at", "reauthenticated_at", "factor_proved_at"),
        }.items():
            moved = ", ".join(f"{column} = {column} - {interval}" for column in columns)
            self.database.run(f"UPDATE {table} SET {moved}")
        self.database.run(
            "UPDATE sessions SET amr = jsonb_set(amr, '{0,timestamp}', to_jsonb(((amr -> 0 ->> 'timestamp')"
            f"::bigint - extract(epoch FROM {interval})::bigint))) WHERE amr IS NOT NULL"
        )

    def addresses(self):
        return tuple(self.database.one("SELECT email, phone FROM users"))

    def add_address(self, session, outbox, address=MALLORY):
        kind = "email" if "@" in address else "phone"
        assert session.put("/user", json={kind: address}).status_code == 200
        code = outbox.last(address, f"{kind}_change").code
        return type_in(self.client, f"{kind}_change", address, code)

    def press_undo(self, visitor):
        visitor.visit("/account/changes")
        if "Undo everything" in visitor.page.text:
            assert not any(form.action.endswith("undo") for form in visitor.page.forms)
            visitor.visit("/account/changes?ask=undo")
        visitor.press(UNDO)
        return visitor.page.url


class WithPasskey(Dora):
    def __init__(self, service, database):
        super().__init__(service, database)
        session = sign_up_anonymously(self.client)
        self.authenticator, _row = register(session)
        self.age(days=30)

    def sign_in(self):
        return sign_in_by_passkey(self.client, self.authenticator)

    def prove(self, session):
        return session.post("/reauthenticate", json=assertion(self.client, self.authenticator))

    def browser(self):
        visitor = Visitor(self.service.app)
        visitor.visit("/sign-in")
        visitor.press("sign-in/passkey")
        return self.answer(visitor, "sign-in/passkey/verify")

    def answer(self, visitor, action):
        credential = self.authenticator.get(visitor.passkey_options)
        visitor.press(action, credential=json.dumps(credential))
        return visitor

    def confirm(self, visitor):
        self.answer(visitor, "account/confirm/passkey")


class WithProvider(Dora):
    def __init__(self, service, database, provider="acme"):
        super().__init__(service, database)
        self.provider = provider
        service.sign_in(provider)
        self.age(days=30)

    def sign_in(self):
        session = self.service.session(self.service.sign_in(self.provider))
        user = session.get("/user").json
        return Session(self.client, session.access_token, session.refresh_token, user)

    def browser(self):
        visitor = Visitor(self.service.app)
        back = {"provider": self.provider, "redirect_to": f"{SITE}/sign-in?next=changes"}
        visitor.visit("/sign-in")
        visitor.click(f"{SITE}/authorize?{urlencode(back)}")
        return visitor

    def confirm(self, visitor):
        href = visitor.page.text.partition("authorize?")[2].partition('"')[0].replace("&amp;", "&")
        visitor.click(f"{SITE}/authorize?{href}")


@pytest.fixture(autouse=True)
def person(acme):
    acme.person = {"sub": "dora", "name": "Dora"}


@pytest.fixture
def service(make_service, app):
    """The service with all providers, whose users may be anonymous."""
    return make_service(AUTH_ANONYMOUS_ENABLED="true")


@pytest.fixture
def outbox(service, database):
    return Outbox(service.parts, database)


@pytest.fixture(params=[WithPasskey, WithProvider])
def dora(request, service, database):
    return request.param(service, database)


@pytest.fixture
def thief(dora, outbox):
    """A session in which Mallory has just added the first address."""
    session = dora.sign_in()
    dora.add_address(session, outbox)
    dora.age(hours=1)
    assert dora.addresses() == (MALLORY, None)
    return session


@pytest.mark.parametrize("address", [{"email": MALLORY}, {"phone": PHONE}])
def test_first_address_needs_the_passkey_or_provider(dora, outbox, address):
    stolen = dora.sign_in()
    dora.age(mins=16)
    refused = stolen.put("/user", json=address)
    assert_error(refused, 400, "reauthentication_needed", details=A_SENTENCE)
    assert outbox.sent() == []
    assert dora.sign_in().put("/user", json=address).status_code == 200


def test_passkey_proves_a_session_for_the_first_address(service, database, outbox):
    dora = WithPasskey(service, database)
    session = dora.sign_in()
    dora.age(mins=16)
    proved = session_of(dora.client, dora.prove(session))
    assert proved.id == session.id
    dora.add_address(proved, outbox)
    assert dora.addresses() == (MALLORY, None)


def test_first_addresses_that_wait_for_the_first_passkey_need_a_proof_then(service, database):
    """The passkey makes the anonymous user permanent while the requests wait for the user's row."""
    session = sign_up_anonymously(service.client)
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")

    def add_phone():
        return session.on(service.app.test_client()).put("/user", json={"phone": PHONE})

    converting = "UPDATE users SET converted_at = now() WHERE id = %s"
    with database.locked("users", session.user["id"], converting) as lock:
        asked = [lock.start(add_phone) for _ in range(5)]
    assert {future.result().json["error_code"] for future in asked} == {"reauthentication_needed"}
    assert database.value("SELECT new_phone FROM users") is None


class TestTakingBack:
    def test_account_says_what_no_notice_could_tell_for_seven_days(self, dora, thief):
        page = dora.browser().visit("/account")
        assert "so we couldn’t tell you" in page.text
        assert "Undo everything" in dora.browser().visit("/account/changes").text
        dora.age(days=7)
        assert "so we couldn’t tell you" not in dora.browser().visit("/account").text

    def test_older_credential_undoes_everything_and_ends_sessions(self, dora, thief, outbox, database):
        dora.add_address(dora.sign_in(), outbox, OTHER_PHONE)
        database.run("UPDATE users SET password_hash = 'x'")
        assert dora.press_undo(dora.browser()).endswith("/account/changes?done=removed")
        assert dora.addresses() == (None, None)
        assert database.value("SELECT password_hash FROM users") is None
        assert_error(thief.get("/user"), 401, "session_not_found")
        assert database.count("sessions", "ended_at IS NULL") == 1
        assert database.count("one_time_tokens", "purpose = 'undo'") == 0
        assert dora.browser().visit("/account").status == 200

    def test_older_credential_takes_a_factor_back_with_the_address(self, service, outbox, database):
        dora = WithProvider(service, database)
        session = dora.sign_in()
        dora.add_address(session, outbox)
        set_up(dora.sign_in())
        dora.age(hours=1)
        dora.press_undo(dora.browser())
        assert database.count("factors") == 0
        assert dora.addresses() == (None, None)

    def test_it_asks_for_the_older_credential(self, dora, thief, database):
        owner = dora.browser()
        dora.age(mins=16)
        # A proof that the thief can give.
        database.run("UPDATE sessions SET reauthenticated_at = now()")
        assert dora.press_undo(owner) == f"{SITE}/account/confirm?by=older&next=undo"
        assert dora.addresses() == (MALLORY, None)
        dora.confirm(owner)
        dora.press_undo(owner)
        assert dora.addresses() == (None, None)

    def test_what_the_thief_added_does_not_undo(self, service, database):
        dora = WithProvider(service, database)
        session = dora.sign_in()
        thief = WithPasskey.__new__(WithPasskey)
        Dora.__init__(thief, service, database)
        thief.authenticator, _row = register(session)
        dora.age(hours=1)
        assert dora.press_undo(thief.browser()) == f"{SITE}/account/confirm?by=older&next=undo"
        assert database.count("factors") == 1

    def test_factor_older_than_a_week_is_not_taken_back(self, service, outbox, database):
        dora = WithProvider(service, database)
        set_up(dora.sign_in())
        dora.age(days=8)
        dora.add_address(sign_in_with_factor(dora, database), outbox)
        dora.age(hours=1)
        assert "/second-step" in dora.press_undo(dora.browser())
        assert dora.addresses() == (MALLORY, None)

    def test_fifty_presses_undo_once(self, dora, thief, database, service):
        owner = dora.browser()
        owner.visit("/account/changes?ask=undo")
        fields = next(form for form in owner.page.forms if form.action.endswith("undo")).fields
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in owner.cookies)
        headers = {"Cookie": cookies, "Accept": "text/html", "Sec-Fetch-Site": "same-origin", "Origin": SITE}

        def press_undo(_number):
            client = service.app.test_client(use_cookies=False)
            return client.post("/account/changes/undo", data=fields, headers=headers).location

        places = at_once(50, press_undo)
        assert len([place for place in places if place and place.endswith("done=removed")]) == 1
        assert database.count("audit_log", "action = 'change_undone' AND reason IS NULL") == 1
        assert dora.addresses() == (None, None)

    def test_address_from_the_beginning_gets_the_notices_instead(self, service, google, outbox, database):
        google.person = {"sub": "dora", "email": "dora@example.com", "email_verified": True}
        dora = WithProvider(service, database, "google")
        dora.add_address(dora.sign_in(), outbox, PHONE)
        page = dora.browser().visit("/account/changes")
        assert "Undo everything" not in page.text
        assert outbox.last("dora@example.com", "phone_changed").token

    def test_link_to_the_new_address_removes_nothing_older(self, service, outbox, database):
        dora = WithProvider(service, database)
        session = dora.sign_in()
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data, created_at)"
            " SELECT id, 'google', 'dora', '{\"sub\": \"dora\"}', now() - interval '2 days' FROM users"
        )
        dora.add_address(session, outbox)
        press(service.client, "undo", outbox.last(MALLORY, "address_added").token)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert database.count("identities", "provider = 'google'") == 1


def sign_in_with_factor(dora, database):
    session = dora.sign_in()
    raised = "aal = 'aal2', factor_proved_at = now()"
    database.run(f"UPDATE sessions SET {raised} WHERE id = %(id)s", id=session.id)
    return token_of(dora, session, "aal2")


def token_of(dora, session, aal):
    """Return a session with an access token of another level."""
    token = issue_token(dora.client.application, session.user, session.id, session.claims["iat"], aal)
    return Session(dora.client, token, "", session.user)
