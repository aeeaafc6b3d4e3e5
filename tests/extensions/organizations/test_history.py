"""The history of an organization: what its owners read about each act and refusal, in their language."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from auth.core.text.catalogues import built_in
from tests.support.admin_keys import make_admin_key
from tests.support.pages import words

HISTORY = "/account/organizations/acme/history"
AUTH = Path(__file__).parents[3] / "auth"


@pytest.fixture
def read(acme, alice, browse):
    """Return the text of the history that Alice reads, who owns Acme."""
    visitor = browse(alice)
    return lambda query="": words(visitor.visit(HISTORY + query))


def test_owner_reads_who_did_what_in_sentences_newest_first(acme, owner, join, bob, read, database):
    database.run("UPDATE users SET user_metadata = '{\"name\": \"Ada\"}' WHERE email = 'alice@example.com'")
    join(bob, acme)
    assert owner.put(f"{acme}/members/{bob.id}", json={"role": "billing"}).status_code == 200
    text = read()
    sentences = (
        "Ada changed the role of bob@example.com from member to billing .",
        "bob@example.com accepted the invitation and joined as member.",
        "Ada invited bob@example.com as member.",
        "Ada became owner as the founder.",
        "Ada created the organization.",
    )
    assert all(sentence in text for sentence in sentences), text
    # Those of one act have the same time.
    places = [text.index(sentence) for sentence in sentences[:-1]]
    assert places == sorted(places)


@pytest.fixture
def call(database):
    """Give a person a name, as the person could."""

    def call(person, name):
        database.run(
            "UPDATE users SET user_metadata = jsonb_build_object('name', %(name)s::text) WHERE id = %(id)s",
            name=name,
            id=person.id,
        )

    return call


@pytest.mark.parametrize("name", ["alice@example.com", "alice\uff20example.com", "\u200b", "\u2800", " "])
def test_admin_does_not_act_in_the_name_of_another_address_or_of_nobody(
    acme, join, bob, mallory, read, call, name
):
    session = join(bob, acme, "admin")
    join(mallory, acme)
    call(bob, name)
    assert session.delete(f"{acme}/members/{mallory.id}").status_code == 204
    assert "bob@example.com removed mallory@example.com ." in read()


def test_members_of_one_name_are_told_apart_by_their_addresses(acme, join, alice, bob, mallory, read, call):
    session = join(bob, acme, "admin")
    join(mallory, acme)
    for person in (alice, bob, mallory):
        call(person, "Ada")
    assert session.put(f"{acme}/members/{mallory.id}", json={"role": "billing"}).status_code == 200
    text = re.sub(r"\d\d:\d\d", "07:08", read())
    for entry in (
        "Ada changed the role of Ada from member to billing . bob@example.com · mallory@example.com · 07:08 UTC",
        "Ada accepted the invitation and joined as member. mallory@example.com · 07:08 UTC",
        "Ada created the organization. alice@example.com · 07:08 UTC",
    ):
        assert entry in text


def test_name_of_the_operator_does_not_hide_a_member(acme, join, bob, owner, read, call):
    session = join(bob, acme, "admin")
    call(bob, "The operator of localhost:8000")
    assert (
        session.post(f"{acme}/invitations", json={"email": "eve@example.com", "role": "member"}).status_code
        == 201
    )
    assert "The operator of localhost:8000 invited eve@example.com as member. bob@example.com · " in read()


def test_member_who_was_removed_keeps_the_address_of_the_log_and_not_a_new_one(
    acme, owner, join, bob, read, database
):
    join(bob, acme, "admin")
    assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
    database.run("UPDATE users SET email = 'secret@example.com' WHERE id = %(id)s", id=bob.id)
    text = read()
    assert "alice@example.com removed bob@example.com ." in text
    assert "secret@example.com" not in text


def test_address_of_a_former_member_that_the_log_lacks_is_not_shown(acme, join, bob, owner, read, database):
    join(bob, acme)
    assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
    database.run("UPDATE audit_log SET details = details - 'email'")
    text = read()
    assert "alice@example.com removed a former member." in text


def test_address_that_another_organization_knows_is_not_shown(acme, beta, join, bob, owner, read, database):
    for organization in (acme, beta):
        join(bob, organization)
        assert owner.delete(f"{organization}/members/{bob.id}").status_code == 204
    database.run(
        "UPDATE audit_log SET details = details - 'email' WHERE details #>> '{organization,slug}' = 'acme'"
    )
    assert database.count("audit_log", "details ->> 'email' = 'bob@example.com'") == 2
    assert "alice@example.com removed a former member." in read()


def test_owner_reads_that_the_operator_acted_and_not_which_key(acme, client, parts, browse, alice):
    key = make_admin_key(parts, "organizations:write", name="billing-job")
    assert client.put(acme, json={"name": "Acme 2"}, headers=key.headers).status_code == 200
    page = browse(alice).visit(HISTORY)
    assert "The operator of localhost:8000 changed the details of the organization." in words(page)
    assert "billing-job" not in page.text


def test_refusal_says_who_was_refused_and_why_without_network_or_browser(
    acme, join, bob, browse, alice, database
):
    session = join(bob, acme)
    for _ in range(2):
        assert session.put(acme, json={"name": "Evil"}).status_code == 403
    database.run(
        "UPDATE audit_log SET ip = '192.0.2.9', user_agent = 'Chrome/120.0', request_id = 'request-9'"
    )
    page = browse(alice).visit(HISTORY)
    text = words(page)
    assert (
        "bob@example.com tried to make a change, but it was refused. Their role doesn’t allow it. 2 times"
        in text
    )
    assert not any(hidden in page.text for hidden in ("192.0.2.9", "Chrome/120.0", "request-9"))


def test_failed_sign_in_with_the_provider_says_why(acme, read, database):
    database.run(
        """INSERT INTO audit_log (action, reason, actor, user_id, details)
           SELECT 'oauth_refused', 'bad_oauth_callback', 'anonymous', m.user_id,
                  jsonb_build_object('organization', jsonb_build_object('id', o.id, 'slug', o.slug), 'because', because)
             FROM organizations AS o, memberships AS m, unnest('{email_missing,invalid_client}'::text[]) AS because"""
    )
    text = read()
    assert (
        "alice@example.com couldn’t sign in with the identity provider. The identity provider sent no" in text
    )
    assert "The identity provider answered with the error invalid_client ." in text


def test_last_seven_days_are_a_press_away_and_pages_keep_them(acme, alice, browse, database):
    database.run("UPDATE audit_log SET at = at - interval '8 days'")
    database.run(
        """INSERT INTO audit_log (at, action, actor, details)
           SELECT now() - n * interval '1 hour', 'domain_proved', 'service', jsonb_build_object(
                    'organization', jsonb_build_object('id', o.id, 'slug', o.slug), 'domain', 'd' || n || '.example')
             FROM organizations AS o, generate_series(1, 60) AS n"""
    )
    visitor = browse(alice)
    visitor.visit(HISTORY)
    assert "1\N{EN DASH}50 of 62" in words(visitor.page)
    visitor.visit(visitor.link("Last 7 days"))
    assert "1\N{EN DASH}50 of 60" in words(visitor.page)
    assert "localhost:8000 verified the domain d1.example ." in words(visitor.page)
    assert "created the organization" not in words(visitor.visit(visitor.link_to("?days=7&page=2")))
    assert "51\N{EN DASH}60 of 60" in words(visitor.page)
    assert "Next" not in words(visitor.page)
    visitor.visit(f"{HISTORY}?days=7&page=9")
    assert "51\N{EN DASH}60 of 60" in words(visitor.page)
    assert visitor.visit(f"{HISTORY}?days=8").status == 400


def test_week_without_an_entry_says_so(acme, read, database):
    database.run("UPDATE audit_log SET at = at - interval '8 days'")
    assert "Nothing has happened in the last 7 days." in read("?days=7")


@pytest.mark.parametrize("role", ["admin", "member", None])
def test_nobody_but_an_owner_sees_the_history(acme, join, bob, browse, role):
    if role:
        join(bob, acme, role)
    visitor = browse(bob)
    assert visitor.visit(HISTORY).status == 404
    assert "created" not in visitor.page.text
    if role:
        assert "/history" not in visitor.visit("/account/organizations/acme").text


def _kinds() -> Iterator[str]:
    """Yield the entries about an organization that the code writes."""
    for path in AUTH.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                name = ast.unparse(node.func)
                is_about_provider = name == "_record" and path.match("admin/providers.py")
                if name in ("record", "organizations.record") or is_about_provider:
                    yield str(node.args[1].value)
    # A change of a provider writes several.
    yield from ("provider_changed", "provider_enabled", "provider_disabled")


@pytest.mark.parametrize("language", sorted(built_in("pages")))
def test_each_entry_that_the_code_writes_has_a_sentence_in_each_language(language):
    kinds, texts = set(_kinds()), built_in("pages")[language]
    assert {"member_invited", "domain_lost", "provider_deleted", "membership_changed"} <= kinds
    assert len(kinds) >= 16
    variants = {
        "membership_added": [
            f"membership_added_{how}" for how in ("founder", "invitation", "provider", "administrator")
        ],
        "membership_removed": ["membership_removed", "membership_left"],
        "domain_lost": ["domain_lost", "domain_expired"],
        "organization_changed": [
            "organization_changed",
            "requires_aal1",
            "requires_aal2",
            "requires_own",
            "lifts_own",
        ],
    }
    names = {f"history.{name}" for kind in kinds for name in variants.get(kind, [kind])}
    assert names - texts.keys() == set()
