"""Nodes of the previous release beside new ones: an organisation's own provider is disabled for them."""

import re
import subprocess

from tests.support.previous_release import COMMIT

_PROVIDER = """
    WITH founded AS (INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), 'acme', 'Acme') RETURNING id),
    made AS (INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled,
                                             organization_id, disabled_at, is_on)
             SELECT gen_random_uuid(), 'custom:acme', 'Acme', 'https://login.acme.example', 'x', 'x', false,
                    id, to_timestamp(0), true
               FROM founded
             RETURNING id),
    domain AS (INSERT INTO identity_provider_domains (domain, provider_id) SELECT 'example.com', id FROM made)
    INSERT INTO identities (user_id, provider, subject, identity_data)
    SELECT u.id, 'sso:' || made.id, '1', '{}' FROM users AS u, made
    RETURNING replace(provider, 'sso:', '')
"""
_ENDING = {
    "batch": 10,
    "reason": "provider_disabled",
    "reach": "all",
    "keys_up_to": "aal2",
    "with_grants": True,
}


def test_statements_of_the_previous_release_find_it_disabled_and_end_nothing_of_its_users(
    alice, client, database
):
    alice.open_session(client)
    id = database.value(_PROVIDER)
    shown = ["git", "show", f"{COMMIT}:sql/identity_providers.sql"]
    text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    statements = dict(part.split("(", 1) for part in text.split("-- name: ")[1:])

    def run(name, **parameters):
        lines = statements[name].split("\n", 1)[1].splitlines()
        written = "\n".join(line for line in lines if not line.startswith("--"))
        for key, value in parameters.items():
            written = re.sub(rf":{key}\b", f"'{value}'", written)
        return database.all(written)

    for found in (
        run("select_identity_provider", identifier="", id=id),
        run("select_provider_of_domain", domain="example.com"),
        run("select_provider_of_issuer", id=id, issuer="https://login.acme.example"),
        run("select_provider_facts", id=id),
    ):
        assert [row.enabled for row in found] == [False]
    assert run("select_closed_entrance", user_id=alice.id) == []
    assert run("end_users_of_disabled_providers", **_ENDING) == []
    # They do once an owner has turned it off.
    database.run("UPDATE identity_providers SET is_on = false, disabled_at = now()")
    assert len(run("end_users_of_disabled_providers", **_ENDING)) == 1
