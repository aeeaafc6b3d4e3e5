"""What is stricter in a backup, or has no effect, is not back; what had been restricted is."""

import inspect
import re
from contextlib import closing

import pytest

from auth.ops.backups.comparisons import Comparison
from auth.ops.commands.restore import _KINDS
from auth.ops.connections import Unprepared, connect
from sql import schema
from tests.support.databases import new_databases, run

USER = (
    "INSERT INTO users (id, email, made_by, password_hash) VALUES (gen_random_uuid(), '{}', 'signup', 'x');"
)
FACTOR = (
    "INSERT INTO factors (id, user_id, factor_type, secret, verified_at)"
    " SELECT gen_random_uuid(), id, 'totp', '', {} FROM users WHERE email = '{}';"
)
IDENTITY = (
    "INSERT INTO identities (user_id, provider, subject, identity_data)"
    " SELECT id, 'google', '1', '{{}}' FROM users WHERE email = '{}';"
)
CLIENT = (
    "INSERT INTO oauth_clients (name, secret_hash, token_endpoint_auth_method, redirect_uris, grant_types)"
    " VALUES ('{}', '1', 'client_secret_basic', '{{https://a.example/}}', '{{authorization_code}}');"
)
ORGANIZATION = "INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), '{}', 'A');"
INVITATION = (
    "INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)"
    " SELECT gen_random_uuid(), id, 'x@example.com', 'member', {} FROM organizations WHERE slug = '{}';"
)
WEBHOOK = (
    "INSERT INTO webhooks (id, url, events, secret)"
    " VALUES (gen_random_uuid(), 'https://{}.example/', '{{user.created,user.deleted}}', '');"
)
PROVIDER = (
    "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
    " VALUES (gen_random_uuid(), '{0}', '{0}', 'https://{0}.example', 'c', '');"
)
# What the backup has, and what happened since.
NOT_BACK = {
    "level": (
        ORGANIZATION.format("lax") + "UPDATE organizations SET level = 'aal2', needs_own_provider = true",
        "UPDATE organizations SET level = 'aal1', needs_own_provider = false WHERE slug = 'lax'",
    ),
    "promotion": (USER.format("up"), "UPDATE users SET role = 'admin' WHERE email = 'up'"),
    "promotion of staff": (
        USER.format("staff") + "UPDATE users SET role = 'staff' WHERE email = 'staff'",
        "UPDATE users SET role = 'admin' WHERE email = 'staff'",
    ),
    "lifted ban": (
        USER.format("free") + "UPDATE users SET banned_until = now() + interval '1 day' WHERE email = 'free'",
        "UPDATE users SET banned_until = NULL WHERE email = 'free'",
    ),
    "shorter ban": (
        USER.format("short") + "UPDATE users SET banned_until = 'infinity' WHERE email = 'short'",
        "UPDATE users SET banned_until = now() + interval '1 day' WHERE email = 'short'",
    ),
    "ban that has ended": (
        USER.format("done"),
        "UPDATE users SET banned_until = now() - interval '1 day' WHERE email = 'done'",
    ),
    "sessions under a ban": (
        USER.format("held") + "INSERT INTO sessions (user_id, method) SELECT id, 'password' FROM users"
        " WHERE email = 'held'; UPDATE users SET banned_until = 'infinity' WHERE email = 'held'",
        "UPDATE sessions SET ended_at = now(), end_reason = 'logout'",
    ),
    "password of a newer backup": (
        USER.format("newer"),
        "UPDATE users SET password_set_at = now() - interval '1 day' WHERE email = 'newer'",
    ),
    "password that was removed before": (
        USER.format("bare") + "UPDATE users SET password_hash = NULL WHERE email = 'bare'",
        "UPDATE users SET password_hash = 'y', password_set_at = now() WHERE email = 'bare'",
    ),
    "new address": (USER.format("phone"), "UPDATE users SET phone = '+491701234567' WHERE email = 'phone'"),
    "another factor": (
        USER.format("two") + FACTOR.format("now()", "two"),
        FACTOR.format("now()", "two"),
    ),
    "unverified factor": (
        USER.format("unverified") + FACTOR.format("NULL", "unverified"),
        "DELETE FROM factors WHERE verified_at IS NULL",
    ),
    "identity that was connected again": (
        USER.format("again") + IDENTITY.format("again"),
        "DELETE FROM identities; " + IDENTITY.format("again"),
    ),
    "unused user": (USER.format("unused"), "DELETE FROM users WHERE email = 'unused'"),
    "anonymous user": (
        "INSERT INTO users (id, made_by, last_sign_in_at) VALUES (gen_random_uuid(), 'anonymous', now())",
        "DELETE FROM users WHERE made_by = 'anonymous'",
    ),
    "roles": (
        CLIENT.format("roles") + "UPDATE oauth_clients SET allowed_roles = '{staff}' WHERE name = 'roles'",
        "UPDATE oauth_clients SET allowed_roles = '{}' WHERE name = 'roles'",
    ),
    "trust": (
        CLIENT.format("trust"),
        "UPDATE oauth_clients SET skip_consent = true, require_pkce = false WHERE name = 'trust'",
    ),
    "order of a list": (
        CLIENT.format("order") + "UPDATE oauth_clients SET scopes = '{email,profile}' WHERE name = 'order'",
        "UPDATE oauth_clients SET scopes = '{profile,email}' WHERE name = 'order'",
    ),
    "secret of a newer backup": (
        CLIENT.format("secret"),
        "UPDATE oauth_clients SET secret_hash = '0', updated_at = now() - interval '1 day' WHERE name = 'secret'",
    ),
    "unblocked client": (
        CLIENT.format("open") + "UPDATE oauth_clients SET is_blocked = true WHERE name = 'open'",
        "UPDATE oauth_clients SET is_blocked = false WHERE name = 'open'",
    ),
    "client of its own": (
        CLIENT.format("dynamic") + "UPDATE oauth_clients SET is_dynamic = true WHERE name = 'dynamic'",
        "UPDATE oauth_clients SET redirect_uris = '{https://b.example/}' WHERE name = 'dynamic'",
    ),
    "deleted client of its own": (
        CLIENT.format("passing") + "UPDATE oauth_clients SET is_dynamic = true WHERE name = 'passing'",
        "DELETE FROM oauth_clients WHERE name = 'passing'",
    ),
    "expired invitation": (
        ORGANIZATION.format("late") + INVITATION.format("now() - interval '1 day'", "late"),
        "DELETE FROM organization_invitations WHERE expires_at < now()",
    ),
    "what an ended organization had": (
        ORGANIZATION.format("past")
        + INVITATION.format("now() + interval '1 day'", "past")
        + "UPDATE organizations SET ended_at = now() WHERE slug = 'past';"
        "INSERT INTO organization_domains (organization_id, domain, token, proved_at)"
        " SELECT id, 'past.example', 't', now() FROM organizations WHERE slug = 'past'",
        "DELETE FROM organizations WHERE slug = 'past'",
    ),
    "domain without a proof": (
        ORGANIZATION.format("claims") + "INSERT INTO organization_domains (organization_id, domain, token)"
        " SELECT id, 'claims.example', 't' FROM organizations WHERE slug = 'claims'",
        "DELETE FROM organization_domains WHERE proved_at IS NULL",
    ),
    "provider that was off": (
        PROVIDER.format("off") + "UPDATE identity_providers SET enabled = false WHERE name = 'off'",
        "DELETE FROM identity_providers WHERE name = 'off'",
    ),
    "renamed provider": (
        PROVIDER.format("renamed"),
        "UPDATE identity_providers SET name = 'new' WHERE name = 'renamed'",
    ),
    "more events": (
        WEBHOOK.format("more") + "UPDATE webhooks SET events = '{user.created}' WHERE url LIKE '%//more%'",
        "UPDATE webhooks SET events = '{user.deleted,user.created}' WHERE url LIKE '%//more%'",
    ),
    "disabled webhook": (
        WEBHOOK.format("disabled") + "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'gone'"
        " WHERE url LIKE '%//disabled%'",
        "DELETE FROM webhooks WHERE disabled_at IS NOT NULL",
    ),
    "new rows": (
        "",
        USER.format("new") + CLIENT.format("new") + PROVIDER.format("newer") + WEBHOOK.format("new"),
    ),
}

