"""Domains of organizations: a TXT record proves one, and one organization has it at a time (rule 50)."""

import re
import time

import pytest

from auth.core.net import text_records
from tests.support.answers import A_TIMESTAMP, ANYTHING, assert_error
from tests.support.own_providers import DOMAIN, PATH, SignIn
from tests.support.pages import words
from tests.support.users import PASSWORD


@pytest.fixture
def rival(bob, client, names) -> SignIn:
    """Bob's session. He owns Globex."""
    session = bob.open_session(client)
    organization = session.post("/organizations", json={"name": "Globex"}).json
    return SignIn(session, f"/organizations/{organization['id']}", names)


def test_record_proves_a_domain_which_the_audit_log_says(sign_in, owner, acme, database):
    record = sign_in.name("Example.COM")
    assert record == {"domain": DOMAIN, "name": f"_latchkey.{DOMAIN}", "value": ANYTHING}
    assert re.fullmatch("latchkey=[0-9a-f]{32}", record["value"])
    assert sign_in.name(DOMAIN) == record
    details = f"there is no TXT record at _latchkey.{DOMAIN}"
    assert_error(owner.post(f"{acme}/domains/{DOMAIN}"), 422, "domain_not_proved", details=details)
    expected = record | {"proved_at": A_TIMESTAMP, "checked_at": A_TIMESTAMP}
    response = sign_in.prove(DOMAIN)
    assert (response.status_code, response.json) == (200, expected)
    assert owner.get(f"{acme}/domains").json == {"domains": [expected]}
    assert (
        database.value("SELECT details ->> 'domain' FROM audit_log WHERE action = 'domain_proved'") == DOMAIN
    )


@pytest.mark.parametrize("text", ["", "latchkey=", "latchkey=x", "xlatchkey={token}", "{token}"])
def test_another_text_proves_nothing(sign_in, owner, acme, names, text):
    record = sign_in.name(DOMAIN)
    names.texts[record["name"]] = text.format(token=record["value"].removeprefix("latchkey="))
    details = f"the TXT record at _latchkey.{DOMAIN} has another value"
    assert_error(owner.post(f"{acme}/domains/{DOMAIN}"), 422, "domain_not_proved", details=details)
    assert "proved_at" not in owner.get(f"{acme}/domains").json["domains"][0]


def test_record_of_another_organization_proves_nothing(sign_in, rival, names):
    record, other = sign_in.name(DOMAIN), rival.name(DOMAIN)
    assert record["value"] != other["value"]
    names.texts[record["name"]] = record["value"]
    refused = rival.owner.post(f"{rival.path}/domains/{DOMAIN}")
    details = f"the TXT record at _latchkey.{DOMAIN} has another value"
    assert_error(refused, 422, "domain_not_proved", details=details)


@pytest.mark.parametrize("place", [DOMAIN, f"_latchkey.{DOMAIN}.{DOMAIN}"])
def test_record_at_a_wrong_name_proves_nothing_and_says_where_to_move_it(sign_in, names, database, place):
    record = sign_in.name(DOMAIN)
    names.texts[place] = record["value"]
    refused = sign_in.owner.post(f"{sign_in.path}/domains/{DOMAIN}")
    details = f"the TXT record is at {place}; move it to {record['name']}"
    assert_error(refused, 422, "domain_not_proved", details=details)
    names.texts[place] = "latchkey=of-somebody-else"
    refused = sign_in.owner.post(f"{sign_in.path}/domains/{DOMAIN}")
    details = f"there is no TXT record at {record['name']}"
    assert_error(refused, 422, "domain_not_proved", details=details)
    assert database.count("organization_domains", "proved_at IS NOT NULL") == 0


def test_name_server_that_does_not_answer_is_asked_once(sign_in, names, monkeypatch):
    monkeypatch.setattr(text_records, "_DEADLINE", 0.2)
    record = sign_in.name(DOMAIN)
    names.silent.add(record["name"])
    refused = sign_in.owner.post(f"{sign_in.path}/domains/{DOMAIN}")
    details = f"the name servers of {DOMAIN} do not answer"
    assert_error(refused, 422, "domain_not_proved", details=details)


def test_silence_at_the_other_names_does_not_outlast_the_deadline(sign_in, names, monkeypatch):
    monkeypatch.setattr(text_records, "_DEADLINE", 0.3)
    record = sign_in.name(DOMAIN)
    names.silent |= {DOMAIN, f"_latchkey.{DOMAIN}.{DOMAIN}"}
    began = time.monotonic()
    refused = sign_in.owner.post(f"{sign_in.path}/domains/{DOMAIN}")
    assert time.monotonic() - began < 2
    details = f"there is no TXT record at {record['name']}"
    assert_error(refused, 422, "domain_not_proved", details=details)


