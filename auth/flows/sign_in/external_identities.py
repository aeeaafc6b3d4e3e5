"""Signs in with a provider's identity: finds its user, links it, or creates a user."""

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypedDict

from psycopg2.errors import UniqueViolation

from auth.core.json_bodies import JsonObject
from auth.core.providers import ProviderError, ProviderUnavailable
from auth.core.providers.client import ExternalIdentity
from auth.core.providers.id_tokens import unverified_issuer
from auth.flows import admission, ends, facts, memberships
from auth.flows.facts import PersonFacts
from auth.flows.links.proving import person_of, prove_address
from auth.flows.messages.outgoing import notify
from auth.flows.sessions.issuing import Issue, IssuedSession, about_new
from auth.flows.sessions.token_response import Outcome, SignInProof, sign_in_user, write_code
from auth.flows.sign_in.oauth import Initiator, find_provider, name_of_customers
from auth.flows.sign_up import first_address
from auth.registry import TokenHook
from auth.rules import identities
from auth.rules.levels import Level, lacks_level
from auth.rules.organizations import OWNER, is_moved
from auth.rules.sessions import end_of_session
from auth.rules.users import is_banned
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found, unavailable
from sql import Runner, acts, queries


class IdToken(TypedDict):
    """The parameters of `spend_id_token`."""

    token_hash: bytes
    expires_at: int


@dataclass(frozen=True)
class _IdentityOwner:
    """The user of an identity. `is_first` if this sign-in is the first proof of the address; `is_by_key` if
    an administrative key has linked it. `provider_term` is that of a customer's provider.
    """

    person: PersonFacts
    is_first: bool = False
    is_by_key: bool = False
    provider_term: str | None = None


class _HookNotAsked(Exception):
    """The hook has not been asked about the new user."""


def sign_in_with_id_token(asked: Asked, body: JsonObject) -> IssuedSession:
    """Open a session for an unused id_token."""
    identity, id_token = read_id_token(asked, body)
    outcome = sign_in(asked, identity, asked.parts.token_hook, id_token=id_token)
    return found(outcome.session, "unexpected_failure")


def read_id_token(asked: Asked, body: JsonObject) -> tuple[ExternalIdentity, IdToken]:
    """Return the identity of a valid id_token, and the token to spend."""
    provider = find_provider(asked, body["provider"])
    try:
        issuer = unverified_issuer(body["id_token"])
        if provider is None:
            raise ApiError("provider_disabled", issuer=issuer)
        if not provider.has_id_tokens:
            details = "provider: has no ID tokens; sign in with it at GET /authorize"
            raise ApiError("validation_failed", details)
        identity, expires_at = provider.identify_by_id_token(body["id_token"], body.get("nonce"))
    except ProviderUnavailable:
        raise unavailable("provider.service_unavailable") from None
    except ProviderError:
        raise invalid_id_token() from None
    # A token is accepted once, so its hash leaves out the signature, which has several spellings.
    signed = body["id_token"].rpartition(".")[0]
    return identity, {"token_hash": hashlib.sha256(signed.encode()).digest(), "expires_at": expires_at}


def sign_in(
    asked: Asked,
    identity: ExternalIdentity,
    hook: TokenHook | None,
    *,
    code_challenge: str | None = None,
    id_token: IdToken | None = None,
    initiator: Initiator | None = None,
) -> Outcome:
    """Sign in the owner of an identity, else the owner of an email that a trusted provider verified, else a
    new user.

    With a code challenge, return an authorization code instead of a session. If an `initiator` began
    the flow, nobody else is signed in.
    """
    user_id = None if asked.parts.admission_hooks else str(uuid.uuid4())
    # The exchange of the code asks the hook.
    hook = None if code_challenge else hook
    for _ in range(4):
        # Try again after a concurrent request has added the identity or the user.
        with suppress(UniqueViolation):
            try:
                issue = _issue(asked, hook, identity, id_token, user_id) if hook and not initiator else None
                outcome = _try_sign_in(asked, identity, code_challenge, id_token, user_id, issue, initiator)
            except _HookNotAsked:
                data, provider = identity.metadata, identity.provider
                user_id = str(uuid.uuid4())
                admission.ask_hook(asked, user_id, identity.email, None, data=data, provider=provider)
                continue
            if isinstance(outcome, ApiError):
                raise outcome
            return outcome
    raise unavailable()


def _issue(
    asked: Asked,
    hook: TokenHook,
    identity: ExternalIdentity,
    id_token: IdToken | None,
    new_user_id: str | None,
) -> Issue:
    """Ask the token hook after creating or linking the user, unless the sign-in will be refused."""
    user = None
    with _with_owner(asked, identity) as (act, owner):
        if not (id_token and queries.select_spent_id_token(act, token_hash=id_token["token_hash"])):
            user = _user_of(asked, act, identity, owner, new_user_id)
    user_id = user.person.id if isinstance(user, _IdentityOwner) else None
    authenticated_at = _authenticated_at(identity)
    return about_new(
        asked, hook, user_id, "oauth", provider=identity.provider, authenticated_at=authenticated_at
    )


