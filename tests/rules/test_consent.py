"""What a request lacks, and what its code gives: auth/rules/consent.py beside SQL."""

from datetime import timedelta

from auth.rules import consent
from tests.support.rule_rows import (
    EDGES,
    HOUR,
    MINUTE,
    Compared,
    Tables,
    ask,
    check,
    client_of,
    decided,
    insert_clients,
    insert_users,
    read_clients,
)

SCOPES = ("openid", "email", "profile")
MUTANTS = [
    (
        "if lacks_step(user, session.aal, policy):\n        return False\n",
        "if False:\n        return False\n",
    ),
    ("authenticated_at(session) > request.created_at\n", "authenticated_at(session) >= request.created_at\n"),
    ("request.max_age is None or", "request.max_age is not None and"),
    ("not set(request.scopes) <= set(grant.scopes) or", ""),
    ("grant.granted_at < client.updated_at", "grant.granted_at <= client.updated_at"),
    ("client.has_document and grant", "grant"),
    ("request.resource is None or not client.is_dynamic", "request.resource is None"),
    ("grant.opened_scopes.issuperset(request.scopes)", "True"),
    ("() if grant is None or _is_outdated(grant, client) else", "() if grant is None else"),
    ("code.expires_at <= now", "code.expires_at < now"),
    ("or not code.has_grant", ""),
    ("code.is_of_device and", ""),
    ('return None if refusal is None else "invalid_grant"', "return None"),
    ('refusal == "user_banned"', "False"),
]
# What a request lacked and its code gave when SQL decided.
SQL = """(
  SELECT jsonb_build_array(
           coalesce(NOT lacks_step(u, s.aal, a ->> 'required', has_second_step(u.id)), true)
           AND coalesce(authenticated_at(s) > r.created_at
                        - CASE WHEN 'login' = ANY (r.prompts) THEN interval '0'
                               ELSE make_interval(secs => r.max_age) END, true),
           coalesce(g.scopes @> r.scopes AND (k.metadata_url IS NULL OR g.granted_at >= k.updated_at)
                    AND (r.resource IS NULL OR NOT k.is_dynamic
                         OR r.scopes <@ ARRAY(SELECT unnest(opened.scopes)
                                                FROM sessions AS opened
                                               WHERE opened.grant_id = g.id AND opened.resource = r.resource
                                                 AND opened.created_at >= k.updated_at)), false),
           CASE WHEN g.id IS NULL OR (k.metadata_url IS NOT NULL AND g.granted_at < k.updated_at)
                THEN r.scopes
                ELSE g.scopes || ARRAY(SELECT scope FROM unnest(r.scopes) AS scope
                                        WHERE scope <> ALL (g.scopes)) END,
           CASE WHEN NOT ((r.code_expires_at > now() AND g.id IS NOT NULL) IS TRUE
                          AND coalesce(r.decision = 'approved', r.user_code_mac IS NULL)) THEN 'invalid_grant'
                WHEN now_gives = 'user_banned' THEN now_gives
                WHEN NOT may_use(u, k, r.resource) THEN 'access_denied'
                WHEN now_gives <> 'live' THEN 'invalid_grant' END)
    FROM oauth_requests AS r
    JOIN oauth_clients AS k ON k.id = r.client_id
    LEFT JOIN oauth_grants AS g ON g.user_id = r.user_id AND g.client_id = r.client_id
   CROSS JOIN LATERAL client_state(u, s, k, NULL, (a -> 'lifetime')::integer,
                                   (a ->> 'timebox')::float::integer, a ->> 'required') AS now_gives
   WHERE r.user_id = u.id)"""
GRANTS = """
SELECT g.user_id, g.scopes, g.granted_at,
       ARRAY(SELECT unnest(opened.scopes)
               FROM sessions AS opened
              WHERE opened.grant_id = g.id AND opened.resource = r.resource
                AND opened.created_at >= c.updated_at) AS opened_scopes
  FROM oauth_grants AS g
  JOIN oauth_requests AS r ON r.user_id = g.user_id
  JOIN oauth_clients AS c ON c.id = g.client_id
"""


