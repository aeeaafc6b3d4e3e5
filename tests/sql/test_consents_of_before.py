"""Grants that an earlier release wrote: after the upgrade they are for the redirect URIs that their client has."""

from sql import schema
from tests.support.databases import run

# A schema of before has neither column.
_FORMER = """
ALTER TABLE oauth_grants DROP COLUMN redirect_uris;
ALTER TABLE oauth_requests DROP COLUMN client_redirect_uris;
INSERT INTO users (id, email, made_by) VALUES (gen_random_uuid(), 'alice@example.com', 'signup');
INSERT INTO oauth_clients (name, token_endpoint_auth_method, redirect_uris, grant_types, skip_consent)
VALUES ('Wiki', 'none', '{https://wiki.example/a,https://wiki.example/b}', '{authorization_code}', false),
       ('Notes', 'none', '{https://notes.example/a}', '{authorization_code}', false),
       ('Intranet', 'none', '{https://intranet.example/a}', '{authorization_code}', true);
INSERT INTO oauth_grants (user_id, client_id, scopes) SELECT u.id, c.id, '{openid}' FROM users AS u, oauth_clients AS c;
"""
_GRANTS = """
SELECT c.name, g.redirect_uris FROM oauth_grants AS g JOIN oauth_clients AS c ON c.id = g.client_id ORDER BY c.name DESC
"""


def test_grant_of_an_earlier_release_is_for_the_uris_of_its_client(new_database):
    schema.apply(url := new_database())
    (migration,) = (
        path for path in schema.MIGRATIONS.values() if path.stem.endswith("consents_to_redirect_uris")
    )
    run(url, _FORMER + migration.read_text())
    assert run(url, _GRANTS) == [
        ("Wiki", ["https://wiki.example/a", "https://wiki.example/b"]),
        ("Notes", ["https://notes.example/a"]),
        # Its users were not asked.
        ("Intranet", None),
    ]
