"""Expired rows of each kind that the janitor removes."""

from tests.support.tables import Rows

DAVE = "'11111111-1111-1111-1111-111111111111'::uuid"
WIKI = "'22222222-2222-2222-2222-222222222222'::uuid"
OWNER, HASH = "md5(number::text)::uuid", "sha256(number::text::bytea)"
# What the janitor removes: rows that expired at `due`, by table. The last two are ended sessions, and
# sessions that were not refreshed. Each factor has its own user, because it is copied with all others of it.
EXPIRED = f"""
request_counts (key, count, expires_at) SELECT 'k' || number, 1, due
failure_counts (key, count, expires_at) SELECT 'k' || number, 1, due
one_time_tokens (id, user_id, purpose, target, expires_at) SELECT gen_random_uuid(), {DAVE}, 'recovery', 'x', due
typed_addresses (browser_hash, address, has_asked, expires_at) SELECT {HASH}, 'x', true, due
authorization_codes (user_id, code_hash, code_challenge, method, expires_at) SELECT {DAVE}, {HASH}, 'c', 'otp', due
oauth_flows (id, state_hash, provider, secrets, expires_at) SELECT gen_random_uuid(), {HASH}, 'acme', '', due
oauth_requests (id_hash, client_id, browser_hash, redirect_uri, scopes, expires_at) SELECT {HASH}, {WIKI}, '', '', '{{}}', due
oauth_clients (is_dynamic, token_endpoint_auth_method, redirect_uris, grant_types, created_at, updated_at) SELECT true, 'none', '{{}}', '{{refresh_token}}', due - interval '7 days', due - interval '7 days'
spent_id_tokens (token_hash, expires_at) SELECT {HASH}, due - interval '1 hour'
spent_captchas (nonce, expires_at) SELECT {HASH}, due
api_keys (id, user_id, name, key_mac, scopes, expires_at) SELECT gen_random_uuid(), {DAVE}, 'k', '', '{{}}', due - interval '30 days'
outbox (id, kind, outcome, finished_at) SELECT gen_random_uuid(), 'none', 'none', due - interval '30 days'
bulk_acts (user_id, act, targets, options, created_at) SELECT {DAVE}, 'ban', '{{}}', '{{}}', due - interval '1 day'
known_networks (user_id, network, seen_at) SELECT {DAVE}, number::text, due - interval '365 days'
audit_log (action, actor, at) SELECT 'signed_in', 'user', due - interval '400 days'
users (email, made_by, created_at) SELECT 'u' || number, 'signup', due - interval '30 days'
users (made_by, created_at) SELECT 'anonymous', due - interval '30 days'
factor_challenges (purpose, expires_at) SELECT 'passkey_authentication', due
users (id, email, made_by) SELECT {OWNER}, 'f' || number, 'administrator'
factors (id, user_id, factor_type, secret, created_at) SELECT {OWNER}, {OWNER}, 'totp', '', due - interval '5 minutes'
sessions (user_id, method, ended_at, end_reason) SELECT {DAVE}, 'otp', due - interval '30 days', 'logout'
sessions (user_id, method, created_at, refreshed_at) SELECT {DAVE}, 'otp', due - interval '61 days', due - interval '60 days'
""".strip().splitlines()  # fmt: skip


def fill(database: Rows, count: int, ages: str = "interval '1 minute'") -> None:
    """Insert `count` rows into each table that the janitor cleans; `ages` is SQL for how long ago row
    `number` expired.
    """
    statements = [
        f"INSERT INTO users (id, email, made_by) VALUES ({DAVE}, 'dave@example.com', 'administrator') ON CONFLICT DO NOTHING",
        f"INSERT INTO oauth_clients (id, token_endpoint_auth_method, redirect_uris, grant_types) VALUES ({WIKI}, 'none', '{{}}', '{{refresh_token}}') ON CONFLICT DO NOTHING",
    ]
    numbers = f"FROM generate_series(1, {count}) AS number, LATERAL (SELECT now() - ({ages}) AS due) AS at"
    for line in EXPIRED:
        # Fewer users: the plans of cascades, made for empty tables, read all deleted rows for each.
        some = " WHERE number <= 1200" if line.startswith(("users", "factors", "oauth_clients")) else ""
        statements.append(f"INSERT INTO {line} {numbers}{some}")
    database.insert_many(";".join(statements))
