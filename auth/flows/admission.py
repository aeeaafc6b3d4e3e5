"""Decides who may get an address: by settings, lists of domains, and the operator's hook.

Nothing is read first: the hook is asked about a taken address as about a free one, so that neither the
answer nor its time reveals which it is. Administrators vouch for addresses, and ask only about new users.
"""

from auth.core.addresses import is_email, is_possible_phone
from auth.core.json_bodies import JsonObject
from auth.registry import Candidate
from auth.rules import admission
from auth.rules.refusals import Refusal
from auth.rules.users import AddressKind
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Runner, queries


def check(
    asked: Asked,
    user_id: str,
    email: str | None,
    phone: str | None,
    *,
    data: JsonObject | None = None,
    is_first: bool = True,
    doing: str = "Sign-in",
) -> None:
    """Refuse addresses that a user, perhaps a new one, may not get. Without one, the user is anonymous.

    `is_first` unless the user has another address. Call it outside any transaction.
    """
    is_possible = phone is not None and is_possible_phone(phone)
    refusal = admission.refusal_of_address(
        email, phone, asked.settings, is_possible_phone=is_possible, is_first=is_first
    )
    if refusal:
        raise _error(asked, refusal, doing)
    ask_hook(asked, user_id, email, phone, data=data)


def ask_hook(
    asked: Asked,
    user_id: str,
    email: str | None,
    phone: str | None,
    *,
    data: JsonObject | None = None,
    provider: str | None = None,
) -> None:
    """Let the operator's hook refuse, like `check`, addresses that a provider or an administrator gives."""
    for ask in asked.parts.admission_hooks:
        ask(asked, Candidate(user_id, email, phone, data or {}, provider))


def check_free(on: Runner, address: str, user_id: str | None = None) -> None:
    """Refuse an address that another user has, unless that user gives way."""
    holder_id = queries.find_holder(on, address=address).id
    holder = queries.select_person(on, user_id=holder_id, session_id=None)
    if holder is None or holder.id == user_id:
        return
    kind: AddressKind = "email" if is_email(address) else "phone"
    if refusal := admission.refusal_of_holder(kind, holder):
        raise ApiError(refusal)


def check_channel(asked: Asked, email: str | None, phone: str | None) -> None:
    """Refuse a disabled kind of address, and a number that SMS cannot reach."""
    is_possible = phone is not None and is_possible_phone(phone)
    refusal = admission.refusal_of_channel(email, phone, asked.settings, is_possible_phone=is_possible)
    if refusal:
        raise _error(asked, refusal, "Sign-in")


def _error(asked: Asked, refusal: Refusal, doing: str) -> ApiError:
    details = {
        "phone.validation_failed": "phone: must be as long as the numbers of its country",
        "country.validation_failed": f"phone: must begin with {', '.join(asked.settings.sms_countries)}",
    }
    return ApiError(refusal, details.get(refusal), doing=doing)
