"""How old a sign-in may be for a membership to count: the requirement, and each door that reads a membership (rule 47)."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.answers import assert_error
from tests.support.api_keys import bearer, claims_of, make_key, token_of
from tests.support.factors import raised, set_up
from tests.support.links import CHALLENGE, VERIFIER
from tests.support.pages import Visitor
from tests.support.passkeys import assertion
from tests.support.passkeys import register as register_passkey
from tests.support.users import PASSWORD, session_of, sign_up_anonymously

HALF_A_DAY = 43_200
BOUNDS = "requires.max_age: must be a whole number from 900 to 31536000"
TOO_OLD = "sign in again, or use POST /reauthenticate: the last sign-in is older than `max_age`"


@pytest.fixture
def client(make_app):
    settings = {"AUTH_ORGANIZATIONS": "users", "AUTH_API_KEYS": "true", "AUTH_ANONYMOUS_ENABLED": "true"}
    return make_app(**settings).test_client()


@pytest.fixture
def age(database):
    """Return a function that makes sign-ins older by SQL, those of one session, or of all."""

    def age(seconds, session=None):
        shift = "make_interval(secs => %(seconds)s)"
        database.run(
            f"UPDATE sessions SET created_at = created_at - {shift}, reauthenticated_at = reauthenticated_at - {shift},"
            f" auth_time = auth_time - {shift}, factor_proved_at = factor_proved_at - {shift}"
            " WHERE %(id)s IS NULL OR id = %(id)s::uuid",
            seconds=seconds,
            id=session and session.id,
        )

    return age


@pytest.fixture
def require(acme, client, service_role):
    """Return a function that has an operator set the requirement."""

    def require(max_age=HALF_A_DAY, path=acme, **requires):
        response = client.put(path, json={"requires": {"max_age": max_age, **requires}}, headers=service_role)
        assert response.status_code == 200, response.text
        return response.json

    return require


@pytest.fixture
def id(acme):
    return acme.rpartition("/")[2]


def is_member(session):
    """Whether GET /user says a role."""
    (membership,) = session.get("/user").json["organizations"]
    return "role" in membership


class TestRequirement:
    def test_owner_sets_changes_and_lifts_it(self, owner, acme, database):
        for seconds in (HALF_A_DAY, 900, 31_536_000):
            response = owner.put(acme, json={"requires": {"max_age": seconds}, "current_password": PASSWORD})
            assert response.status_code == 200, response.text
            assert response.json["requires"] == {"aal": "aal1", "max_age": seconds}
            assert owner.get(acme).json["requires"] == {"aal": "aal1", "max_age": seconds}
        response = owner.put(acme, json={"requires": {"max_age": None}, "current_password": PASSWORD})
        assert (response.status_code, response.json["requires"]) == (200, {"aal": "aal1"})
        details = database.all(
            "SELECT details ->> 'requires_max_age' FROM audit_log WHERE action = 'organization_changed' ORDER BY at"
        )
        assert details == [("43200",), ("900",), ("31536000",), ("0",)]

    @pytest.mark.parametrize("seconds", [0, 899, 31_536_001, -1, 43_200.0, "43200", True, [], {}, 10**30])
    def test_other_values_are_refused_and_change_nothing(self, owner, acme, database, seconds):
        response = owner.put(acme, json={"requires": {"max_age": seconds, "aal": "aal1"}, "name": "Other"})
        assert_error(response, 400, "validation_failed", details=BOUNDS)
        assert database.all("SELECT name, max_age FROM organizations") == [("Acme", None)]

    def test_the_other_requirements_stay(self, require, database):
        require()
        database.run("UPDATE organizations SET level = 'aal2'")
        assert require(3_600)["requires"] == {"aal": "aal2", "max_age": 3_600}
        assert require(None)["requires"] == {"aal": "aal2"}

    def test_same_value_is_no_change(self, require, database):
        require()
        before = database.everything("organizations", "audit_log", "outbox")
        assert require()["requires"]["max_age"] == HALF_A_DAY
        assert database.everything("organizations", "audit_log", "outbox") == before

    def test_admins_and_members_do_not_set_it(self, owner, acme, join, bob, database):
        session = join(bob, acme)
        for role in ("member", "admin"):
            owner.put(f"{acme}/members/{bob.id}", json={"role": role, "current_password": PASSWORD})
            response = session.put(acme, json={"requires": {"max_age": 3_600}, "current_password": PASSWORD})
            assert_error(response, 403, "insufficient_permissions")
        assert database.value("SELECT max_age FROM organizations") is None

    def test_owner_is_told_before_an_age_that_the_own_session_does_not_meet(self, owner, acme, age, database):
        age(3_600)
        body = {"requires": {"max_age": 3_600}, "current_password": PASSWORD}
        response = owner.put(acme, json=body)
        assert_error(response, 403, "reauthentication_needed", details=TOO_OLD, max_age=3_600)
        assert database.value("SELECT max_age FROM organizations") is None
        assert owner.put(acme, json=body | {"requires": {"max_age": 7_200}}).status_code == 200
        owner.post("/reauthenticate", json={"current_password": PASSWORD})
        assert owner.put(acme, json=body).status_code == 200

    def test_owner_is_never_shut_out_for_ever(self, owner, acme, require, age):
        require(900)
        age(900)
        lifts = {"requires": {"max_age": None}, "current_password": PASSWORD}
        assert_error(
            owner.put(acme, json=lifts), 403, "reauthentication_needed", details=TOO_OLD, max_age=900
        )
        assert owner.post("/reauthenticate", json={"current_password": PASSWORD}).status_code == 200
        assert owner.put(acme, json=lifts).json["requires"] == {"aal": "aal1"}

    def test_each_other_owner_is_told_of_it(self, owner, acme, join, bob, alice, require, database):
        join(bob, acme, "owner")
        database.run("DELETE FROM outbox")
        owner.put(acme, json={"requires": {"max_age": HALF_A_DAY}, "current_password": PASSWORD})
        messages = database.all("SELECT user_id::text, kind, variables FROM outbox WHERE channel = 'email'")
        ((user_id, kind, variables),) = messages
        assert (user_id, kind, variables["max_age"]) == (bob.id, "organization_session_age", HALF_A_DAY)
        require(None)
        lifted = database.all(
            "SELECT user_id::text FROM outbox WHERE variables -> 'max_age' = '0' ORDER BY user_id"
        )
        assert lifted == sorted([(alice.id,), (bob.id,)])


class TestSessions:
    def test_refresh_loses_the_membership_and_has_it_again_after_a_sign_in(
        self, owner, acme, alice, id, require, age, database
    ):
        require()
        assert owner.refreshed().claims["organizations"] == {id: "owner"}
        age(HALF_A_DAY + 1)
        late = owner.refreshed()
        assert "organizations" not in late.claims
        assert not is_member(late)
        # The session goes on, and a refresh makes it no younger.
        assert "organizations" not in late.refreshed().claims
        assert late.put("/user", json={"data": {"name": "Alice"}}).status_code == 200
        assert database.count("sessions", "ended_at IS NOT NULL") == 0
        assert alice.sign_in().claims["organizations"] == {id: "owner"}
        assert not is_member(late)

    @pytest.mark.parametrize(("seconds", "counts"), [(HALF_A_DAY - 60, True), (HALF_A_DAY + 1, False)])
    def test_each_door_reads_the_age(
        self, owner, acme, id, require, age, client, service_role, seconds, counts
    ):
        require()
        token = owner.refreshed()
        age(seconds)
        membership = {"id": id, "slug": "acme", "name": "Acme"}
        membership |= {"role": "owner"} if counts else {"requires": {"aal": "aal1", "max_age": HALF_A_DAY}}
        assert token.get("/user").json["organizations"] == [membership]
        assert token.put("/user", json={"data": {}}).json["organizations"] == [membership]
        refreshed = token.refresh().json
        assert refreshed["user"]["organizations"] == [membership]
        assert claims_of(refreshed["access_token"]).get("organizations") == (
            {id: "owner"} if counts else None
        )
        introspected = client.post(
            "/introspect", json={"token": token.access_token}, headers=service_role
        ).json
        assert introspected["active"]
        assert introspected["organizations"] == ({id: "owner"} if counts else {})
        doors = [
            ("GET", "", None, 200), ("PUT", "", {"name": "Acme"}, 200), ("GET", "/members", None, 200),
            ("GET", "/audit", None, 200), ("GET", "/invitations", None, 200),
            ("POST", "/invitations", {"email": "x@example.com", "role": "member"}, 201),
            ("DELETE", f"/invitations/{id}", None, 404), ("PUT", f"/members/{id}", {"role": "member"}, 404),
            ("DELETE", f"/members/{id}", None, 404), ("DELETE", "", None, 400),
        ]  # fmt: skip
        for method, path, body, status in doors:
            response = token.open(acme + path, method, json=body)
            if counts:
                assert (method, path, response.status_code) == (method, path, status), response.json
            else:
                assert_error(response, 403, "reauthentication_needed", details=TOO_OLD, max_age=HALF_A_DAY)

    def test_member_may_leave_in_an_old_session(self, acme, join, bob, require, age, database):
        session = join(bob, acme)
        require()
        age(HALF_A_DAY + 1)
        assert session.delete(f"{acme}/members/{bob.id}").status_code == 204
        assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 0

    def test_requirements_of_one_organization_are_not_those_of_another(self, owner, acme, beta, require, age):
        require(path=beta)
        age(HALF_A_DAY + 1)
        assert owner.refreshed().claims["organizations"] == {acme.rpartition("/")[2]: "owner"}

    def test_session_that_a_token_outlives_is_refused_where_the_database_is_asked(self, owner, require, age):
        require(900)
        token = owner.refreshed()
        age(901)
        # Its claim says the membership until it runs out, an hour later at most.
        assert token.claims["organizations"]
        assert not is_member(token)


class TestWhatRenewsIt:
    """Only what proves the user does: `auth_time` of applications says the same."""

    @pytest.fixture(autouse=True)
    def required(self, require):
        require()

    def test_password_does(self, owner, age):
        age(HALF_A_DAY + 1)
        assert owner.post("/reauthenticate", json={"current_password": PASSWORD}).status_code == 200
        assert is_member(owner)
        assert owner.refreshed().claims["organizations"]

    def test_wrong_password_does_not(self, owner, age):
        age(HALF_A_DAY + 1)
        assert owner.post("/reauthenticate", json={"current_password": "wrong"}).status_code == 400
        assert not is_member(owner)

    def test_code_from_the_mailbox_does(self, owner, age, outbox):
        age(HALF_A_DAY + 1)
        assert owner.get("/reauthenticate").status_code == 200
        assert not is_member(owner)
        assert (
            owner.post(
                "/reauthenticate", json={"nonce": outbox.last(kind="reauthentication").code}
            ).status_code
            == 200
        )
        assert is_member(owner)

    def test_second_step_does(self, owner, age):
        app, session = set_up(owner)
        age(HALF_A_DAY + 1)
        assert not is_member(session)
        again = raised(session, app, 1)
        assert is_member(again)
        assert again.claims["organizations"]

    def test_change_with_a_proof_of_its_own_does_not(self, owner, age):
        age(HALF_A_DAY + 1)
        response = owner.put(
            "/user", json={"password": "Another long passw0rd", "current_password": PASSWORD}
        )
        assert response.status_code == 200, response.text
        assert not is_member(owner)

    def test_link_of_an_operator_opens_a_session_of_its_own(self, owner, age, client, service_role, alice):
        age(HALF_A_DAY + 1)
        body = {"type": "magiclink", "email": alice.email}
        token_hash = client.post("/admin/generate_link", json=body, headers=service_role).json["hashed_token"]
        opened = session_of(
            client, client.post("/verify", json={"type": "magiclink", "token_hash": token_hash})
        )
        assert is_member(opened)
        assert not is_member(owner)


class TestAnonymousUser:
    def test_address_makes_the_session_no_younger(
        self, client, acme, owner, require, age, outbox, service_role
    ):
        require()
        session = sign_up_anonymously(client)
        age(HALF_A_DAY + 1, session)
        assert session.put("/user", json={"email": "new@example.com"}).status_code == 200
        response = client.post(
            "/verify",
            json={
                "type": "email_change",
                "email": "new@example.com",
                "token": outbox.last(kind="email_change").code,
            },
        )
        assert response.status_code == 200, response.text
        body = {"role": "member"}
        user_id = session.user["id"]
        assert client.put(f"{acme}/members/{user_id}", json=body, headers=service_role).status_code == 200
        assert not is_member(session)


class TestKeysAndHooks:
    def test_api_key_has_no_sign_in_that_could_be_young(self, owner, id, require, client, service_role):
        _, key = make_key(owner)
        assert claims_of(token_of(client, key))["organizations"] == {id: "owner"}
        older = token_of(client, key)
        require(31_536_000)
        token = token_of(client, key)
        assert "organizations" not in claims_of(token)
        (membership,) = client.get("/user", **bearer(token)).json["organizations"]
        assert membership["requires"] == {"aal": "aal1", "max_age": 31_536_000}
        introspected = client.post("/introspect", json={"token": older}, headers=service_role).json
        assert (introspected["active"], introspected["organizations"]) == (True, {})


class TestCodesOfOurPages:
    def test_application_gets_a_session_as_old_as_the_browsers(
        self, make_app, alice, acme, id, require, age, database
    ):
        """A stolen cookie could open fresh ones."""
        application = "https://app.example.com/signed-in"
        app = make_app(AUTH_ORGANIZATIONS="users", AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**")
        client, visitor = app.test_client(), Visitor(app)
        visitor.visit(f"/sign-in?{urlencode({'redirect_to': application, 'code_challenge': CHALLENGE})}")

        def trade(page):
            code = parse_qs(urlsplit(page.url).query)["code"][0]
            body = {"auth_code": code, "code_verifier": VERIFIER}
            return session_of(client, client.post("/token?grant_type=pkce", json=body))

        require()
        assert trade(visitor.submit(email=alice.email, password=PASSWORD)).claims["organizations"]
        age(HALF_A_DAY + 1)
        visitor.visit(f"/sign-in?{urlencode({'redirect_to': application, 'code_challenge': CHALLENGE})}")
        late = trade(visitor.press("sign-in/continue"))
        assert "organizations" not in late.claims
        assert not is_member(late)
        assert "organizations" not in late.refreshed().claims
        assert (
            database.count("sessions", "opened_by IS NOT NULL AND created_at > now() - interval '1 minute'")
            == 1
        )


def test_token_from_before_a_passkey_keeps_its_level(owner, alice, id, client, require):
    """Its session has been raised since."""
    low = alice.open_session(client)
    authenticator, _ = register_passkey(owner)
    require(None, aal="aal2")
    response = low.post("/reauthenticate", json=assertion(client, authenticator))
    assert session_of(client, response).claims["organizations"] == {id: "owner"}
    assert not is_member(low)
