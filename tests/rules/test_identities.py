"""Which provider signs in which user, an example for each sentence of the rule."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from auth.rules.identities import CustomersProvider, refusal_of_customer, refusal_of_customers_user
from auth.rules.users import Address, User

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXAMPLE = CustomersProvider(is_enabled=True, domains=frozenset({"example.com"}))
ADDRESS = Address(value="alice@example.com", added_at=NOW, confirmed_at=NOW, is_proved=True)
ALICE = User(role="authenticated", made_by="signup", email=ADDRESS)
UNPROVED = replace(ALICE, email=replace(ADDRESS, is_proved=False))
PHONE = Address(value="+15550100", added_at=NOW, confirmed_at=NOW, is_proved=True)
OF_OTHERS = "customer.email_address_not_authorized"


@pytest.mark.parametrize(
    ("provider", "email", "refusal"),
    [
        (EXAMPLE, "alice@example.com", None),
        (EXAMPLE, "alice@sub.example.com", OF_OTHERS),
        (EXAMPLE, None, OF_OTHERS),
        (replace(EXAMPLE, is_enabled=False), "alice@example.com", "sso_provider_disabled"),
        (None, "alice@example.com", "sso_provider_disabled"),
    ],
)
def test_customers_provider_speaks_of_its_domains_while_it_is_enabled(provider, email, refusal):
    assert refusal_of_customer(provider, email) == refusal


@pytest.mark.parametrize(
    ("user", "is_linked", "is_adopted", "refusal"),
    [
        (replace(ALICE, role="admin"), True, True, "admin.user_sso_conflict"),
        (ALICE, True, False, None),
        (replace(ALICE, email=replace(ADDRESS, value="alice@example.org")), True, True, OF_OTHERS),
        (replace(ALICE, email=None), True, False, OF_OTHERS),
        (ALICE, False, True, None),
        (ALICE, False, False, "user_sso_conflict"),
        (UNPROVED, False, False, None),
        (replace(UNPROVED, phone=PHONE), False, False, "user_sso_conflict"),
    ],
)
def test_customers_provider_signs_in_its_users(user, is_linked, is_adopted, refusal):
    known = {"is_linked": is_linked, "is_adopted": is_adopted}
    assert refusal_of_customers_user(user, EXAMPLE, **known) == refusal
