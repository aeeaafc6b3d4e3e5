"""The official Python clients, unmodified, against a real server: `supabase` with `supabase-auth`."""

import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import altcha.v2 as altcha
import bcrypt
import httpx
import pyotp
import pytest
import supabase
from supabase import ClientOptions
from supabase_auth.errors import AuthWeakPasswordError
from supabase_auth.types import CreateOAuthClientParams, PageParams, UpdateOAuthClientParams

from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.links import DIGITS, PHONE, SITE, press
from tests.support.python_clients import HTTPX, refused
from tests.support.server import at_once, served
from tests.support.users import NEW_PASSWORD, PASSWORD

CAPTCHA = "captcha protection: request disallowed"
DAVE = {"email": "dave@example.com", "password": PASSWORD}


@pytest.fixture
def auth(connect) -> Any:
    return connect().auth


@pytest.fixture
def admin(connect) -> Any:
    return connect(SERVICE_ROLE_KEY).auth.admin


@pytest.fixture
def dave(admin, auth) -> Any:
    """A client with a session of Dave, whose email is confirmed."""
    admin.create_user({**DAVE, "email_confirm": True})
    auth.sign_in_with_password(DAVE)
    return auth


class TestSignUp:
    def test_by_email_with_a_code(self, auth, outbox):
        options = {"data": {"name": "Dave"}, "email_redirect_to": f"{SITE}/welcome"}
        response = auth.sign_up({**DAVE, "options": options})
        assert (response.session, response.user.email, response.user.phone) == (None, DAVE["email"], "")
        assert response.user.user_metadata == {"name": "Dave"}
        with refused(403, "email_not_confirmed"):
            auth.sign_in_with_password(DAVE)
        code = outbox.last(DAVE["email"]).code
        verified = auth.verify_otp({"type": "signup", "email": DAVE["email"], "token": code})
        assert verified.session.user.email == DAVE["email"]
        assert auth.get_user().user.id == verified.user.id

    def test_by_phone_with_a_code(self, auth, outbox):
        response = auth.sign_up({"phone": DIGITS, "password": PASSWORD})
        assert (response.user.phone, response.user.email) == (DIGITS, "")
        code = outbox.last(PHONE).code
        assert auth.verify_otp({"type": "sms", "phone": DIGITS, "token": code}).user.phone == DIGITS

    def test_with_pkce(self, connect, client, outbox):
        auth = connect(flow_type="pkce").auth
        auth.sign_up(DAVE)
        target = press(client, "signup", outbox.last().token).location
        (code,) = parse_qs(urlsplit(target).query)["code"]
        response = auth.exchange_code_for_session({"auth_code": code})
        assert response.user.email == DAVE["email"]

    def test_resend(self, auth, outbox):
        auth.sign_up(DAVE)
        assert auth.resend({"type": "signup", "email": DAVE["email"]}).message_id is None
        code = outbox.last().code
        auth.verify_otp({"type": "signup", "email": DAVE["email"], "token": code})

    def test_weak_password_has_its_reasons(self, auth):
        with pytest.raises(AuthWeakPasswordError) as raised:
            auth.sign_up({"email": "dave@example.com", "password": "Shrtq-1"})
        assert raised.value.message == "Password should be at least 8 characters."
        assert raised.value.reasons == ["length"]

    def test_without_confirmation(self, connect, make_app):
        with served(make_app(AUTH_AUTOCONFIRM="true")) as confirming:
            auth = connect(of=confirming).auth
            assert auth.sign_up(DAVE).session.user.email == DAVE["email"]
            assert auth.get_user().user.email == DAVE["email"]
            with refused(409, "user_already_exists", "User already registered"):
                auth.sign_up(DAVE)

    def test_with_a_captcha_token(self, connect, make_app):
        """The token is from ALTCHA's library, in the clients' option for it."""
        with served(make_app(AUTH_CAPTCHA="altcha", AUTH_CAPTCHA_COST="1")) as asking:
            auth = connect(of=asking).auth
            with refused(400, "captcha_failed", f"{CAPTCHA} (no captcha_token found)"):
                auth.sign_up(DAVE)

            challenge = altcha.Challenge.from_dict(asking.get("/captcha/challenge").json)
            solution = altcha.solve_challenge(challenge)
            assert solution is not None
            used = {"captcha_token": altcha.Payload(challenge, solution).to_base64()}
            assert auth.sign_up({**DAVE, "options": used}).user.email == DAVE["email"]
            with refused(400, "captcha_failed", f"{CAPTCHA} (timeout-or-duplicate)"):
                auth.resend({"type": "signup", "email": DAVE["email"], "options": used})

    def test_anonymously_is_refused(self, auth):
        with refused(422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled"):
            auth.sign_in_anonymously()


class TestSignIn:
    def test_wrong_password(self, dave):
        with refused(401, "invalid_credentials", "Invalid login credentials"):
            dave.sign_in_with_password({**DAVE, "password": "Wrong-Horse-1"})

    def test_by_mailed_code(self, auth, outbox):
        response = auth.sign_in_with_otp({"email": DAVE["email"]})
        assert (response.user, response.session) == (None, None)
        code = {"type": "email", "email": DAVE["email"], "token": outbox.last().code}
        with refused(403, "otp_expired", "Token has expired or is invalid"):
            auth.verify_otp(code | {"token": "abcdef"})
        assert auth.verify_otp(code).session

    def test_by_hash_of_a_link(self, auth, outbox):
        auth.sign_in_with_otp({"email": DAVE["email"]})
        assert auth.verify_otp({"type": "email", "token_hash": outbox.last().token}).session

    def test_by_sms(self, auth, outbox):
        assert auth.sign_in_with_otp({"phone": DIGITS}).message_id
        code = outbox.last(PHONE).code
        assert auth.verify_otp({"type": "sms", "phone": DIGITS, "token": code}).user.phone == DIGITS

    def test_by_recovery(self, dave, connect, outbox):
        auth = connect().auth
        auth.reset_password_for_email(DAVE["email"])
        code = outbox.last(DAVE["email"], "recovery").code
        auth.verify_otp({"type": "recovery", "email": DAVE["email"], "token": code})
        auth.update_user({"password": NEW_PASSWORD})
        assert connect().auth.sign_in_with_password({**DAVE, "password": NEW_PASSWORD}).session

    def test_oauth_url(self, auth, server):
        url = urlsplit(auth.sign_in_with_oauth({"provider": "google"}).url)
        assert (url.port, url.path) == (server.port, "/auth/v1/authorize")
        assert parse_qs(url.query)["provider"] == ["google"]

    def test_missing_features_are_refused(self, auth):
        with refused(404, "saml_provider_disabled", "SAML 2.0 is disabled"):
            auth.sign_in_with_sso({"domain": "example.com"})
        with refused(400, "bad_oauth_callback", "Bad ID token"):
            auth.sign_in_with_id_token({"provider": "google", "token": "garbage"})


class TestUser:
    def test_metadata_and_password(self, dave, connect):
        assert dave.update_user({"data": {"name": "Dave"}}).user.user_metadata == {"name": "Dave"}
        dave.update_user({"password": NEW_PASSWORD})
        assert connect().auth.sign_in_with_password({**DAVE, "password": NEW_PASSWORD}).session

    @pytest.mark.parametrize(("channel", "new"), [("email", "new@example.com"), ("phone", DIGITS)])
    def test_address(self, dave, outbox, channel, new):
        assert getattr(dave.update_user({channel: new}).user, f"new_{channel}") == new
        code = outbox.last(PHONE if channel == "phone" else new).code
        verified = dave.verify_otp({"type": f"{channel}_change", channel: new, "token": code})
        assert getattr(verified.user, channel) == new

    def test_reauthentication(self, dave, outbox):
        dave.reauthenticate()
        dave.update_user({"password": NEW_PASSWORD, "nonce": outbox.last(kind="reauthentication").code})

    def test_identities(self, dave):
        identities = dave.get_user_identities().identities
        assert [identity.provider for identity in identities] == ["email"]
        with refused(422, "single_identity_not_deletable"):
            dave.unlink_identity(identities[0])

    def test_claims(self, dave):
        claims = dave.get_claims()["claims"]
        assert (claims["email"], claims["role"], claims["aal"]) == (DAVE["email"], "authenticated", "aal1")

    def test_factors(self, dave, connect):
        assert dave.mfa.list_factors().totp == []
        assert dave.mfa.get_authenticator_assurance_level().current_level == "aal1"

        enrolled = dave.mfa.enroll({"factor_type": "totp", "friendly_name": "Phone"})
        code = pyotp.TOTP(enrolled.totp.secret).now()
        with refused(422, "mfa_verification_failed"):
            dave.mfa.challenge_and_verify({"factor_id": enrolled.id, "code": "000000"})
        challenge = dave.mfa.challenge({"factor_id": enrolled.id})
        answer = {"factor_id": enrolled.id, "challenge_id": challenge.id, "code": code}
        assert dave.mfa.verify(answer).user.email == DAVE["email"]
        assert [factor.friendly_name for factor in dave.mfa.list_factors().totp] == ["Phone"]
        level = dave.mfa.get_authenticator_assurance_level()
        assert (level.current_level, level.next_level) == ("aal2", "aal2")
        assert [entry.method for entry in level.current_authentication_methods][-1] == "totp"
        assert dave.get_claims()["claims"]["aud"] == "authenticated"
        other = connect().auth
        other.sign_in_with_password(DAVE)
        # The client takes this token for valid, because GET /user does: servers look at the audience.
        assert other.get_claims()["claims"]["aud"] == "second_step"
        level = other.mfa.get_authenticator_assurance_level()
        assert (level.current_level, level.next_level) == ("aal1", "aal2")
        with refused(403, "insufficient_aal"):
            other.update_user({"data": {"x": 1}})
        assert dave.mfa.unenroll({"factor_id": enrolled.id}).id == enrolled.id


class TestSessions:
    def test_refresh_of_ten_tabs_at_once(self, server, dave):
        session = dave.get_session()

        def refresh(_: int) -> str:
            options = ClientOptions(auto_refresh_token=False, httpx_client=httpx.Client(**HTTPX))
            tab = supabase.create_client(f"http://127.0.0.1:{server.port}", "anon", options)
            refreshed: Any = tab.auth.refresh_session(session.refresh_token).session
            tab.auth.close()
            return refreshed.refresh_token

        (token,) = set(at_once(10, refresh))
        assert token != session.refresh_token

    def test_set_session(self, dave, connect):
        session = dave.get_session()
        response = connect().auth.set_session(session.access_token, session.refresh_token)
        assert response.user.email == DAVE["email"]

    def test_unknown_refresh_token(self, auth):
        sentence = "Invalid Refresh Token: Refresh Token Not Found"
        with refused(400, "refresh_token_not_found", sentence):
            auth.refresh_session("unknown")

    @pytest.mark.parametrize("scope", ["global", "local", "others"])
    def test_sign_out(self, dave, connect, database, scope):
        connect().auth.sign_in_with_password(DAVE)
        dave.sign_out({"scope": scope})
        live = database.count("sessions", "ended_at IS NULL")
        assert live == {"global": 0, "local": 1, "others": 1}[scope]


class TestAdministration:
    def test_users(self, admin):
        created = admin.create_user({**DAVE, "email_confirm": True, "app_metadata": {"plan": "pro"}}).user
        assert created.app_metadata["plan"] == "pro"
        assert admin.get_user_by_id(created.id).user.email == DAVE["email"]
        changed = admin.update_user_by_id(created.id, {"ban_duration": "24h", "phone": DIGITS}).user
        assert (changed.phone, bool(changed.banned_until)) == (DIGITS, True)
        assert [user.id for user in admin.list_users()] == [created.id]
        assert [user.id for user in admin.list_users(page=1, per_page=1000)] == [created.id]
        admin.delete_user(created.id)
        with refused(404, "user_not_found"):
            admin.get_user_by_id(created.id)

    def test_factors(self, admin, dave):
        user, factor = dave.get_user().user, dave.mfa.enroll({"factor_type": "totp"})
        ids = {"user_id": user.id, "id": factor.id}
        assert [one.id for one in admin.mfa.list_factors({"user_id": user.id})] == [factor.id]
        assert admin.mfa.delete_factor(ids).id == factor.id

    def test_user_with_a_phone_alone(self, admin):
        created = admin.create_user({"phone": DIGITS, "password": PASSWORD, "phone_confirm": True}).user
        assert (created.phone, created.email) == (DIGITS, "")

    def test_user_of_another_service_keeps_id_and_password(self, admin, auth):
        attributes = {
            "id": str(uuid.uuid4()),
            "email": DAVE["email"],
            "password_hash": bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode(),
            "email_confirm": True,
            "app_metadata": {"provider": "google", "providers": ["google"], "plan": "pro"},
        }
        created = admin.create_user(attributes).user
        assert created.app_metadata == {"provider": "email", "providers": ["email"], "plan": "pro"}
        assert auth.sign_in_with_password(DAVE).user.id == attributes["id"]

    def test_invitation(self, admin, auth, outbox):
        user = admin.invite_user_by_email("erin@example.com", {"data": {"name": "Erin"}}).user
        assert (user.email, bool(user.invited_at)) == ("erin@example.com", True)
        assert auth.verify_otp({"type": "invite", "token_hash": outbox.last().token}).session

    @pytest.mark.parametrize("type", ["signup", "invite", "magiclink", "recovery"])
    def test_links(self, dave, admin, connect, type):
        email = "erin@example.com" if type in ("signup", "invite") else DAVE["email"]
        response = admin.generate_link({"type": type, "email": email, "password": PASSWORD})
        assert (response.user.email, response.properties.verification_type) == (email, type)
        hashed = response.properties.hashed_token
        assert connect().auth.verify_otp({"type": type, "token_hash": hashed}).user.email == email

    def test_links_of_a_new_email(self, dave, admin, connect):
        change = {"type": "email_change_new", "email": DAVE["email"], "new_email": "new@example.com"}
        hashed = admin.generate_link(change).properties.hashed_token
        verified = connect().auth.verify_otp({"type": "email_change", "token_hash": hashed})
        assert verified.user.email == "new@example.com"

    def test_sign_out(self, dave, admin, database):
        admin.sign_out(dave.get_session().access_token)
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_users_token_is_refused(self, dave, connect):
        with refused(403, "not_admin"):
            connect(dave.get_session().access_token).auth.admin.list_users()


class TestOAuthClients:
    @pytest.fixture
    def oauth(self, admin):
        return admin.oauth

    @pytest.fixture
    def made(self, oauth):
        wanted = CreateOAuthClientParams(client_name="Test", redirect_uris=["https://example.com/callback"])
        return oauth.create_client(wanted).client

    def test_create_and_get(self, oauth, made):
        assert (made.client_name, bool(made.client_id), bool(made.client_secret)) == ("Test", True, True)
        assert (made.client_type, made.registration_type) == ("confidential", "manual")
        read = oauth.get_client(made.client_id).client
        assert (read.client_name, read.client_id, read.client_secret) == ("Test", made.client_id, None)

    def test_list(self, oauth, made, service_role, client):
        # Its type of grants has no client_credentials.
        body = {"redirect_uris": [], "grant_types": ["client_credentials"]}
        client.post("/admin/oauth/clients", json=body, headers=service_role)
        listed = oauth.list_clients()
        assert [each.client_name for each in listed.clients] == ["", "Test"]
        page = oauth.list_clients(PageParams(page=2, per_page=1))
        assert [each.client_id for each in page.clients] == [made.client_id]
        assert (listed.aud, page.total, page.last_page) == ("authenticated", 2, 2)

    def test_list_is_empty(self, oauth):
        assert oauth.list_clients().clients == []

    def test_update(self, oauth, made):
        changed = oauth.update_client(made.client_id, UpdateOAuthClientParams(client_name="Another")).client
        assert (changed.client_name, changed.redirect_uris) == ("Another", made.redirect_uris)

    def test_delete(self, oauth, made):
        oauth.delete_client(made.client_id)
        with refused(404, "oauth_client_not_found", "OAuth client not found"):
            oauth.get_client(made.client_id)

    def test_regenerate_secret(self, oauth, made):
        again = oauth.regenerate_client_secret(made.client_id).client
        assert again.client_secret not in (None, made.client_secret)

    def test_redirect_uris_are_required(self, oauth):
        with refused(400, "validation_failed", "redirect_uris is required"):
            oauth.create_client(CreateOAuthClientParams(client_name="Test", redirect_uris=[]))