@pytest.mark.parametrize(
    ("place", "text", "is_silent", "msg"),
    [
        (None, "", False, "The TXT record of this domain is not there"),
        (f"_latchkey.{DOMAIN}", "latchkey=x", False, "The TXT record of this domain has another value"),
        (DOMAIN, "{value}", False, "The TXT record of this domain is at another name"),
        (None, "", True, "The name servers of this domain don't answer"),
    ],
)
def test_refused_check_says_in_its_message_what_there_is(
    sign_in, names, monkeypatch, place, text, is_silent, msg
):
    monkeypatch.setattr(text_records, "_DEADLINE", 0.2)
    record = sign_in.name(DOMAIN)
    if place:
        names.texts[place] = text.format(**record)
    if is_silent:
        names.silent.add(record["name"])
    refused = sign_in.owner.post(f"{sign_in.path}/domains/{DOMAIN}")
    assert_error(refused, 422, "domain_not_proved", details=ANYTHING, msg=msg)


@pytest.mark.parametrize(
    "typed",
    [
        "https://acme.example/",
        "https://www.Acme.example/about?us=1#team",
        "http://acme.example:8080",
        "@acme.example",
        "bob@acme.example",
        "  ACME.example. ",
    ],
)
def test_domain_is_understood_as_people_type_it(sign_in, owner, acme, typed):
    assert sign_in.name(typed)["domain"] == "acme.example"
    assert [each["domain"] for each in owner.get(f"{acme}/domains").json["domains"]] == ["acme.example"]


@pytest.mark.parametrize(("is_proved", "place"), [(True, "gone"), (True, "other"), (False, "gone")])
def test_check_of_a_verified_domain_says_what_is_there_now(
    sign_in, names, alice, browse, database, is_proved, place
):
    record = sign_in.name(DOMAIN)
    visitor, page = browse(alice), f"{PATH}/sign-in"
    if is_proved:
        assert sign_in.prove(DOMAIN).status_code == 200
        database.run("UPDATE organization_domains SET checked_at = now() - interval '3 hours'")
        assert "example.com is verified Record checked 3 hours ago" in words(visitor.visit(page))
        visitor.press(f"domains/{DOMAIN}")
        assert "Checked just now. The record is there." in words(visitor.page)
        assert "example.com is verified Record checked just now" in words(visitor.page)
        assert visitor.page.status == 200
    before = database.everything("organization_domains")
    names.texts.clear()
    if place == "other":
        names.texts[record["name"]] = "something else"
    visitor.visit(page)
    text = words(visitor.press(f"domains/{DOMAIN}"))
    assert visitor.page.status == 422
    stays = (
        "example.com stays verified for now. If the record is missing for fourteen days, you lose the domain."
    )
    if is_proved:
        there = f"There’s no TXT record at _latchkey.{DOMAIN} any more. Add it again."
        other = f"The TXT record at _latchkey.{DOMAIN} has another value. Replace it with the value below."
        assert f"{there if place == 'gone' else other} {stays}" in " ".join(text.split())
        assert record["value"] in text
        assert "isn’t verified" not in text
    else:
        assert "There’s no TXT record at" in text
        assert stays not in text
    assert database.everything("organization_domains") == before


def test_second_customer_gets_a_conflict_even_with_the_record(sign_in, rival, client, service_role):
    assert sign_in.prove(DOMAIN).status_code == 200
    assert_error(rival.prove(DOMAIN), 400, "conflict", "Another provider has this domain")
    assert "proved_at" not in rival.owner.get(f"{rival.path}/domains").json["domains"][0]
    # The operator alone moves it.
    path = f"{sign_in.path}/domains/{DOMAIN}"
    assert_error(rival.owner.delete(path), 404, "organization_not_found")
    assert client.delete(path, headers=service_role).status_code == 204
    assert rival.prove(DOMAIN).status_code == 200


def test_domain_of_the_operators_provider_is_a_conflict(sign_in, client, service_role, customers):
    body = customers.globex.body(domains=[DOMAIN])
    assert client.post("/admin/custom-providers", json=body, headers=service_role).status_code == 201
    assert_error(sign_in.prove(DOMAIN), 400, "conflict", "Another provider has this domain")


@pytest.mark.parametrize("domain", ["gmail.com", "no domain", "*.example.com", "localhost"])
def test_domain_of_everybody_or_of_nobody_is_refused(sign_in, owner, acme, database, domain):
    response = owner.post(f"{acme}/domains", json={"domain": domain})
    assert_error(response, 400, "validation_failed", details=ANYTHING)
    assert database.count("organization_domains") == 0


