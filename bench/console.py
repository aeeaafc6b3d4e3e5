"""The console with a million users, three million sessions and ten million audit rows."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlencode

from auth.core.tokens import one_time
from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.large import FEW, USERS, large_service, seed
from bench.load import Load
from bench.service import BenchService

_SECONDS = 1
# Users of every kind that the filters distinguish: in addition to the ordinary ones, 40,000 who are
# unconfirmed, are anonymous, or have a provider or a factor; 1,000 of them are banned. One user is busy.
_OTHERS = """
INSERT INTO users (id, email, phone, email_confirmed_at, made_by, created_at, last_sign_in_at, banned_until)
SELECT md5('other' || n)::uuid, CASE WHEN n % 4 <> 1 THEN 'other' || n || '@elsewhere.example' END,
       CASE WHEN n % 4 = 2 THEN '+4917' || 1000000 + n END, CASE WHEN n % 4 > 1 THEN now() END,
       CASE WHEN n % 4 = 1 THEN 'anonymous' ELSE 'signup' END, now() - n * interval '25 seconds',
       CASE WHEN n % 4 > 0 THEN now() - n * interval '10 minutes' END,
       CASE WHEN n % 40 = 0 THEN now() + interval '1 year' END
  FROM generate_series(1, 40000) AS n;
INSERT INTO identities (user_id, provider, subject, identity_data)
SELECT md5('other' || n)::uuid, CASE WHEN n % 400 = 2 THEN 'github' ELSE 'google' END, n, '{}'
  FROM generate_series(2, 40000, 4) AS n;
INSERT INTO factors (id, user_id, factor_type, verified_at, secret)
SELECT gen_random_uuid(), md5('other' || n)::uuid, 'totp', now(), '' FROM generate_series(3, 40000, 4) AS n;
INSERT INTO sessions (user_id, method, ip, user_agent)
SELECT md5('other3')::uuid, 'password', '127.0.0.1', 'Mozilla/5.0' FROM generate_series(1, 300);
INSERT INTO audit_log (at, action, reason, user_id, actor, actor_id, ip, user_agent, details)
SELECT now() - n * interval '7 minutes', CASE WHEN n % 3 = 0 THEN 'sign_in_refused' ELSE 'signed_in' END,
       CASE WHEN n % 3 = 0 THEN 'invalid_credentials' END, md5('other3')::uuid, 'user', md5('other3')::uuid,
       '127.0.0.1', 'Mozilla/5.0', '{"method": "password"}'
  FROM generate_series(1, 10000) AS n;
INSERT INTO webhooks (id, url, events, secret)
SELECT md5('webhook' || n)::uuid, 'https://example.com/' || n, '{auth.login}', '' FROM generate_series(1, 5) AS n;
INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, token_endpoint_auth_method)
SELECT md5('client' || n)::uuid, 'Application ' || n, '{https://app.example/}', '{authorization_code}', 'none'
  FROM generate_series(1, 30) AS n;
INSERT INTO oauth_grants (user_id, client_id, scopes, granted_at)
SELECT md5('user' || m)::uuid, md5('client' || n)::uuid, '{openid,email}', now() - m * interval '1 minute'
  FROM generate_series(1, 30) AS n CROSS JOIN generate_series(1, 2000) AS m;
INSERT INTO sessions (user_id, method, grant_id, scopes, auth_time)
SELECT user_id, 'oauth_client', id, scopes, now() FROM oauth_grants;
INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, created_at, finished_at, attempts, last_error)
SELECT gen_random_uuid(), md5('user' || 1 + n % 1000000)::uuid, CASE WHEN n % 3 = 0 THEN 'webhook' ELSE 'email' END,
       CASE WHEN n % 3 = 0 THEN 'auth.login' ELSE 'recovery' END,
       CASE WHEN n % 3 = 0 THEN md5('webhook' || 1 + n % 5)::uuid::text ELSE 'user' || n || '@bench.example' END,
       CASE WHEN n % 500 = 0 THEN 'failed' ELSE 'sent' END,
       now() - n * interval '5 seconds', now() - n * interval '5 seconds', 1,
       CASE WHEN n % 500 = 0 THEN 'no such mailbox' END
  FROM generate_series(1, 300000) AS n;
VACUUM ANALYZE
"""
_ADMINISTRATOR = """
WITH made AS (
  INSERT INTO users (email, email_confirmed_at, email_proved, role, admin_since, made_by)
  VALUES ('admin@bench.example', now(), true, 'admin', now(), 'administrator')
  ON CONFLICT (email) DO UPDATE SET role = 'admin'
  RETURNING id
), opened AS (
  INSERT INTO sessions (user_id, method) SELECT id, 'password' FROM made RETURNING id, user_id
)
INSERT INTO browser_sessions (token_hash, user_id, session_id) SELECT %s, user_id, id FROM opened
"""
_PLACES = """
SELECT (SELECT created_at::text || '~' || id FROM users WHERE id = md5('user500000')::uuid),
       (SELECT last_sign_in_at::text || '~' || user_id FROM user_objects
         WHERE last_sign_in_at < now() - interval '30 days' ORDER BY last_sign_in_at DESC LIMIT 1)
