"""*This wasn't me*: the owner takes the account back with the link of a notice.

A user with a factor older than seven days must use it: a stolen mailbox must not bypass a factor.
"""

from collections.abc import Callable, Container
from typing import NamedTuple

from psycopg2.errors import UniqueViolation

from auth.core import addresses
from auth.core.factors.webauthn import Assertion
from auth.core.json_bodies import JsonObject
from auth.flows import ends, memberships
from auth.flows.account import removal
from auth.flows.factors import factor_codes
from auth.flows.factors.factors import delete as delete_factors
from auth.flows.facts import PersonFacts
from auth.flows.links.finding import find_link, good_link, locked
from auth.flows.links.proving import holder_of, person_of, prove_address, record_mail_proof
from auth.flows.messages.outgoing import notify_without_link
from auth.flows.passkeys import assertions
from auth.rules import links
from auth.rules.factors import may_be_copy
from auth.rules.policy import RECENT_AGE
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Runner, acts, queries
from sql.acts import Act


class Answer(NamedTuple):
    """The factor that a user gives: a code, or a security key or passkey with its verified assertion."""

    code: str = ""
    factor_id: str = ""
    assertion: Assertion | None = None


def challenge(asked: Asked, token: str) -> JsonObject | None:
    """Return a challenge with options for the user of a link, or None if the link asks for no credential."""
    credentials = _credentials(asked, token)
    if not credentials:
        return None
    # The link proves the mailbox, so user presence is enough, even for passkeys.
    secret, options = asked.parts.relying_party.request_options(credentials, is_passkey=False)
    user_id = credentials[0].user_id
    row = assertions.write_challenge(asked.db, assertions.SECURITY_KEY, secret, user_id=user_id)
    return {"challenge_id": row.id, "options": options}


def verify(asked: Asked, token: str, body: JsonObject) -> Answer:
    """Spend the challenge, and verify the response to it."""
    credentials = {bytes(row.credential_id or b""): row for row in _credentials(asked, token)}
    if not credentials:
        raise ApiError("undo.insufficient_aal")
    owner = {"user_id": next(iter(credentials.values())).user_id}
    challenge = assertions.spend_challenge(asked, body["challenge_id"], assertions.SECURITY_KEY, **owner)
    find = credentials.get
    row, assertion = assertions.check(asked, body["credential"], challenge, find, is_passkey=False)
    return Answer("", row.id, assertion)


def asked_factors(asked: Asked, token: str) -> "list[queries.ListFactorsOfUndo]":
    """Return the factors of which the link asks for one, if any."""
    link = good_link(asked, token, ["undo"])
    return _factors_of(asked.db, link.user_id) if link else []


def comes_back(on: Runner, link: "queries.SelectLink") -> bool:
    """Whether the user gets the address of a link back."""
    return links.comes_back(holder_of(on, link.target, link.user_id), link.target)


def list_undone(on: Runner, link: "queries.SelectLink", *, is_back: bool) -> list[JsonObject]:
    """Return what was added in the last seven days. An address that comes back replaces the present one."""
    replaced = addresses.kind_of(link.target) if is_back else None
    return [way for way in removal.list_recent(on, link.user_id) if way["type"] != replaced]


def take_back(asked: Asked, token: str, answer: Answer, kept_ids: Container[str]) -> str | None:
    """Spend a link, and give the account to the owner of the link's address. Return the address, or None if
    it belongs to another user.

    `kept_ids` are the ids of recent additions that stay.
    """
    lookup = find_link(token, "undo")
    asked.noted.note(token_hash=lookup.token_hash, type="undo")
    # The verdict on a code is committed before the user is locked.
    spend = _check_code(asked, asked_factors(asked, token), answer.code) if answer.code else None
    try:
        with locked(asked, lookup) as (act, link):
            if link is None:
                raise ApiError("otp_expired")
            # The refusal is raised below, so that the act commits what it records of a credential.
            refusal = _use_factor(act, link, answer, spend)
            if refusal is None:
                queries.spend_link(act, id=link.id)
                is_back = comes_back(act, link)
                additions = list_undone(act, link, is_back=is_back)
                _take_back(asked, act, link, [way for way in additions if way["id"] not in kept_ids], is_back)
                return link.target if is_back else None
    except UniqueViolation:
        raise ApiError("email_exists") from None
    raise refusal


