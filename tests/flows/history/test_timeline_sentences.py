"""The sentences of a timeline: one of each form, including those of unknown actions."""

import pytest

from auth.core.text.labels import names
from auth.web import audit
from tests.source.test_contract import CONTRACT
from tests.support.answers import NO_ID
from tests.support.audit import clear_history, record, refuse, timeline_texts
from tests.support.cases import cases

# The origin that `record` and `refuse` write.
IP = "198.51.100.7"
FROM = f", from {IP} (Firefox on Linux)"
# Actions, their details, and their sentences: one of each form.
ACTS = [
    ("user_created", {}, "user created"),
    ("user_created", {"by": "administrator", "role": "admin"}, "user created by an administrator"),
    ("user_created", {"by": "moonlight"}, "user created moonlight"),
    ("user_deleted", {"because": "declined"}, 'user deleted: "This wasn’t me"'),
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
    ("factor_removed", {"factor_type": "webauthn"}, "second factor removed: security key"),
    ("signed_in", {"method": "oauth_client", "client": "My Wiki"}, "signed in to “My Wiki”"),
    ("grant_added", {"client": "Wiki", "scopes": "openid"}, "application allowed: Wiki (openid)"),
    (
        "api_key_added",
        {"api_key": "CI deploy bot", "scopes": "CI deploy bot"},
        "API key added: “CI deploy bot”, scopes: “CI deploy bot”",
    ),
    (
        "client_deleted",
        {"because": "unallowed"},
        "OAuth client deleted (registered itself, and nobody allows it)",
    ),
    (
        "client_secret_replaced",
        {"client": "Wiki", "overlap": True},
        "secret of an OAuth client replaced: Wiki; the old one works for a day more",
    ),
    ("recovery_code_used", {"remaining": 9}, "recovery code used, 9 left"),
    ("signed_out", {"scope": "global"}, "signed out everywhere"),
    ("session_ended", {"session_id": NO_ID}, "session ended: ended by the user"),
    ("message_resent", {"kind": "recovery"}, "message sent again (password recovery)"),
    ("email_change_requested", {"new_email": "b@example.com"}, "email change requested to b@example.com"),
    (
        "email_changed",
        {"method": "otp", "old_address": "a@example.com", "new_address": "b@example.com"},
        "email changed with a link or code from a@example.com to b@example.com",
    ),
    (
        "change_undone",
        {"removed": ["phone +4917012345", "totp", "passkey A, by the service role key"]},
        "change undone with the link in its notice, which removed phone +4917012345, authenticator app, passkey "
        "“A, by the service role key”",
    ),
    ("phone_removed", {"old_phone": "+4917012345"}, "phone removed: +4917012345"),
    ("identity_linked", {"provider": "google"}, "identity linked (Google)"),
    (
        "role_changed",
        {"old_role": "authenticated", "role": "admin"},
        "role changed from authenticated to admin",
    ),
    ("banned", {"banned_until": "2026-01-02T03:04:05.000000Z"}, "banned until 2026-01-02 03:04:05 UTC"),
    ("banned", {"banned_until": "9999-12-31T23:59:59.000000Z"}, "banned permanently"),
    ("users_imported", {"count": 3, "administrators": 0}, "users imported: 3"),
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
        "passkey_counter_fell",
        {"passkey": "Laptop", "is_synced": True},
        "counter of a synced passkey went down: Laptop",
    ),
    (
        "message_requested",
        {"purpose": "recovery", "is_sent": False},
        "message requested (password recovery), but not sent",
    ),
    ("provider_added", {"provider": "custom:acme"}, "provider added: custom:acme"),
    (
        "membership_added",
        {"organization": {"id": NO_ID, "slug": "acme"}, "role": "admin", "added_by": "founder"},
        "joined an organization: acme as admin",
    ),
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
    ("sign_in_refused", "invalid_credentials", {}, "wrong password"),
    ("sign_in_refused", "over_request_rate_limit", {"tries": 11, "of": 10}, "too many attempts"),
    ("admin_refused", "not_admin", {}, "not an administrator"),
    ("landing_refused", "no_fuel", {}, "no fuel"),
]
REFUSED = {
    "factor_refused": "second factor not accepted",
    "sign_in_refused": "sign-in failed",
    "admin_refused": "administrator request denied",
    "landing_refused": "landing refused",
}


@pytest.fixture
def get_timeline(client, service_role):
    return lambda id: client.get(f"/admin/users/{id}/timeline", headers=service_role)


class TestSentences:
    @cases(("action", "details", "sentence"), ACTS)
    def test_act_has_a_sentence(self, get_timeline, database, alice, action, details, sentence):
        clear_history(database)
        record(database, alice.id, action, origin={"actor": "user", "actor_id": alice.id}, **details)
        assert timeline_texts(get_timeline(alice.id)) == [sentence + FROM]

    @cases(("action", "reason", "details", "cause"), REFUSALS)
    def test_refusal_has_a_sentence_with_its_count(
        self, get_timeline, database, alice, action, reason, details, cause
    ):
        clear_history(database)
        refuse(database, alice.id, action, reason, **details)
        assert timeline_texts(get_timeline(alice.id)) == [f"{REFUSED[action]}: {cause}{FROM}"]
        database.run("UPDATE audit_log SET count = 40")
        sentence = f"{REFUSED[action]}: {cause} (40 times in a minute){FROM}"
        assert timeline_texts(get_timeline(alice.id)) == [sentence]

    def test_maker_of_a_user_is_named_once(self, get_timeline, database, alice):
        clear_history(database)
        record(
            database,
            alice.id,
            "user_created",
            origin={"actor": "service_role", "ip": None},
            by="administrator",
        )
        assert timeline_texts(get_timeline(alice.id)) == [
            "user created by an administrator, the service role key"
        ]

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
    def test_sentence_names_actor_and_network(self, get_timeline, database, alice, origin, sentence):
        clear_history(database)
        record(database, alice.id, "banned", origin=origin)
        assert timeline_texts(get_timeline(alice.id)) == [sentence]

    def test_every_reason_has_words(self):
        codes = set(CONTRACT["components"]["schemas"]["ErrorCode"]["enum"])
        assert audit._REASONS <= names("reasons") <= codes