"""


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    pages: dict[str, list[Load]] = defaultdict(list)
    users: list[Load] = []
    with large_service("large", pace) as service:
        people = seed(service, pace.number(USERS, brief=2 * FEW))
        cookie = _seed_console(service, pace)
        requests = {name: [load.get(path, cookie=cookie)] for name, path in _paths(service).items()}
        for round_number in range(pace.warm_ups + pace.rounds):
            tokens = people.access_tokens(people.refresh_tokens_by_chance(500))
            requests["GET /user"] = [load.get("/user", token=token) for token in tokens]
            taken = {
                name: load.run(service.port, each, seconds=pace.seconds(_SECONDS), connections=1)
                for name, each in requests.items()
            }
            # The first round only warms up the caches.
            if round_number >= pace.warm_ups:
                users.append(taken.pop("GET /user"))
                for name, one in taken.items():
                    pages[name].append(one)
    limits = [one.percentile(50) for one in users]
    ratios = [
        against(name, [one.percentile(50) for one in loads], limits, "≤ 10") for name, loads in pages.items()
    ]
    for figure in ratios:
        print(f"    {figure.name}: {figure.ratio:.2f}")
    slowest = max(ratios, key=lambda figure: figure.ratio or 0)
    yield replace(slowest, name=f"the slowest page, {slowest.name}: p50 in ms, against GET /user")
    p95 = max(min(one.percentile(95) for one in loads) for loads in pages.values())
    yield alone("the slowest p95 of a page, in ms", p95, "≤ 200")
    failures = sum(one.failures for loads in (users, *pages.values()) for one in loads)
    yield alone("failed requests", failures, "≤ 0")


def _seed_console(service: BenchService, pace: Pace) -> str:
    """Add what the console shows, unless it is there, and return the cookie of an administrator."""
    token = one_time.new_token()
    connection = service.database()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM users WHERE id = md5('other1')::uuid")
        statements = [] if cursor.fetchone() else _OTHERS.split(";\n")
        for statement in statements:
            cursor.execute(statement.replace("300000", str(pace.number(300_000, brief=3_000))))
        cursor.execute(_ADMINISTRATOR, (one_time.hash_token(token),))
    connection.close()
    return f"latchkey={token}"


def _paths(service: BenchService) -> dict[str, str]:
    with service.database() as connection, connection.cursor() as cursor:
        cursor.execute(_PLACES)
        by_age, by_sign_in = cursor.fetchone() or ()
        cursor.execute(
            "SELECT md5('other3')::uuid, md5('user77')::uuid, md5('webhook1')::uuid, md5('client1')::uuid"
        )
        busy, ordinary, webhook, client = cursor.fetchone() or ()

    def users(**query: str) -> str:
        return f"/console/users?{urlencode(query)}"

    return {
        "overview": "/console",
        "users": users(),
        "users, deep": users(after=by_age),
        "users, back": users(before=by_age),
        "users by last sign-in": users(sort="last_sign_in"),
        "users by last sign-in, deep": users(sort="last_sign_in", after=by_sign_in),
        "banned users": users(status="banned"),
        "users not confirmed": users(status="unconfirmed"),
        "anonymous users": users(status="anonymous"),
        "administrators": users(status="administrator"),
        "users of a provider": users(provider="google"),
        "users of a rare provider": users(provider="github"),
        "users with a factor": users(factor="yes"),
        "users signed in this week": users(signed_in="week"),
        "users not signed in for 90 days": users(signed_in="not_quarter"),
        "search by email": users(q="user77"),
        "search by words": users(q="bench user77"),
        "search by a whole email": users(q="user777777@bench.example"),
        "search by domain": users(q="@elsewhere"),
        "search by phone": users(q="+49171"),
        "search by id": users(q="4a7d1ed4"),
        "a user": f"/console/users/{ordinary}",
        "a user with 10,000 events": f"/console/users/{busy}",
        "audit log": "/console/audit",
        "audit log of a user": f"/console/audit?user={busy}",
        "audit log of an act": "/console/audit?action=signed_out",
        "applications": "/console/applications",
        "an application": f"/console/applications/{client}",
        "webhooks": "/console/webhooks",
        "a webhook": f"/console/webhooks/{webhook}",
        "messages": "/console/messages",
        "failed messages": "/console/messages?state=failed",
        "settings": "/console/settings",
    }
