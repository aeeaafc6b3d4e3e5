"""The upgrade gives what customers' providers opened before it the right terms."""

import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from auth.ops.processes import embedded_postgres
from sql import schema
from tests.support import oldest_release, previous_release
from tests.support.databases import new_databases, run
from tests.support.tables import Rows

ON, OFF, DELETED = (f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2, 3))
# One was turned off an hour ago, and the end of its user has not come.
PROVIDERS = f"""
INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled, disabled_at, updated_at)
VALUES ('{ON}', 'custom:on', '', 'https://on.example', '', '', true, NULL, now()),
       ('{OFF}', 'custom:off', '', 'https://off.example', '', '', false, now() - interval '1 hour', now());
INSERT INTO users (id, email, email_proved, made_by)
SELECT id::uuid, name || '@example.com', true, 'oauth'
  FROM (VALUES ('{ON}', 'on'), ('{OFF}', 'off'), ('{DELETED}', 'deleted')) AS named (id, name);
INSERT INTO identities (user_id, provider, subject, identity_data)
SELECT id, 'sso:' || id, '1', '{{}}' FROM users WHERE id <> '{DELETED}';
"""
# Two hours old, or of the last minute; `raised` by a factor; `own` by a password. The last row is for what the rest opened.
OPENED = """
INSERT INTO sessions (user_id, method, user_agent, amr, created_at, ended_at, end_reason)
SELECT u.id, 'oauth', name,
       CASE WHEN name <> 'own' THEN first || jsonb_build_object('provider', 'sso:' || u.id, 'method', 'oauth') END,
       now() - ago::interval, CASE WHEN name = 'ended' THEN now() END, CASE WHEN name = 'ended' THEN 'logout' END
  FROM (VALUES ('old', '[]'::jsonb, '2 hours'), ('raised', '[{"method": "totp"}]', '2 hours'), ('new', '[]', '1 minute'),
               ('ended', '[]', '2 hours'), ('own', '[]', '2 hours')) AS opened (name, first, ago)
 CROSS JOIN users AS u;
INSERT INTO sessions (user_id, method, user_agent, amr, opened_by)
SELECT user_id, 'oauth_client', user_agent || ' application', amr, id FROM sessions WHERE ended_at IS NULL;
INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, created_at, expires_at, provider)
SELECT u.id, gen_random_uuid()::text::bytea, name || ' code', 'oauth', now() - ago::interval, now(), 'sso:' || u.id
  FROM users AS u CROSS JOIN (VALUES ('old', '2 hours'), ('new', '1 minute')) AS moments (name, ago);
INSERT INTO api_keys (id, user_id, name, key_mac, scopes, created_at)
SELECT gen_random_uuid(), u.id, name || ' key', '', '{}', now() - ago::interval
  FROM users AS u CROSS JOIN (VALUES ('old', '2 hours'), ('new', '1 minute')) AS moments (name, ago)
"""
TERMS = """
SELECT split_part(u.email, '@', 1) || ' ' ||
       CASE WHEN opened.term IS NULL THEN 'none' WHEN is_over(opened.term) THEN 'over' ELSE 'present' END AS term, opened.name
  FROM (SELECT user_id, user_agent, provider_term FROM sessions UNION ALL
        SELECT user_id, code_challenge, provider_term FROM authorization_codes UNION ALL
        SELECT user_id, name, provider_term FROM api_keys) AS opened (user_id, name, term)
  JOIN users AS u ON u.id = opened.user_id
"""
WITHOUT = {"ended", "own", "own application"}
SESSIONS = {"old", "old application", "raised", "raised application"}
NEW = {"new", "new application", "new code"}
OLD = SESSIONS | {"old code"}
KEYS = {"old key", "new key"}


def terms(rows: Rows) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for term, name in rows.all(TERMS):
        found.setdefault(term, set()).add(name)
    return found


@pytest.fixture(params=previous_release.RELEASES)
def url(request, all_rows, database_url, tmp_path) -> Iterator[str]:
    """The URL of a database that this release has created."""
    files = oldest_release.unpack(tmp_path, previous_release.RELEASES[request.param])
    with new_databases(all_rows, database_url) as make:
        yield make(oldest_release.script(files) + PROVIDERS)


def test_what_a_provider_opened_before_the_upgrade_gives_tokens_if_it_is_on_or_opened_it_since(url):
    run(url, OPENED)
    schema.apply(url)
    with closing(Rows(url)) as rows:
        assert terms(rows) == {
            "on none": WITHOUT,
            "on present": OLD | NEW | KEYS,
            "off none": WITHOUT,
            "off over": OLD | {"old key"},
            "off present": NEW | {"new key"},
            # The identity went with the provider.
            "deleted none": WITHOUT | KEYS,
            "deleted over": OLD | NEW,
        }


@pytest.mark.parametrize("steps_to_come", [2, 1])
def test_what_a_node_of_the_previous_release_writes_between_the_steps_has_the_terms_of_that_moment(
    url, steps_to_come
):
    """And what is turned off between the steps gives no token afterwards, although it is on again."""
    steps: list[int] = []
    last = len(schema.pending(url)) - steps_to_come

    def write(_: int) -> None:
        steps.append(len(steps))
        if len(steps) == last:
            run(url, OPENED)
            for value in ("false", "true"):
                run(url, f"UPDATE identity_providers SET enabled = {value} WHERE id = '{ON}'")

    schema.apply(url, write)
    own, sessions = {"own", "own application"}, SESSIONS | {"new", "new application"}
    codes = {"old code", "new code"}
    with closing(Rows(url)) as rows:
        found = terms(rows)
    # The code of a provider that was deleted a moment ago has no term after the last migration.
    assert found.pop("deleted over") | found.pop("deleted none") == own | sessions | codes | KEYS | {"ended"}
    assert found == {
        "on none": own,
        "on over": sessions | codes | KEYS | {"ended"},
        "off none": own,
        "off present": sessions | codes | KEYS | {"ended"},
    }


def test_data_is_restored_into_a_new_schema_as_it_is(url, new_database, tmp_path):
    """pg_dump writes each table in the order of names, and fires the triggers for nodes of the previous release."""
    run(url, OPENED)
    schema.apply(url)
    schema.apply(restored := new_database())
    programs = embedded_postgres.find_programs()
    tables = [
        f"--table={name}"
        for name in (
            "users",
            "identities",
            "identity_providers",
            "sessions",
            "authorization_codes",
            "api_keys",
        )
    ]
    command = [str(programs / "pg_dump"), "--data-only", f"--file={tmp_path / 'data'}", *tables, url]
    subprocess.run(command, check=True)
    # Servers before 17 do not know this setting.
    script = (tmp_path / "data").read_text().replace("SET transaction_timeout = 0;\n", "")
    command = [str(programs / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", restored]
    result = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    for table in ("sessions", "authorization_codes", "api_keys"):
        query = f"SELECT t::text FROM {table} AS t ORDER BY t.id"
        assert run(restored, query) == run(url, query), table
