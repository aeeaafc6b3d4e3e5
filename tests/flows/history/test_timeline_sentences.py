"""The sentences of a timeline for each action of the audit log, including unknown ones."""

from pathlib import Path

import pytest

from auth.core.text.catalogues import built_in
from auth.core.text.labels import names
from auth.web import audit
from tests.source.test_contract import CONTRACT
from tests.support.answers import NO_ID
from tests.support.audit import act, clear_history, refuse, timeline_texts
from tests.support.cases import cases

# The origin that `act` and `refuse` record.
IP = "198.51.100.7"
FROM = f", from {IP} (Firefox on Linux)"
# Actions, their details, and their sentences.
ACTS = [
    ("user_created", {}, "user created"),
    ("user_created", {"by": "signup"}, "user created by signing up"),
    ("user_created", {"by": "administrator", "role": "admin"}, "user created by an administrator"),
    ("user_created", {"by": "moonlight"}, "user created moonlight"),
    ("user_changed", {}, "metadata changed"),
    ("user_deleted", {}, "user deleted"),
    ("user_deleted", {"because": "declined"}, 'user deleted: "This wasn’t me"'),
    ("signed_in", {}, "signed in"),
    ("signed_in", {"method": "password", "session_id": NO_ID}, "signed in with a password"),
    ("signed_in", {"method": "otp"}, "signed in with a link or code"),
    (
        "signed_in",
        {"method": "otp", "purpose": "recovery"},
        "signed in with a link or code (password recovery)",
    ),
    ("signed_in", {"method": "oauth", "provider": "github"}, "signed in with GitHub"),
    ("signed_in", {"method": "oauth", "provider": "acme"}, "signed in with acme"),
    (
        "factor_added",
        {"factor_type": "totp", "factor": "Phone"},
        "second factor added: authenticator app Phone",
    ),
    ("factor_verified", {"factor_type": "totp"}, "second factor verified: authenticator app"),
    ("factor_removed", {"factor_type": "webauthn"}, "second factor removed: security key"),
    ("signed_in", {"method": "oauth_client"}, "signed in with a grant to an application"),
    ("signed_in", {"method": "oauth_client", "client": "My Wiki"}, "signed in to “My Wiki”"),
    ("grant_added", {"client": "Wiki", "scopes": "openid"}, "application allowed: Wiki (openid)"),
    ("grant_removed", {"client": "Wiki"}, "application removed: Wiki"),
    ("api_key_added", {"api_key": "CI", "scopes": "read"}, "API key added: CI, scopes: read"),
    (
        "api_key_added",
        {"api_key": "CI deploy bot", "scopes": "CI deploy bot"},
        "API key added: “CI deploy bot”, scopes: “CI deploy bot”",
    ),
    ("api_key_added", {"api_key": "CI", "scopes": ""}, "API key added: CI"),
    ("api_key_removed", {"api_key": "CI"}, "API key removed: CI"),
    ("api_key_used", {"api_key": "CI"}, "API key used for the first time that day: CI"),
    ("client_created", {"client": "Wiki"}, "OAuth client created: Wiki"),
    ("client_changed", {"client": "Wiki"}, "OAuth client changed: Wiki"),
    ("client_deleted", {"client": "Wiki"}, "OAuth client deleted: Wiki"),
    (
        "client_deleted",
        {"because": "unallowed"},
        "OAuth client deleted (registered itself, and nobody allows it)",
    ),
    ("client_secret_replaced", {}, "secret of an OAuth client replaced"),
    (
        "client_secret_replaced",
        {"client": "Wiki", "overlap": True},
        "secret of an OAuth client replaced: Wiki; the old one works for a day more",
    ),
    ("client_secret_ended", {"client": "Wiki"}, "old secret of an OAuth client ended: Wiki"),
    ("recovery_codes_created", {}, "recovery codes created"),
    ("recovery_codes_removed", {}, "recovery codes removed"),
    ("recovery_code_used", {"remaining": 9}, "recovery code used, 9 left"),
    ("signed_out", {"scope": "global"}, "signed out everywhere"),
    ("signed_out", {"scope": "local"}, "signed out here"),
    ("signed_out", {"scope": "others"}, "signed out everywhere else"),
    ("session_ended", {"session_id": NO_ID}, "session ended: ended by the user"),
    ("message_resent", {"kind": "recovery"}, "message sent again (password recovery)"),
    (
        "refresh_token_reused",
        {"session_id": NO_ID},
        "session ended: refresh token reused after rotation",
    ),
    (
        "refresh_token_repeated",
        {},
        "previous refresh token sent by another client, which got the current one",
    ),
    ("refresh_answer_lost", {}, "previous refresh token sent again after the response was lost"),
    ("authorization_code_reused", {}, "session ended: authorization code reused"),
    ("password_changed", {}, "password changed"),
    ("email_change_requested", {"new_email": "b@example.com"}, "email change requested to b@example.com"),
    ("phone_change_requested", {"new_phone": "+4917012345"}, "phone change requested to +4917012345"),
    ("email_change_withdrawn", {"new_email": "b@example.com"}, "email change to b@example.com withdrawn"),
    ("phone_change_withdrawn", {"new_phone": "+4917012345"}, "phone change to +4917012345 withdrawn"),
    ("email_change_declined", {"new_address": "b@example.com"}, "new email declined by its owner"),
    ("email_changed", {"old_email": "a@example.com"}, "email changed from a@example.com"),
    (
        "email_changed",
        {"method": "otp", "old_address": "a@example.com", "new_address": "b@example.com"},
        "email changed with a link or code from a@example.com to b@example.com",
    ),
    ("phone_changed", {}, "phone changed"),
    ("email_confirmed", {}, "email confirmed"),
    ("phone_confirmed", {}, "phone confirmed"),
    ("email_unconfirmed", {}, "email marked unconfirmed"),
    ("phone_unconfirmed", {}, "phone marked unconfirmed"),
    ("email_change_undone", {}, "email change undone with the link sent to the old address"),
    ("change_undone", {}, "change undone with the link in its notice"),
    (
        "change_undone",
        {"removed": ["phone +4917012345", "totp", "passkey A, by the service role key"]},
        "change undone with the link in its notice, which removed phone +4917012345, authenticator app, passkey "
        "“A, by the service role key”",
    ),
    ("email_removed", {"old_email": "a@example.com"}, "email removed: a@example.com"),
    ("phone_removed", {"old_phone": "+4917012345"}, "phone removed: +4917012345"),
    ("identity_linked", {"provider": "google"}, "identity linked (Google)"),
    ("identity_unlinked", {"provider": "google"}, "identity unlinked (Google)"),
    (
        "role_changed",
        {"old_role": "authenticated", "role": "admin"},
        "role changed from authenticated to admin",
    ),
    ("banned", {"banned_until": "2026-01-02T03:04:05.000000Z"}, "banned until 2026-01-02 03:04:05 UTC"),
    ("banned", {"banned_until": "9999-12-31T23:59:59.000000Z"}, "banned permanently"),
    ("users_imported", {"count": 3, "administrators": 0}, "users imported: 3"),
    ("users_imported", {"count": 3, "administrators": 1}, "users imported: 3, of these administrators: 1"),
    ("users_exported", {"count": 3}, "users exported: 3"),
    ("lock_cleared", {}, "lock cleared"),
    ("unbanned", {}, "ban lifted"),
    ("passkey_added", {"passkey": "Laptop"}, "passkey added: Laptop"),
    ("passkey_removed", {"old_passkey": "Laptop"}, "passkey removed: Laptop"),
    (
        "passkey_added",
        {"passkey": "\u202eA”, by the service role key, from 192.0.2.1"},
        'passkey added: “ A", by the service role key, from 192.0.2.1”',
    ),
    (
        "passkey_renamed",
        {"passkey": "Laptop", "old_passkey": "Passkey"},
        "passkey renamed: Laptop (was Passkey)",
    ),
    (
        "factor_renamed",
        {"factor": "Tablet", "old_factor": "Phone", "factor_type": "totp"},
        "second factor renamed: Tablet (was Phone)",
    ),
    (
        "passkey_counter_fell",
        {"passkey": "Laptop"},
        "passkey refused as a possible copy, because its counter went down: Laptop",
    ),
    (
        "passkey_counter_fell",
        {"passkey": "Laptop", "is_synced": True},
        "counter of a synced passkey went down: Laptop",
    ),
    ("message_requested", {"purpose": "recovery", "is_sent": True}, "message requested (password recovery)"),
    (
        "message_requested",
        {"purpose": "recovery", "is_sent": False},
        "message requested (password recovery), but not sent",
    ),
    ("reauthenticated", {}, "reauthenticated"),
    ("link_generated", {"purpose": "magiclink"}, "link generated for an administrator (sign-in link)"),
    ("invited", {}, "invited"),
    ("webhook_created", {}, "webhook created"),
    ("provider_added", {"provider": "custom:acme"}, "provider added: custom:acme"),
    ("provider_changed", {"provider": "custom:acme"}, "provider changed: custom:acme"),
    ("provider_enabled", {"provider": "custom:acme"}, "provider enabled: custom:acme"),
    ("provider_disabled", {"provider": "custom:acme"}, "provider disabled: custom:acme"),
    ("provider_deleted", {"provider": "custom:acme"}, "provider deleted: custom:acme"),
    ("user_adopted", {"provider": "custom:acme"}, "moved to a customer’s provider: custom:acme"),
    ("webhook_changed", {}, "webhook changed"),
    ("webhook_secret_rotated", {}, "webhook secret rotated"),
    ("webhook_deleted", {}, "webhook deleted"),
    ("webhook_tested", {}, "test event requested"),
    ("webhook_enabled", {}, "webhook enabled"),
    ("webhook_disabled", {}, "webhook disabled"),
    ("event_redelivered", {}, "event sent again"),
    ("service_role_jwt_used", {"kid": "k1"}, "JWT used as the service role key"),
    ("key_rotated", {}, "new key created"),
    ("key_added", {}, "key added"),
    ("key_removed", {}, "key removed"),
    ("moon_landed_on", {"flag": True}, "moon landed on"),
]
REFUSALS: list[tuple[str, str, dict[str, int], str]] = [
    (
        "factor_refused",
        "mfa_verification_failed",
        {"tries": 3, "of": 20},
        "wrong or already used code, attempt 3 of 20",
    ),
    ("sign_in_refused", "invalid_credentials", {"tries": 3, "of": 10}, "wrong password, attempt 3 of 10"),
    ("sign_in_refused", "invalid_credentials", {"tries": 17, "of": 30}, "wrong password, attempt 17 of 30"),
    ("sign_in_refused", "invalid_credentials", {}, "wrong password"),
    ("sign_in_refused", "email_not_confirmed", {"tries": 1, "of": 10}, "email not confirmed"),
    ("sign_in_refused", "over_request_rate_limit", {"tries": 11, "of": 10}, "too many attempts"),
    ("refresh_refused", "refresh_token_not_found", {}, "session ended"),
    ("sign_up_refused", "user_already_exists", {}, "address already taken"),
    ("verification_refused", "otp_expired", {}, "wrong, used or expired"),
    ("change_refused", "same_password", {}, "new password same as the old one"),
    ("oauth_refused", "bad_oauth_callback", {}, "refused by the provider, or its response was invalid"),
    ("admin_refused", "not_admin", {}, "not an administrator"),
    ("application_refused", "oauth_client_not_found", {}, "unknown or unusable"),
    ("landing_refused", "no_fuel", {}, "no fuel"),
]
REFUSED = {
    "factor_refused": "second factor not accepted",
    "sign_in_refused": "sign-in failed",
    "refresh_refused": "refresh failed",
    "sign_up_refused": "sign-up failed",
    "verification_refused": "link or code not accepted",
    "change_refused": "change failed",
    "oauth_refused": "provider sign-in failed",
    "admin_refused": "administrator request denied",
    "application_refused": "application access denied",
    "landing_refused": "landing refused",
}