def _try_sign_in(
    asked: Asked,
    identity: ExternalIdentity,
    code_challenge: str | None,
    id_token: IdToken | None,
    user_id: str | None,
    issue: Issue | None,
    initiator: Initiator | None,
) -> Outcome | ApiError:
    """Return the outcome. A refusal is returned, not raised, so that the id_token stays spent."""
    asked.noted.note(provider=identity.provider)
    with _with_owner(asked, identity, by_initiator=initiator is not None) as (act, owner):
        if id_token and not queries.spend_id_token(act, **id_token):
            return invalid_id_token()
        user = _user_of(asked, act, identity, owner, user_id, initiator)
        if isinstance(user, ApiError):
            return user
        person = user.person
        proof = SignInProof(
            method="oauth",
            provider=identity.provider,
            provider_term=user.provider_term,
            authenticated_at=_authenticated_at(identity),
            # Before the first proof of the address, other people may have signed in from the known networks.
            without_notice=frozenset({person.email}) if user.is_first else frozenset(),
            by_key=user.is_by_key,
        )
        if code_challenge:
            return Outcome(authorization_code=write_code(asked, act, person, code_challenge, proof))
        return Outcome(sign_in_user(asked, act, person, proof, issue, provider=identity.provider))


def _authenticated_at(identity: ExternalIdentity) -> datetime | None:
    """Return when the provider authenticated the user, if it says so."""
    return None if identity.auth_time is None else datetime.fromtimestamp(identity.auth_time, UTC)


@contextmanager
def _with_owner(
    asked: Asked, identity: ExternalIdentity, *, by_initiator: bool = False
) -> Iterator[tuple[acts.Act, str | None]]:
    """Begin an act with the owner of an identity locked, else of an email that a trusted provider verified.

    The customer's provider of the identity stays as it is until the act ends. Only a flow of an
    initiator may mark it as tested.
    """

    def find(on: Runner) -> list[str | None]:
        row = queries.select_owner_of_identity(
            on,
            provider=identity.provider,
            subject=identity.row["subject"],
            email=identity.email if identity.is_proved else None,
        )
        return [row.user_id]

    def before(act: acts.Act) -> None:
        if identity.customers_provider_id and by_initiator:
            act.lock_provider(identity.customers_provider_id)
        elif identity.customers_provider_id:
            act.share_provider(identity.customers_provider_id)

    with acts.on_found(asked.db, find, before) as (act, ids):
        yield act, next(iter(ids), None)


def _user_of(
    asked: Asked,
    act: acts.Act,
    identity: ExternalIdentity,
    owner: str | None,
    new_user_id: str | None,
    initiator: Initiator | None = None,
) -> "_IdentityOwner | ApiError":
    """Return the user of an identity, which is linked or created if it is new, or the refusal.

    The user of an organization's provider joins it.
    """
    person = act.read(queries.select_person, user_id=owner, session_id=initiator and initiator.session_id)
    if identity.customers_provider_id is None:
        return _found_or_created(asked, act, identity, person, new_user_id, None)
    # Its issuer may have changed meanwhile.
    own = {"id": identity.customers_provider_id, "issuer": identity.issuer}
    provider = queries.select_provider_of_issuer(act, **own)
    is_test = False
    if initiator and provider:
        if person is None or person.id != initiator.user_id:
            # No address: the cause is in a URL.
            return ApiError("pressed.user_sso_conflict", cause="user_elsewhere")
        # The session may have ended since, such as a thief's by a new password.
        session = facts.own_session_of(person)
        if end := end_of_session(person, session, asked.policy):
            return ApiError(end)
        # A passkey that was added since ends no session.
        if session and lacks_level(person, session, session.aal, Level.AAL2, asked.policy):
            return ApiError("insufficient_aal")
        membership = queries.select_membership_role(
            act, organization_id=provider.organization_id, user_id=person.id
        )
        is_test = membership is not None and membership.role == OWNER
    if refusal := identities.refusal_of_customer(provider, identity.email, is_test=is_test):
        return ApiError(refusal)
    user = _found_or_created(
        asked, act, identity, person, new_user_id, provider, by_initiator=initiator is not None
    )
    if isinstance(user, ApiError) or provider is None:
        return user
    if is_test:
        queries.mark_provider_tried(act, id=identity.customers_provider_id, version=identity.version)
    if provider.organization_id and provider.member_role:
        joins = (provider.organization_id, identity.customers_provider_id, provider.member_role)
        memberships.join_by_provider(act, user.person, *joins)
    return replace(user, provider_term=provider.term)


