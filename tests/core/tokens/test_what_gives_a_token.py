"""Sessions, sessions of applications, and API keys give a token, or do not, after whatever happens to their user. Rows are changed where the API would end them too, because only the verdict is tested here."""

import pytest

from tests.support.api_keys import make_key, token_of, use
from tests.support.factors import set_up
from tests.support.openid import bearer, claims_of, granted_code, make_client
from tests.support.users import refresh

SETTINGS = {"AUTH_API_KEYS": "true"}
BAN = "UPDATE users SET banned_until = now() + interval '1 hour'"
PROMOTION = "UPDATE users SET role = 'admin', admin_since = now()"
DEMOTION = "UPDATE users SET role = 'authenticated', admin_since = NULL"
FACTOR = (
    "INSERT INTO factors (id, user_id, factor_type, verified_at, secret)"
    " SELECT gen_random_uuid(), id, 'totp', now(), '' FROM users"
)
PASSKEY = (
    "INSERT INTO factors (id, user_id, factor_type, verified_at, credential_id, public_key, sign_count)"
    " SELECT gen_random_uuid(), id, 'passkey', now(), '1', '1', 0 FROM users"
)
EXPIRY = (
    "UPDATE sessions SET refreshed_at = now() - interval '30 days';"
    " UPDATE api_keys SET expires_at = now() - interval '1 second'"
)
END = "UPDATE sessions SET ended_at = now(), end_reason = 'logout'; DELETE FROM api_keys"

# The answers of a refresh (for a key, an exchange), a use, and an introspection.
GIVES = ("ok", "ok", "active")
SESSION_ENDED = ("400 refresh_token_not_found", "401 session_not_found", "inactive")
CLIENT_REFUSED = ("400 invalid_grant", "401 invalid_token", "inactive")
KEY_ENDED = ("401 invalid_credentials", "401 session_not_found", "inactive")
BANNED = ("403 user_banned", "403 user_banned", "inactive")
# Below the level, a session gets tokens for the second step alone.
BELOW = {
    "session": ("second_step", "403 insufficient_aal", "inactive"),
    "client": CLIENT_REFUSED,
    "key": ("403 insufficient_aal", "403 insufficient_aal", "inactive"),
}
ALL = {"session": GIVES, "client": GIVES, "key": GIVES}
SESSION_EXPIRED = ("400 session_expired", "401 session_expired", "inactive")
EXPIRED = {"session": SESSION_EXPIRED, "client": CLIENT_REFUSED, "key": KEY_ENDED}
DELETED = {
    "session": ("400 refresh_token_not_found", "401 user_not_found", "inactive"),
    "client": CLIENT_REFUSED,
    "key": ("401 invalid_credentials", "401 user_not_found", "inactive"),
}

# A change, AUTH_MFA_REQUIRED from then on, and what each token gives.
AT_AAL1 = {
    "nothing": ("SELECT", "none", ALL),
    "ban": (
        BAN,
        "none",
        {"session": ("400 user_banned", *BANNED[1:]), "client": CLIENT_REFUSED, "key": BANNED},
    ),
    "a factor is demanded of all": ("SELECT", "all", BELOW),
    "a factor is demanded of administrators": ("SELECT", "admins", ALL),
    "the user becomes an administrator": (PROMOTION, "admins", BELOW),
    "the administrator is demoted": (f"{PROMOTION}; {DEMOTION}", "admins", ALL),
    "the user verifies a factor": (FACTOR, "none", BELOW),
    "the user adds a passkey": (PASSKEY, "none", ALL),
    "expiry": (EXPIRY, "none", EXPIRED),
    "expiry where a factor is demanded": (EXPIRY, "all", EXPIRED),
    "end": (END, "none", {"session": SESSION_ENDED, "client": CLIENT_REFUSED, "key": KEY_ENDED}),
    "deletion of the user": ("DELETE FROM users", "none", DELETED),
    "loss of the role that the client demands": (
        "UPDATE oauth_clients SET allowed_roles = '{staff}'",
        "none",
        ALL | {"client": CLIENT_REFUSED},
    ),
}
AT_AAL2 = {
    name: AT_AAL1[name] if name in ("ban", "end", "expiry") else (*AT_AAL1[name][:2], ALL)
    for name in AT_AAL1
    if not name.startswith(("loss", "deletion", "expiry where"))
}


@pytest.fixture
def client(make_app):
    return make_app(**SETTINGS).test_client()