def compare(tables: Tables) -> Compared:
    *ids, other = insert_users(tables, tables.cases + 1)
    clients = insert_clients(tables, 300)
    for id in clients:
        tables.run(
            "UPDATE oauth_clients SET metadata_url = %(url)s, updated_at = %(at)s WHERE id = %(id)s",
            url=tables.one_of(None, f"https://{id}.example.com"),
            at=tables.ago(MINUTE, HOUR),
            id=id,
        )
    asking = {id: tables.one_of(*clients) for id in ids}
    tables.insert("oauth_requests", [_request(tables, *each) for each in asking.items()])
    grants = [_grant(tables, *each) for each in asking.items() if tables.chance(0.8)]
    tables.insert("oauth_grants", grants)
    # Those of another user, because each case has one session.
    tables.insert("sessions", [_opened(tables, other, grant) for grant in grants if tables.chance(0.7)])
    cases = ask(tables, ids, dict)
    answers = decided(tables, SQL)
    requests = {row.user_id: row for row in tables.all("SELECT * FROM oauth_requests")}
    granted = {row.user_id: row for row in tables.all(GRANTS)}
    known = read_clients(tables)
    rows = [(requests[id], known[asking[id]], granted.get(id)) for id in ids]
    return Compared(tables.seed, list(zip(cases, rows, strict=True)), answers)


def _scopes(tables: Tables) -> list[str]:
    return tables.random.sample(SCOPES, tables.one_of(1, 1, 2, 3))


def _request(tables: Tables, user_id: str, client_id: str) -> dict[str, object]:
    name = tables.id().encode()
    of_device = {
        "user_code_mac": name,
        "poll_interval": 5,
        "decision": tables.one_of(None, "approved", "denied"),
    }
    of_browser = {"id_hash": name, "browser_hash": name, "redirect_uri": "https://app.example.com"}
    columns = {
        "prompts": tables.one_of([], [], ["consent"], ["login"]),
        "max_age": tables.one_of(None, 0, 600),
    }
    return {
        **dict.fromkeys((*of_device, *of_browser)),
        **tables.one_of(of_device, of_browser),
        **columns,
        "id": tables.id(),
        "user_id": user_id,
        "client_id": client_id,
        "scopes": _scopes(tables),
        "resource": tables.one_of(None, None, "https://api.example.com"),
        "created_at": tables.ago(*EDGES, timedelta(0)),
        "code_hash": name,
        "code_expires_at": tables.ago(timedelta(0), -HOUR, -HOUR),
        "expires_at": tables.now,
    }


def _grant(tables: Tables, user_id: str, client_id: str) -> dict[str, object]:
    return {
        "id": tables.id(),
        "user_id": user_id,
        "client_id": client_id,
        "scopes": tables.one_of(_scopes(tables), list(SCOPES)),
        "granted_at": tables.ago(MINUTE, HOUR),
    }


def _opened(tables: Tables, user_id: str, grant: dict[str, object]) -> dict[str, object]:
    return {
        "id": tables.id(),
        "user_id": user_id,
        "grant_id": grant["id"],
        "method": "oauth_client",
        "aal": "aal1",
        "scopes": tables.one_of(_scopes(tables), list(SCOPES)),
        "resource": tables.one_of(None, "https://api.example.com", "https://api.example.com"),
        "created_at": tables.ago(MINUTE, HOUR),
        "refreshed_at": tables.now,
    }


def decide(rules, each) -> list[object]:
    (user, session, policy, now, _), (row, client_row, grant_row) = each
    client = rules.Asking(
        **{name: getattr(client_of(client_row), name) for name in ("allowed_roles", "resources")},
        is_dynamic=client_row.is_dynamic,
        is_blocked=client_row.is_blocked,
        updated_at=client_row.updated_at,
        has_document=client_row.metadata_url is not None,
    )
    request = rules.Request(
        created_at=row.created_at,
        scopes=tuple(row.scopes),
        resource=row.resource,
        prompts=frozenset(row.prompts),
        max_age=None if row.max_age is None else timedelta(seconds=row.max_age),
    )
    grant = grant_row and rules.Grant(
        scopes=tuple(grant_row.scopes),
        granted_at=grant_row.granted_at,
        opened_scopes=frozenset(grant_row.opened_scopes),
    )
    code = rules.Code(
        expires_at=row.code_expires_at,
        resource=row.resource,
        is_of_device=row.user_code_mac is not None,
        decision=row.decision,
        has_grant=grant is not None,
    )
    return [
        rules.is_fresh_for(request, user, session, policy),
        rules.covers(grant, request, client),
        rules.scopes_after(grant, row.scopes, client),
        rules.refusal_of_code(code, user, session, client, policy, now),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), consent, decide, MUTANTS)
