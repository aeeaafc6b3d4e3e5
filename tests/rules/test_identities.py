"""Which provider signs in which user, an example for each sentence of the rule."""

from dataclasses import dataclass, replace

import pytest

from auth.rules.identities import (
    may_rejoin,
    problem_of_key,
    problem_without_secret,
    reader_of_cause,
    refusal_of_customer,
    refusal_of_customers_user,
    refusal_of_key,
    refusal_of_unlinking,
    turned,
)
from tests.rules.facts import Person


@dataclass(frozen=True)
class Provider:
    enabled: bool
    domains: frozenset[str]
    is_blocked: bool = False


EXAMPLE = Provider(enabled=True, domains=frozenset({"example.com"}))
ALICE = Person(email="alice@example.com", email_proved=True)
UNPROVED = replace(ALICE, email_proved=False)
NOT_AUTHORIZED = "customer.email_address_not_authorized"


@pytest.mark.parametrize(
    ("provider", "email", "refusal"),
    [
        (EXAMPLE, "alice@example.com", None),
        (EXAMPLE, "alice@sub.example.com", NOT_AUTHORIZED),
        (EXAMPLE, None, NOT_AUTHORIZED),
        (replace(EXAMPLE, enabled=False), "alice@example.com", "sso_provider_disabled"),
        (None, "alice@example.com", "sso_provider_disabled"),
    ],
)
def test_customers_provider_speaks_of_its_domains_while_it_is_enabled(provider, email, refusal):
    assert refusal_of_customer(provider, email) == refusal


def test_owner_tests_a_provider_that_is_off_unless_the_operator_has_disabled_it():
    off = replace(EXAMPLE, enabled=False)
    for is_blocked, refusal in ((False, None), (True, "sso_provider_disabled")):
        provider = replace(off, is_blocked=is_blocked)
        assert refusal_of_customer(provider, "alice@example.com", is_test=True) == refusal


@pytest.mark.parametrize(
    ("user", "is_linked", "is_adopted", "refusal"),
    [
        (replace(ALICE, role="admin"), True, True, "admin.user_sso_conflict"),
        (ALICE, True, False, None),
        (replace(ALICE, email="alice@example.org"), True, True, NOT_AUTHORIZED),
        (replace(UNPROVED, email=None), True, False, NOT_AUTHORIZED),
        (ALICE, False, True, None),
        (ALICE, False, False, "user_sso_conflict"),
        (UNPROVED, False, False, None),
        (replace(UNPROVED, phone="+15550100", phone_proved=True), False, False, "user_sso_conflict"),
    ],
)
def test_customers_provider_signs_in_its_users(user, is_linked, is_adopted, refusal):
    assert refusal == refusal_of_customers_user(user, EXAMPLE, is_linked=is_linked, is_adopted=is_adopted)


@pytest.mark.parametrize(
    ("was_enabled", "was_blocked", "is_enabled", "is_blocked", "entry"),
    [
        (True, False, True, False, None),
        (False, False, True, False, "provider_enabled"),
        (False, True, True, False, "provider_enabled"),
        (True, False, False, False, "provider_disabled"),
        (True, False, False, True, "provider_disabled"),
        (False, False, False, True, "provider_disabled"),
        (False, False, False, False, None),
        (False, True, False, True, None),
    ],
)
def test_operator_also_disables_a_provider_that_its_owners_have_turned_off(
    was_enabled, was_blocked, is_enabled, is_blocked, entry
):
    provider = replace(EXAMPLE, enabled=was_enabled, is_blocked=was_blocked)
    assert turned(provider, is_enabled=is_enabled, is_blocked=is_blocked) == entry


@dataclass(frozen=True)
class JoinableProvider:
    enabled: bool = True
    member_role: str | None = "member"
    domains: tuple[str, ...] = ("example.com",)