class TokensOfSession:
    """Tokens of each kind that one session has given."""

    def __init__(self, session, database):
        self.session, self.client = session, make_client(database)
        code = granted_code(database, self.client, session)
        self.client_tokens = self.client.redeem(session.client, code).json
        _, self.key = make_key(session)
        self.key_token = token_of(session.client, self.key)

    def answers(self, http, service_role):
        """Return what a service with other settings answers to each token."""

        def active(*tokens):
            answers = [
                http.post("/introspect", json={"token": each}, headers=service_role) for each in tokens
            ]
            (is_active,) = {answer.json["active"] for answer in answers}
            return "active" if is_active else "inactive"

        headers = bearer(self.session.access_token)
        return {
            "session": (
                _answer_of(refresh(http, self.session.refresh_token)),
                _answer_of(http.get("/sessions", headers=headers)),
                active(self.session.access_token),
            ),
            "client": (
                _answer_of(self.client.refresh(http, self.client_tokens["refresh_token"])),
                _answer_of(http.get("/oauth/userinfo", headers=bearer(self.client_tokens["access_token"]))),
                active(self.client_tokens["access_token"]),
            ),
            "key": (
                _answer_of(use(http, self.key)),
                _answer_of(http.get("/user", headers=bearer(self.key_token))),
                active(self.key, self.key_token),
            ),
        }


def _answer_of(response):
    if response.status_code != 200:
        body = response.json
        return f"{response.status_code} {body.get('error') or body['error_code']}"
    is_for_step = (
        "next_aal" in claims_of(response.json["access_token"]) if "access_token" in response.json else False
    )
    return "second_step" if is_for_step else "ok"


@pytest.mark.parametrize("name", AT_AAL1)
def test_session_client_and_key_give_a_token_only_while_all_is_well(
    make_app, client, alice, database, service_role, name
):
    change, required, expected = AT_AAL1[name]
    tokens = TokensOfSession(alice.open_session(client), database)
    database.run(change)
    later = make_app(**SETTINGS, AUTH_MFA_REQUIRED=required).test_client()
    assert tokens.answers(later, service_role) == expected


@pytest.mark.parametrize("name", AT_AAL2)
def test_tokens_of_a_session_with_a_second_factor_meet_each_demand(
    make_app, client, alice, database, service_role, name
):
    change, required, expected = AT_AAL2[name]
    _, raised = set_up(alice.open_session(client))
    tokens = TokensOfSession(raised, database)
    database.run(change)
    later = make_app(**SETTINGS, AUTH_MFA_REQUIRED=required).test_client()
    assert tokens.answers(later, service_role) == expected


def test_nothing_that_a_session_opens_has_a_higher_level(client, alice, database):
    levels = "SELECT s.aal, k.aal AS of_key FROM sessions AS s, api_keys AS k WHERE s.grant_id IS NOT NULL"
    session = alice.open_session(client)
    tokens = TokensOfSession(session, database)
    assert database.one(levels) == ("aal1", "aal1")
    # A first factor raises the session, and ends both.
    _, raised = set_up(session)
    live = database.count("sessions", "grant_id IS NOT NULL AND ended_at IS NULL")
    assert (database.count("api_keys"), live) == (0, 0)
    database.run("DELETE FROM oauth_grants")
    tokens = TokensOfSession(raised, database)
    assert database.one(levels) == ("aal2", "aal2")
    assert (claims_of(tokens.client_tokens["access_token"])["acr"], claims_of(tokens.key_token)["aal"]) == (
        "aal2",
        "aal1",
    )


@pytest.mark.parametrize("required", ["none", "all"])
def test_refused_key_records_no_use_and_works_when_the_demand_ends(
    make_app, client, alice, database, required
):
    _, key = make_key(alice.open_session(client))
    later = make_app(**SETTINGS, AUTH_MFA_REQUIRED=required).test_client()
    uses = 1 if required == "none" else 0
    assert use(later, key).status_code == (200 if uses else 403)
    assert database.count("api_keys", "last_used_on IS NOT NULL") == uses
    assert database.count("audit_log", "action = 'api_key_used'") == uses
    refusals = database.all("SELECT user_id, reason FROM audit_log WHERE action = 'sign_in_refused'")
    assert refusals == ([] if uses else [(alice.id, "insufficient_aal")])
    assert use(client, key).status_code == 200


@pytest.mark.parametrize(("change", "required"), [(FACTOR, "none"), ("SELECT", "all"), (PROMOTION, "admins")])
def test_code_of_a_session_below_the_demand_is_void(make_app, client, alice, database, change, required):
    grafana = make_client(database)
    code = granted_code(database, grafana, alice.open_session(client))
    database.run(change)
    later = make_app(**SETTINGS, AUTH_MFA_REQUIRED=required).test_client()
    response = grafana.redeem(later, code)
    assert (response.status_code, response.json["error"]) == (400, "invalid_grant")
    assert database.count("sessions", "grant_id IS NOT NULL") == 0
