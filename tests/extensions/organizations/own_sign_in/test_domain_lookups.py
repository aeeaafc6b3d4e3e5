"""The janitor looks up the records of proved domains, and removes what an ended organization leaves."""

import pytest

from auth.core.net import text_records
from auth.delivery import janitor
from auth.web.context import EXTENSION
from tests.support.answers import assert_error
from tests.support.oauth import assert_failed

DOMAIN, NAME = "example.com", "_latchkey.example.com"


@pytest.fixture
def provider(provider, database) -> str:
    """The id of Acme's provider, which is on."""
    database.run("UPDATE identity_providers SET is_on = true")
    return provider


@pytest.fixture
def keep_house(service):
    return lambda parts=service.parts: janitor.keep_house(parts.settings, parts.db, parts.sealer)


@pytest.fixture
def pass_days(database, keep_house):
    """Let days pass before the janitor comes."""

    def pass_days(days, *parts):
        for column in ("checked_at", "missing_since"):
            database.run(
                f"UPDATE organization_domains SET {column} = {column} - make_interval(days => {days})"
            )
        keep_house(*parts)

    return pass_days


def test_record_that_is_missing_for_fourteen_days_gives_the_domain_up(
    provider, names, pass_days, database, outbox, customers, service, alice
):
    record = names.texts.pop(NAME)
    pass_days(6)
    assert database.value("SELECT missing_since FROM organization_domains") is None
    pass_days(2)
    assert database.value(
        "SELECT missing_since IS NOT NULL AND proved_at IS NOT NULL FROM organization_domains"
    )
    assert outbox.last(to=alice.email).kind == "organization_domain_missing"
    pass_days(13)
    customers.acme.be("2", "dave@example.com")
    assert service.signed_in(f"custom:{provider}")
    pass_days(2)
    assert database.value("SELECT proved_at IS NULL FROM organization_domains")
    assert database.count("identity_provider_domains") == 0
    assert database.count("audit_log", "action = 'domain_lost'") == 1
    assert database.count("outbox", "kind = 'organization_domain_missing'") == 1
    assert "error" in service.sign_in(f"custom:{provider}").url
    assert_error(service.client.post("/sso", json={"domain": DOMAIN}), 404, "sso_provider_not_found")
    # Although the record is back, its owners have to prove it again.
    names.texts[NAME] = record
    pass_days(1)
    assert database.count("identity_provider_domains") == 0


def test_all_owners_are_told_that_a_domain_without_its_record_is_lost(
    provider, names, pass_days, database, outbox, alice, bob, carol, acme, join
):
    join(bob, acme, "owner")
    join(carol, acme, "admin")
    names.texts.clear()
    pass_days(8)
    pass_days(13)
    assert database.count("outbox", "kind = 'organization_sign_in'") == 0
    pass_days(2)
    for owner in (alice, bob):
        notice = outbox.last(to=owner.email)
        assert notice.kind == "organization_sign_in"
        variables = {name: notice.variables[name] for name in ("change", "domain", "organization", "slug")}
        assert variables == {
            "change": "domain_lost",
            "domain": DOMAIN,
            "organization": "Acme",
            "slug": "acme",
        }
    pass_days(8)
    assert database.count("outbox", "kind = 'organization_sign_in' AND is_notice") == 2


@pytest.mark.parametrize("phone", ["true", "false"])
def test_owner_without_a_mail_address_is_told_by_sms_where_the_service_sends_them(
    provider, names, pass_days, database, make_app, phone
):
    database.run("UPDATE users SET phone = '+15555550100', phone_proved = true, email_proved = false")
    names.texts.clear()
    parts = make_app(AUTH_PHONE_ENABLED=phone).extensions[EXTENSION]
    for days in (8, 15):
        pass_days(days, parts)
    notices = database.all(
        "SELECT kind, recipient FROM outbox WHERE kind LIKE 'organization%%' ORDER BY kind"
    )
    kinds = ["organization_domain_missing", "organization_sign_in"] if phone == "true" else []
    assert notices == [(kind, "+15555550100") for kind in kinds]


def test_record_that_comes_back_in_time_keeps_the_domain(provider, names, pass_days, database):
    record = names.texts.pop(NAME)
    pass_days(8)
    names.texts[NAME] = record
    pass_days(2)
    state = "SELECT proved_at IS NOT NULL AND missing_since IS NULL FROM organization_domains"
    assert database.value(state)
    assert database.count("identity_provider_domains") == 1


def test_name_server_that_does_not_answer_takes_no_domain(provider, names, pass_days, database, monkeypatch):
    names.resolver.port = 9
    monkeypatch.setattr(text_records, "_DEADLINE", 0.2)
    pass_days(8)
    assert database.value("SELECT proved_at IS NOT NULL AND missing_since IS NULL FROM organization_domains")


def test_ended_organization_leaves_no_provider_and_no_domain(
    provider, acme, owner, service, customers, database, keep_house
):
    customers.acme.be("2", "dave@example.com")
    session = service.signed_in(f"custom:{provider}")
    assert owner.delete(acme, json={}).status_code == 204
    assert_error(session.get("/user"), 401, "session_not_found")
    assert "is turned off" in service.sign_in(f"custom:{provider}").text
    keep_house()
    for table in ("organizations", "identity_providers", "organization_domains", "memberships"):
        assert database.count(table) == 0
    assert database.count("users") == 2


def test_organization_that_ends_with_its_last_user_disables_its_provider(
    provider, owner, database, keep_house, service, customers
):
    assert owner.delete("/user", json={}).status_code == 200
    # The janitor comes within the hour, the end is at once.
    customers.acme.be("2", "dave@example.com")
    assert_failed(service.sign_in(f"custom:{provider}"), "sso_provider_disabled")
    assert database.count("users") == 0
    keep_house()
    assert database.count("identity_providers") + database.count("organizations") == 0


def test_organization_that_ends_with_its_last_user_ends_what_its_provider_opened(
    provider, owner, database, keep_house, service, customers
):
    database.run("UPDATE identity_providers SET member_role = NULL")
    customers.acme.be("2", "dave@example.com")
    session = service.signed_in(f"custom:{provider}")
    assert owner.delete("/user", json={}).status_code == 200
    keep_house()
    assert_error(session.refresh(), 400, "refresh_token_not_found")
    assert database.count("identities", "provider LIKE 'sso:%%'") == 0
