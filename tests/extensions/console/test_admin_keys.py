"""/console/keys: the administrative keys."""

import re

import pytest

from tests.support.admin_keys import make_admin_key
from tests.support.pages import words

KEY = re.compile(r"lka_[0-9a-f]{32}[0-9A-Za-z]{33}")


@pytest.fixture
def create(armed, codes):
    """Fill in the form, and return the next page."""

    def create(step=1, **fields):
        page = armed.visit("/console/keys/new")
        assert page.status == 200, page.text
        return armed.press("/new", **fields, factor_code=codes.code(step))

    return create


def test_key_is_created_with_its_scopes_and_shown_once(create, armed, client, carol, database):
    assert "No keys yet." in words(armed.visit("/console/keys"))
    page = create(name="billing", users_read="yes", audit_read="yes", days="30")
    (key,) = set(KEY.findall(page.text))
    row = database.one("SELECT *, expires_at - created_at AS lifetime FROM admin_keys")
    assert (row.name, row.scopes, row.lifetime.days) == ("billing", ["users:read", "audit:read"], 30)
    assert str(row.created_by) == carol.id
    for path, status in (("/admin/users", 200), ("/admin/audit", 200), ("/admin/webhooks", 403)):
        assert client.get(path, headers={"apikey": key}).status_code == status
    page = armed.visit("/console/keys")
    assert key[-33:] not in page.text
    for text in ("billing", "users:read", "audit:read", carol.email):
        assert text in words(page)
    details = {"admin_key": "billing", "admin_key_id": str(row.id), "scopes": "users:read audit:read"}
    entry = database.one(
        "SELECT actor, actor_id::text, details FROM audit_log WHERE action = 'admin_key_added'"
    )
    assert tuple(entry) == ("user", carol.id, details | {"administrator": carol.email})


def test_each_scope_says_what_it_opens(armed):
    text = words(armed.visit("/console/keys/new"))
    assert "links Create links and codes, which sign in as any user below administrators." in text
    assert "users:read Read all users, also administrators." in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "billing"}, "Choose at least one scope."),
        ({"name": "", "users_read": "yes"}, "Name must be 1 to 80 visible characters."),
        ({"name": "other", "users_read": "yes"}, "Another key has this name."),
    ],
)
def test_mistake_is_shown_at_its_field(create, parts, database, fields, message):
    make_admin_key(parts, "invites", name="other")
    page = create(**fields)
    assert (page.status, message in words(page)) == (400, True), words(page)
    assert database.count("admin_keys") == 1


def test_key_needs_a_factor_and_no_factor_creates_none(armed, codes, database):
    armed.visit("/console/keys/new")
    page = armed.press("/new", name="billing", users_read="yes", factor_code=codes.wrong_code())
    assert (page.status, database.count("admin_keys")) == (422, 0)


def test_more_than_fifty_keys_are_refused(create, database):
    database.run(
        "INSERT INTO admin_keys (id, name, key_mac, scopes)"
        " SELECT gen_random_uuid(), 'key ' || n, '', '{invites}' FROM generate_series(1, 50) AS n"
    )
    page = create(name="billing", users_read="yes")
    assert "The limit of 50 administrative keys is reached" in words(page)
    assert database.count("admin_keys") == 50


def test_expired_key_is_marked(armed, parts, database):
    make_admin_key(parts, "invites", lifetime=60)
    database.run("UPDATE admin_keys SET expires_at = now()")
    assert "expired" in words(armed.visit("/console/keys"))


def test_acts_of_a_key_are_found_in_the_audit_log(armed, client, parts, alice):
    key = make_admin_key(parts, "sessions:end", name="support desk")
    assert client.post(f"/admin/users/{alice.id}/logout", headers=key.headers).status_code == 200
    page = armed.visit("/console/keys")
    assert f'href="audit?by={key.id}"' in page.text
    rows = armed.visit(f"/console/audit?by={key.id}").text.partition("<tbody>")[2]
    assert "signed out everywhere" in rows
    assert rows.count("<tr>") == 1
    assert f'<a href="../console/audit?by={key.id}">key “support desk”</a>' in rows
    assert "administrator:" not in rows


def test_key_outlives_the_administrator_who_created_it(armed, create, client, carol, database):
    (key,) = set(KEY.findall(create(name="billing", users_read="yes").text))
    database.run("DELETE FROM users WHERE id = %(id)s", id=carol.id)
    assert client.get("/admin/users", headers={"apikey": key}).status_code == 200
