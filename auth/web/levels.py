"""The level that each operation requires of its caller's session. The SQL function `lacks_level` enforces
it."""

from enum import StrEnum


class Level(StrEnum):
    """A level of assurance, as a statement's parameter `caller_level`.

    AAL1 requires `aal2` of users with an authenticator app or a security key; AAL2, ENROL and PROOF of users
    with a passkey too; SECOND_FACTOR of all users. If `AUTH_MFA_REQUIRED` demands a factor of the user, all
    but SESSION and ENROL do. Only SESSION and ENROL admit tokens of the audience `second_step`. ENROL, PROOF
    and SECOND_FACTOR also require a recent proof.
    """

    ANYONE = "anyone"
    SERVICE_ROLE = "service_role"
    SESSION = "session"
    AAL1 = "aal1"
    AAL2 = "aal2"
    ENROL = "enrol"
    PROOF = "proof"
    SECOND_FACTOR = "second_factor"


# By the name of the view. A view that is not here cannot be decorated with a guard.
LEVELS = {
    **dict.fromkeys(
        (
            *("welcome", "docs", "health", "get_settings", "openapi", "jwks", "oauth_metadata"),
            *("signup", "magiclink", "otp", "recover", "resend", "token", "login_admin"),
            *("verify", "verify_link", "authorize", "callback", "sso", "linking_page", "begin_linking"),
            *("begin_passkey_sign_in", "finish_passkey_sign_in"),
        ),
        Level.ANYONE,
    ),
    **dict.fromkeys(
        (
            *("introspect", "list_dev_inbox", "get_dev_inbox_message"),
            *("update_any_user", "delete_any_user", "logout_any_user", "generate_link", "invite"),
            *("list_any_passkeys", "delete_any_passkey", "list_any_factors", "delete_any_factor"),
            *("create_webhook", "list_webhooks", "get_webhook", "update_webhook", "delete_webhook"),
            *("list_deliveries", "redeliver_event", "test_webhook"),
        ),
        Level.SERVICE_ROLE,
    ),
    # The operations that a user needs to reach `aal2`, to sign out everywhere, and to undo what a thief
    # added.
    "get_user": Level.SESSION,
    "reauthenticate": Level.SESSION,
    "confirm_reauthentication": Level.SESSION,
    "logout": Level.SESSION,
    "get_recent_changes": Level.SESSION,
    "challenge_factor": Level.SESSION,
    "verify_factor": Level.SESSION,
    "get_recovery_codes": Level.SESSION,
    "verify_recovery_code": Level.SESSION,
    "enrol_factor": Level.ENROL,
    "create_recovery_codes": Level.SECOND_FACTOR,
    # The SQL function `refusal_of_act` decides by the content of the request.
    "update_user": Level.SESSION,
    "delete_factor": Level.SESSION,
    "delete_identity": Level.SESSION,
    "delete_passkey": Level.SESSION,
    "list_sessions": Level.AAL1,
    "delete_session": Level.AAL2,
    "delete_user": Level.AAL2,
    "authorize_identity": Level.PROOF,
    "begin_passkey_registration": Level.ENROL,
    "finish_passkey_registration": Level.ENROL,
    "list_passkeys": Level.SESSION,
    "rename_passkey": Level.AAL2,
    **dict.fromkeys(
        (
            *("create_user", "list_users", "get_any_user", "list_recent_changes"),
            *("list_audit", "get_timeline"),
        ),
        Level.AAL2,
    ),
    # The pages.
    **dict.fromkeys(
        (
            *("brand_css", "brand_logo", "preferences", "show_sign_in", "submit_sign_in"),
            *("request_sign_in_code", "submit_sign_in_code", "show_sign_up", "submit_sign_up"),
            *("request_sign_up_code", "submit_sign_up_code", "show_forgot_password"),
            *("submit_forgot_password", "submit_recovery_code", "begin_passkey_page", "submit_passkey"),
            *("show_waiting", "submit_waiting", "change_password"),
        ),
        Level.ANYONE,
    ),
    **dict.fromkeys(
        (
            *("sign_out", "show_confirm", "submit_confirm", "request_proof_code", "show_second_step"),
            *("submit_second_step", "submit_recovery_second_step", "submit_passkey_second_step"),
            "submit_key_second_step",
            *("show_two_step", "finish_two_step", "show_changes", "remove_change", "undo_changes"),
            *("submit_passkey_proof", "remove_email", "remove_phone", "disconnect_provider"),
            *("remove_two_step", "remove_passkey"),
        ),
        Level.SESSION,
    ),
    **dict.fromkeys(
        (
            *("continue_signed_in", "show_account", "download_data", "show_name", "submit_name"),
            *("show_new_password", "submit_new_password", "submit_email_code", "submit_phone_code"),
            *("show_email_waiting", "submit_email_waiting"),
            *("end_device", "end_other_devices", "show_delete", "submit_delete"),
        ),
        Level.AAL2,
    ),
    **dict.fromkeys(
        (*("show_email", "submit_email", "show_phone", "submit_phone", "connect_provider"),),
        Level.PROOF,
    ),
    "new_recovery_codes": Level.SECOND_FACTOR,
    "skip_second_step": Level.AAL1,
    # The first factor, which AUTH_MFA_REQUIRED may ask for.
    **dict.fromkeys(("begin_two_step", "show_new_passkey", "submit_new_passkey"), Level.ENROL),
}