@pytest.fixture
def tell(client, service_role):
    return lambda id: client.get(f"/admin/users/{id}/timeline", headers=service_role)


class TestSentences:
    @cases(("action", "details", "sentence"), ACTS)
    def test_act_has_a_sentence(self, tell, database, alice, action, details, sentence):
        clear_history(database)
        act(database, alice.id, action, origin={"actor": "user", "actor_id": alice.id}, **details)
        assert timeline_texts(tell(alice.id)) == [sentence + FROM]

    @cases(("action", "reason", "details", "why"), REFUSALS)
    def test_refusal_has_a_sentence_with_its_count(self, tell, database, alice, action, reason, details, why):
        clear_history(database)
        refuse(database, alice.id, action, reason, **details)
        assert timeline_texts(tell(alice.id)) == [f"{REFUSED[action]}: {why}{FROM}"]
        database.run("UPDATE audit_log SET count = 40")
        many = f"{REFUSED[action]}: {why} (40 times in a minute){FROM}"
        assert timeline_texts(tell(alice.id)) == [many]

    def test_maker_of_a_user_is_named_once(self, tell, database, alice):
        clear_history(database)
        act(
            database,
            alice.id,
            "user_created",
            origin={"actor": "service_role", "ip": None},
            by="administrator",
        )
        assert timeline_texts(tell(alice.id)) == ["user created by an administrator, the service role key"]

    @cases(
        ("origin", "sentence"),
        [
            ({"actor": "service_role"}, "banned, by the service role key" + FROM),
            ({"actor": "service_role", "user_agent": None}, f"banned, by the service role key, from {IP}"),
            (
                {"actor": "service_role", "user_agent": "curl/8"},
                f"banned, by the service role key, from {IP} (curl)",
            ),
            ({"actor": "user", "actor_id": NO_ID}, f"banned, by user {NO_ID}" + FROM),
            ({"actor": "command", "ip": None, "user_agent": None}, "banned, by a command"),
            (
                {"actor": "command", "ip": None, "user_agent": None, "system_user": "ann"},
                "banned, by a command of ann",
            ),
            ({"actor": "service", "ip": None, "user_agent": None}, "banned, by the service itself"),
        ],
    )
    def test_sentence_names_actor_and_network(self, tell, database, alice, origin, sentence):
        clear_history(database)
        act(database, alice.id, "banned", origin=origin)
        assert timeline_texts(tell(alice.id)) == [sentence]

    def test_every_action_with_details_is_tested_and_every_reason_has_words(self):
        texts = built_in("console")["en"]
        with_details = {action for action in names("acts") if "{" in texts[f"acts.{action}"]}
        untested = with_details - {action for action, _, _ in ACTS}
        assert [f"{Path(__file__).name}: ACTS has no sentence of {action}" for action in untested] == []
        assert {action for action, *_ in REFUSALS} >= names("refused")
        codes = set(CONTRACT["components"]["schemas"]["ErrorCode"]["enum"])
        assert audit._REASONS <= names("reasons") <= codes