# With what the restore says.
BACK = {
    "longer ban": (
        USER.format("b1") + "UPDATE users SET banned_until = now() + interval '1 day' WHERE email = 'b1'",
        "UPDATE users SET banned_until = 'infinity' WHERE email = 'b1'",
        ("user", "b1", "was banned"),
    ),
    "unused user with a role": (
        USER.format("b2") + "UPDATE users SET role = 'staff' WHERE email = 'b2'",
        "DELETE FROM users WHERE email = 'b2'",
        ("user", "b2", "was deleted"),
    ),
    "removed password": (
        USER.format("b3"),
        "UPDATE users SET password_hash = NULL WHERE email = 'b3'",
        ("user", "b3", "had another password"),
    ),
    "membership of an unused user": (
        USER.format("b4")
        + ORGANIZATION.format("live")
        + "INSERT INTO memberships (user_id, organization_id, role, added_by)"
        " SELECT u.id, o.id, 'member', 'founder' FROM users AS u, organizations AS o WHERE email = 'b4' AND slug = 'live'",
        "DELETE FROM users WHERE email = 'b4'",
        ("membership", "b4 in live", "is member"),
    ),
    "domain of a provider": (
        PROVIDER.format("b5") + "INSERT INTO identity_provider_domains (domain, provider_id)"
        " SELECT 'b5.example', id FROM identity_providers WHERE name = 'b5'",
        "DELETE FROM identity_provider_domains",
        ("provider", "b5", "had other settings"),
    ),
    "narrowed scopes": (
        CLIENT.format("b6") + "UPDATE oauth_clients SET scopes = '{email,profile}' WHERE name = 'b6'",
        "UPDATE oauth_clients SET scopes = '{email}' WHERE name = 'b6'",
        ("client", "b6", "had other settings"),
    ),
    "introspection": (
        CLIENT.format("b7") + "UPDATE oauth_clients SET introspects_sessions = true WHERE name = 'b7'",
        "UPDATE oauth_clients SET introspects_sessions = false WHERE name = 'b7'",
        ("client", "b7", "had other settings"),
    ),
    "code challenge": (
        CLIENT.format("b8") + "UPDATE oauth_clients SET require_pkce = false WHERE name = 'b8'",
        "UPDATE oauth_clients SET require_pkce = true WHERE name = 'b8'",
        ("client", "b8", "had other settings"),
    ),
}