def test_path_with_a_character_that_postgres_refuses_names_nothing(sign_in, owner, acme):
    for path, code in (
        ("/organizations/a%00b", "organization_not_found"),
        ("/organizations/a%00b/domains", "organization_not_found"),
        (f"{acme}/domains/a%00b.example", "domain_not_found"),
        (f"{acme}/providers/a%00b", "custom_provider_not_found"),
    ):
        if code != "domain_not_found":
            assert_error(owner.get(path), 404, code)
        if not path.endswith("/domains"):
            assert_error(owner.delete(path, json={}), 404, code)
    assert_error(owner.post(f"{acme}/domains/a%00b.example"), 404, "domain_not_found")


def test_owners_alone_see_and_name_domains(sign_in, acme, join, bob, mallory, client):
    admin, stranger = join(bob, acme, "admin"), mallory.open_session(client)
    sign_in.name(DOMAIN)
    for session, status, code in (
        (admin, 403, "insufficient_permissions"),
        (stranger, 404, "organization_not_found"),
    ):
        for response in (
            session.get(f"{acme}/domains"),
            session.post(f"{acme}/domains", json={"domain": "acme.example"}),
            session.post(f"{acme}/domains/{DOMAIN}"),
            session.delete(f"{acme}/domains/{DOMAIN}"),
        ):
            assert_error(response, status, code)


def test_twenty_domains_are_named(sign_in, owner, acme, database):
    database.run(
        "INSERT INTO organization_domains (organization_id, domain, token)"
        " SELECT id, n || '.example', '' FROM organizations, generate_series(1, 20) AS n"
    )
    response = owner.post(f"{acme}/domains", json={"domain": DOMAIN})
    assert_error(response, 422, "too_many_domains")


def test_service_without_customers_providers_has_no_routes(owner, acme, make_app):
    session = owner.on(make_app(AUTH_ORGANIZATIONS="users").test_client())
    assert session.get(acme).status_code == 200
    for path in ("domains", "providers", "providers/x"):
        assert_error(
            session.get(f"{acme}/{path}"), 404, "feature_disabled", "Customers' providers are disabled"
        )


def test_giving_up_a_domain_needs_a_fresh_proof(
    on, provider, sign_in, browse, alice, database, service, customers
):
    customers.acme.be("7", "eve@example.com")
    database.run("UPDATE sessions SET created_at = created_at - interval '1 day', reauthenticated_at = NULL")
    path, page = f"{sign_in.path}/domains/{DOMAIN}", f"{PATH}/sign-in/domains/{DOMAIN}/remove"
    assert_error(sign_in.owner.delete(path), 400, "reauthentication_needed", details=ANYTHING)
    wrong = sign_in.owner.delete(path, json={"current_password": "wrong"})
    assert_error(wrong, 400, "current_password_invalid", details=ANYTHING)
    visitor = browse(alice)
    visitor.visit(page)
    database.run("UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL")
    visitor.send(page)
    assert "access_token" in service.sign_in(f"custom:{provider}").url
    assert sign_in.owner.delete(path, json={"current_password": PASSWORD}).status_code == 204
    assert "access_token" not in service.sign_in(f"custom:{provider}").url


@pytest.mark.parametrize("is_proved", [True, False])
def test_other_owners_are_told_that_a_proved_domain_is_given_up(
    sign_in, acme, join, bob, browse, alice, database, outbox, is_proved
):
    join(bob, acme, "owner")
    (sign_in.prove if is_proved else sign_in.name)(DOMAIN)
    visitor, path = browse(alice), f"{PATH}/sign-in/domains/{DOMAIN}/remove"
    assert DOMAIN in words(visitor.visit(path))
    visitor.press(path[1:])
    assert database.count("organization_domains") == 0
    assert database.count("outbox", "kind = 'organization_sign_in'") == is_proved
    if is_proved:
        variables = outbox.last(to=bob.email).variables
        assert (variables["change"], variables["domain"]) == ("domain_lost", DOMAIN)


@pytest.mark.parametrize("path", ["Your%20account%20is%20locked", "other.example", "a%00b"])
def test_page_that_gives_a_domain_up_shows_only_a_domain_of_the_organization(sign_in, browse, alice, path):
    sign_in.name(DOMAIN)
    visitor = browse(alice)
    assert DOMAIN in words(visitor.visit(f"{PATH}/sign-in/domains/{DOMAIN.upper()}/remove"))
    page = visitor.visit(f"{PATH}/sign-in/domains/{path}/remove")
    assert page.status == 404
    assert "locked" not in words(page)


def test_form_of_a_domain_that_is_gone_meanwhile_is_not_shown_again(sign_in, acme, browse, alice, database):
    sign_in.name(DOMAIN)
    visitor, path = browse(alice), f"{PATH}/sign-in/domains/{DOMAIN}/remove"
    visitor.visit(path)
    assert sign_in.owner.delete(f"{acme}/domains/{DOMAIN}", json={}).status_code == 204
    visitor.press(path[1:])
    assert visitor.page.status == 404
    assert "no longer sign in with your provider" not in words(visitor.page)