def _found_or_created(
    asked: Asked,
    act: acts.Act,
    identity: ExternalIdentity,
    person: "PersonFacts | None",
    new_user_id: str | None,
    provider: "queries.SelectProviderOfIssuer | None",
    *,
    by_initiator: bool = False,
) -> "_IdentityOwner | ApiError":
    asked.noted.note(user_id=person and person.id, provider=identity.provider)
    by_key = provider is not None and provider.is_by_key
    is_customers = provider is not None
    if refusal := admission.refusal_of_identity(asked, act, person, identity, is_customers=is_customers):
        return ApiError(refusal)
    if person is None:
        return _create_user(asked, act, identity, new_user_id, by_key=by_key)
    if is_banned(person):
        return ApiError("user_banned")
    ids = {"user_id": person.id, "provider": identity.provider}
    identity_row = queries.select_identity_of(act, **ids, subject=identity.row["subject"])
    is_adopted = False
    if provider:
        # The next sign-in spends an administrator's move, whatever its subject.
        moved = queries.spend_adoption(act, user_id=person.id, provider_id=identity.customers_provider_id)
        is_adopted = by_initiator or moved > 0
        refusal = identities.refusal_of_customers_user(
            person, provider, is_linked=identity_row is not None, is_adopted=is_adopted
        )
        if refusal:
            return ApiError(refusal)
    if identity_row is None:
        replaced = queries.remove_identity(act, **ids) if is_adopted else None
        if replaced:
            # Its subject may be that of a deleted account, or of another person by now.
            ends.end_with_identities(act, person.id, [identity.provider])
            audit.record(act, person.id, person.email, ["identity_unlinked"], [], provider=identity.provider)
        # An account that the provider made stays the company's.
        is_first = replaced is not None and not is_moved(person.created_at, replaced)
        return _link_identity(asked, act, person, identity, by_key=by_key, is_first_proof=is_first)
    if not queries.use_identity(act, user_id=person.id, **identity.row):
        raise unavailable()
    return _IdentityOwner(person, is_by_key=by_key or identity_row.is_by_key)


def _link_identity(
    asked: Asked,
    act: acts.Act,
    person: PersonFacts,
    identity: ExternalIdentity,
    *,
    by_key: bool,
    is_first_proof: bool,
) -> "_IdentityOwner | ApiError":
    """Link an identity to the user of its email, who may have no other one of the provider.

    `is_first_proof` if it replaces one that was, or that made the account.
    """
    details, events = {"method": "oauth", "provider": identity.provider}, ["user.updated"]
    # `person` has a session only if an initiator began the flow.
    by_key = by_key or person.is_email_by_key or person.is_session_by_key
    new = identity.row | {"user_id": person.id, "last_sign_in_at": act.acted_at, "by_key": by_key}
    if person.email_proved:
        if not queries.insert_identity(act, **new, is_first_proof=is_first_proof):
            return ApiError("identity_already_exists")
        name = name_of_customers(act, identity.provider)
        notify(asked, act, person, "identity_linked", provider=identity.provider, provider_name=name)
        audit.record(act, person.id, person.email, ["identity_linked"], events, **details)
        return _IdentityOwner(person, is_by_key=by_key)
    # The first proof removes the user's earlier data, and a notice's link must not restore it.
    address = found(person.email, "unexpected_failure")
    is_first_proof = prove_address(act, person, "email", address, "provider", by_key=by_key)
    queries.insert_identity(act, **new, is_first_proof=is_first_proof)
    audit.record(act, person.id, person.email, ["identity_linked", "email_confirmed"], events, **details)
    return _IdentityOwner(person_of(act, person.id), is_first=True, is_by_key=by_key)


def _create_user(
    asked: Asked, act: acts.Act, identity: ExternalIdentity, user_id: str | None, *, by_key: bool
) -> _IdentityOwner:
    """Return the new user of an identity."""
    if user_id is None:
        raise _HookNotAsked
    email = identity.email if identity.is_proved else first_address.free_email(act, identity.email)
    is_proved = email is not None and identity.is_proved
    columns = {"email": email, "is_proved": is_proved, "user_metadata": identity.metadata, **identity.row}
    queries.create_user_by_identity(act, user_id=user_id, by_key=by_key, **columns)
    if email:
        queries.add_email_of_identity(act, user_id=user_id, email=email)
    details = {"method": "oauth", "provider": identity.provider, "by": "oauth"}
    audit.record(act, user_id, email, ["user_created"], ["user.created"], **details)
    return _IdentityOwner(person_of(act, user_id), is_by_key=by_key)


def invalid_id_token() -> ApiError:
    details = "id_token: must be a fresh one from this provider for this client, with its nonce"
    return ApiError("id_token.bad_oauth_callback", details)