@pytest.fixture
def urls(database, database_url):
    """A restored database, and a copy of it that the restore replaces."""
    with new_databases(database, database_url) as make:
        restored = make()
        schema.apply(restored)
        for at_backup in (row[0] for table in (NOT_BACK, BACK) for row in table.values()):
            if at_backup:
                run(restored, at_backup)
        yield restored, make(options=f"TEMPLATE {restored.rpartition('/')[2].partition('?')[0]}")


def returned(restored_url, replaced_url):
    with closing(connect(restored_url)) as restored, closing(connect(replaced_url)) as replaced:
        comparison = Comparison(Unprepared(restored), Unprepared(replaced), with_sessions=True)
        return [(each.kind, each.name, each.change) for each in comparison.returned()]


def test_what_is_stricter_or_without_effect_is_not_back(urls):
    restored, replaced = urls
    assert returned(restored, replaced) == []
    for what, (_, since) in NOT_BACK.items():
        run(replaced, since)
        assert (what, returned(restored, replaced)) == (what, [])


def test_text_of_a_restore_has_every_kind():
    parts = inspect.getsource(Comparison.returned)
    kinds = re.findall(r'\("(\w+)", ', parts)
    assert len(kinds) > 9
    assert {*kinds} <= {*_KINDS}


def test_what_was_restricted_is_back(urls):
    restored, replaced = urls
    expected = []
    for _, since, back in BACK.values():
        run(replaced, since)
        expected.append(back)
        assert sorted(returned(restored, replaced)) == sorted(expected)