def _credentials(asked: Asked, token: str) -> "list[queries.ListFactorsOfUndo]":
    return [row for row in asked_factors(asked, token) if row.credential_id is not None]


def _factors_of(on: Runner, user_id: str) -> "list[queries.ListFactorsOfUndo]":
    """Return the old factors of a user, also those that were removed since."""
    return [
        row
        for row in queries.list_factors_of_undo(on, user_id=user_id)
        if (
            links.asks_for_factor(row.verified_at, row.now)
            if row.removed_at is None
            else links.asks_for_removed_factor(row.verified_at, row.removed_at, row.now)
        )
    ]


def _check_code(
    asked: Asked, factors: "list[queries.ListFactorsOfUndo]", code: str
) -> Callable[[Runner], bool] | None:
    """Record the verdict on a code, and return the function that spends a right one."""
    if not factors:
        return None
    user_id = factors[0].user_id
    with acts.on(asked.db, user_id) as act:
        # The link gives this network tries of its own.
        record_mail_proof(act, person_of(act, user_id).id, asked.client["network"])
    return factor_codes.check_owner(asked, factors, code)


def _use_factor(
    act: Act, link: "queries.SelectLink", answer: Answer, spend: Callable[[Runner], bool] | None
) -> ApiError | None:
    """Use the factor that a link asks for, or return the refusal. `spend` spends a right code."""
    factors = _factors_of(act, link.user_id)
    if not factors:
        return None
    if not answer.assertion:
        # The first page sends no factor. This is not an attempt.
        return None if spend and spend(act) else ApiError("undo.insufficient_aal")
    credential = next((row for row in factors if row.id == answer.factor_id), None)
    if credential is None:
        return ApiError("undo.insufficient_aal")
    if credential.removed_at is None:
        return assertions.use(act, credential, answer.assertion, link.email)
    counter, before = answer.assertion.new_sign_count, credential.sign_count or 0
    is_copy = may_be_copy(before, counter, is_synced=credential.backup_eligible)
    return assertions.counter_fell() if is_copy else None


def _take_back(
    asked: Asked, act: Act, link: "queries.SelectLink", additions: list[JsonObject], is_back: bool
) -> None:
    """Remove recent additions and everything that gives access, and restore the address."""
    user = person_of(act, link.user_id)
    ids = [way["id"] for way in additions]
    queries.remove_ways_to_sign_in(act, user_id=user.id, ids=ids, providers=[])
    delete_factors(act, user.id, ids)
    # The link has asked for one of the factors that were removed since.
    lost = [row.id for row in _factors_of(act, user.id) if row.removed_at is not None]
    queries.restore_factors(act, user_id=user.id, ids=lost, codes_before=act.acted_at - RECENT_AGE)
    queries.forget_factors(act, user_id=user.id)
    if is_back:
        _give_back(asked, act, user, link.target, by_key=link.is_by_key)
    else:
        removal.check_remaining(asked, act, user.id)
    queries.set_password(act, user_id=user.id, password_hash=None, by_key=False)
    slugs = memberships.take_back(asked, act, user.id)
    # This comes after the organizations are locked, because it deletes invitations to them.
    ends.end_and_void(act, user.id, None, "change_undone")
    queries.forget_mail_proofs(act, user_id=user.id)
    queries.void_undo_links(act, user_id=user.id, moment=link.created_at)
    names = [f"{way['type']} {way['label']}".strip() for way in additions]
    names += [f"membership {slug}" for slug in slugs]
    email = person_of(act, user.id).email
    audit.record(act, user.id, email, ["change_undone"], ["user.updated"], removed=names)


def _give_back(asked: Asked, act: Act, user: PersonFacts, address: str, *, by_key: bool) -> None:
    kind = addresses.kind_of(address)
    if address in (user.email, user.phone):
        return
    holder = holder_of(act, address, user.id)
    if holder:
        queries.remove_ways_to_sign_in(act, user_id=holder.id, ids=[], providers=[kind])
        email = None if kind == "email" else holder.email
        audit.record(act, holder.id, email, [f"{kind}_changed"], ["user.updated"], old_address=address)
    if kind == "email" and user.email_proved:
        # The notice has no link, which could take the account away again.
        notify_without_link(asked, act, user, "email_changed", new_email=address)
    prove_address(act, person_of(act, user.id), kind, address, "undo", by_key=by_key)