@pytest.mark.parametrize(
    ("user", "provider", "may"),
    [
        (ALICE, JoinableProvider(), True),
        (ALICE, JoinableProvider(enabled=False), False),
        (ALICE, JoinableProvider(member_role=None), False),
        (ALICE, JoinableProvider(domains=("acme.example",)), False),
        (UNPROVED, JoinableProvider(), False),
        (replace(ALICE, role="admin"), JoinableProvider(), False),
    ],
)
def test_former_member_of_the_domain_may_rejoin_by_a_move_to_a_provider_that_adds_members(
    user, provider, may
):
    assert may_rejoin(user, [JoinableProvider(domains=()), provider]) is may
    assert may_rejoin(user, []) is False


@dataclass(frozen=True)
class Client:
    issuer: str = "https://login.acme.example"
    discovery_url: str = ""
    client_id: str = "latchkey"


@pytest.mark.parametrize(
    ("after", "member"),
    [
        (Client(), None),
        (Client(issuer="https://evil.example"), "issuer"),
        (Client(discovery_url="https://login.acme.example/evil"), "discovery_url"),
        (Client(client_id="app"), "client_id"),
        (Client(issuer="https://evil.example", client_id="app"), "issuer"),
    ],
)
def test_another_issuer_document_or_client_needs_the_secret(after, member):
    problem = member and f"client_secret: is required with another {member}"
    assert problem_without_secret(Client(), after) == problem


def test_removed_document_is_another_one():
    assert problem_without_secret(Client(discovery_url="https://login.acme.example/own"), Client())


@pytest.mark.parametrize(
    ("is_enabled", "changes", "member"),
    [
        (True, {}, None),
        (True, {"name": "Acme"}, None),
        (True, {"name": "Acme", "enabled": False}, None),
        (True, {"enabled": True}, None),
        (False, {"enabled": False}, None),
        (False, {"enabled": True}, "enabled"),
        (True, {"name": "Acme", "domains": ["example.com"]}, "domains"),
        (True, {"client_secret": "x", "acceptable_client_ids": []}, "acceptable_client_ids"),
        (True, {"member_role": None}, "member_role"),
    ],
)
def test_administrative_key_renames_a_provider_and_turns_it_off(is_enabled, changes, member):
    problem = problem_of_key(replace(EXAMPLE, enabled=is_enabled), changes)
    assert (problem and problem.partition(":")[0]) == member


@pytest.mark.parametrize(
    ("entry", "has_administrators", "is_refused"),
    [("provider_disabled", False, False), ("provider_disabled", True, True), (None, True, False)],
)
def test_administrative_key_turns_off_no_provider_of_an_administrator(entry, has_administrators, is_refused):
    refusal = "target.insufficient_permissions" if is_refused else None
    assert refusal_of_key(entry, has_administrators=has_administrators) == refusal


@pytest.mark.parametrize(
    ("has_left", "is_own_session", "is_refused"),
    [(True, False, False), (True, True, True), (False, False, True), (False, True, True)],
)
def test_user_unlinks_a_customer_after_leaving_in_a_session_that_it_did_not_open(
    has_left, is_own_session, is_refused
):
    refusal = refusal_of_unlinking(has_left=has_left, is_own_session=is_own_session)
    assert refusal == ("customer.manual_linking_disabled" if is_refused else None)


@pytest.mark.parametrize(
    ("role", "is_trial", "is_signed", "reader"),
    [
        ("owner", True, False, "owner"),
        ("owner", True, True, "owner"),
        ("owner", False, True, "employee"),
        ("owner", False, False, None),
        ("admin", True, True, "employee"),
        ("member", False, False, None),
        (None, False, True, "employee"),
        (None, False, False, None),
    ],
)
def test_owner_reads_why_a_test_failed_and_others_what_the_provider_has_signed(
    role, is_trial, is_signed, reader
):
    assert reader_of_cause(role=role, is_trial=is_trial, is_signed=is_signed) == reader
