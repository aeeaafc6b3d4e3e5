"""Decides who may get an address: by settings, lists of domains, and the operator's hook.

Nothing is read first: the hook is asked about a taken address as about a free one, so that neither the
answer nor its time reveals which it is. Administrators vouch for addresses, and ask only about new users.
"""

import uuid
from typing import Any

from auth.core.addresses import is_possible_phone
from auth.extensions import AdmissionHook
from auth.web.asked import Asked
from auth.web.errors import ApiError


def may_become(
    asked: Asked,
    email: str | None,
    phone: str | None,
    *,
    data: dict[str, Any] | None = None,
    user_id: str | None = None,
    provider: str | None = None,
    is_first: bool = True,
    is_vouched: bool = False,
    doing: str = "Sign-in",
) -> str:
    """Return the id of the user who may get the addresses, by default a new one.

    Without an address and a provider, which has given the email, the user is anonymous. `is_first` unless the
    user has another address; `is_vouched` if an administrator asks. Call it outside any transaction.
    """
    if not (provider or is_vouched):
        check_channel(asked, email, phone, doing=doing)
        if (email or is_first) and not is_listed(asked, email):
            raise ApiError("email_address_not_authorized")
    id = user_id or str(uuid.uuid4())
    for ask in _hooks(asked):
        ask(id, email=email, phone=phone, data=data or {}, provider=provider)
    return id


def has_hook(asked: Asked) -> bool:
    return bool(_hooks(asked))


def _hooks(asked: Asked) -> list[AdmissionHook]:
    return [hook for each in asked.parts.extensions if (hook := each.admission_hook())]


def is_listed(asked: Asked, email: str | None, *, is_proved: bool = True) -> bool:
    """Whether the lists of domains allow an email, or a user without one.

    `AUTH_SIGNUP_DOMAINS` needs an email that a trusted provider has verified, or that will be proved.
    """
    settings, labels = asked.settings, (email or "").rpartition("@")[2].split(".")
    domain, *parents = (".".join(labels[skipped:]) for skipped in range(len(labels)))
    is_allowed = not settings.signup_domains or (is_proved and domain in settings.signup_domains)
    return is_allowed and settings.signup_blocked_domains.isdisjoint((domain, *parents))


def check_channel(
    asked: Asked, email: str | None, phone: str | None, *, doing: str = "Sign-in", sends: bool = True
) -> None:
    """Refuse a disabled kind of address and, if the act `sends`, a number that SMS cannot reach.

    A user with such a number can still sign in with a password.
    """
    if email and not asked.settings.email_enabled:
        raise ApiError("email_provider_disabled", doing=doing)
    if phone and not asked.settings.offers_phone:
        raise ApiError("phone_provider_disabled", doing=doing)
    if not (phone and sends):
        return
    if not is_possible_phone(phone):
        raise ApiError("phone.validation_failed", "phone: must be as long as the numbers of its country")
    countries = asked.settings.sms_countries
    if countries and not phone.startswith(tuple(countries)):
        raise ApiError("country.validation_failed", f"phone: must begin with {', '.join(countries)}")
