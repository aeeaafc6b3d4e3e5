from dataclasses import replace

from psycopg2.errors import UniqueViolation

from auth.core.json_bodies import JsonObject
from auth.core.providers.client import ExternalIdentity, Provider
from auth.core.text.moments import iso_8601
from auth.core.text.names import PREFIX
from auth.core.tokens import one_time
from auth.core.tokens.access_tokens import Caller
from auth.flows import admission, ends
from auth.flows.account import removal
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import notify
from auth.flows.sessions import refreshing
from auth.flows.sessions.issuing import IssuedSession, about_own
from auth.flows.sign_in.external_identities import invalid_id_token, read_id_token
from auth.flows.sign_in.oauth import new_secrets, write_flow
from auth.flows.sign_in.reauthentication import add, admit_caller, proof_refusal
from auth.flows.sign_in.reauthentication import remove as removing
from auth.flows.sign_up import first_address
from auth.rules.levels import level_at
from auth.rules.proofs import Proof
from auth.rules.users import is_anonymous
from auth.web import Level, audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import acts, queries
from sql.acts import Act


def require_manual_linking(asked: Asked) -> None:
    """Refuse if users may not link and unlink identities."""
    if not asked.settings.manual_linking:
        asked.live_caller()
        raise ApiError("manual_linking_disabled")


def require_of_settings(provider: str) -> None:
    """Refuse a customer's provider, whose identities users cannot add."""
    if provider.startswith(PREFIX):
        raise ApiError("customer.manual_linking_disabled")


def begin(
    asked: Asked,
    provider: Provider,
    *,
    scopes: str | None,
    redirect_to: str | None,
    code_challenge: str | None,
    proof: Proof | None,
) -> str:
    """Begin a flow for the caller, and return its state."""
    require_of_settings(provider.name)
    state = one_time.new_token()
    with acts.on(asked.db, asked.caller.user_id) as act:
        # The error asks for no password, because logs keep the URL.
        accepted = "nonce with the code that GET /reauthenticate sends"
        caller = admit_caller(asked, act, add("identity"), proof=proof, accepted=accepted)
        secrets, session_id = new_secrets(scopes), asked.caller.session_id
        write_flow(
            asked,
            act,
            provider,
            state,
            secrets,
            redirect_to=redirect_to,
            code_challenge=code_challenge,
            user_id=caller.id,
            session_id=session_id,
        )
    return state


def link(asked: Asked, flow: "queries.SpendOauthFlow", identity: ExternalIdentity) -> None:
    """Link an identity to the user who began the flow."""
    # `begin` has checked the token and the proof against the factors at that time. Since then, the user's
    # first factor may have raised the session.
    person = found(
        queries.select_person(asked.db, user_id=flow.user_id, session_id=flow.session_id), "session_not_found"
    )
    session_id = found(flow.session_id, "session_not_found")
    aal = level_at(person, flow.created_at)
    asked = replace(asked, user=Caller(person.id, session_id, None, aal), level=Level.SESSION)
    _ask(asked, identity, person.id)
    with acts.on(asked.db, person.id) as act:
        try:
            user = admit_caller(asked, act, add("identity"), proof="begun")
        except ApiError:
            # The flow began with a session that could link.
            raise ApiError("session_not_found") from None
        if user.converted_at and user.converted_at > flow.created_at:
            # An anonymous user began the flow, without a proof.
            raise proof_refusal()
        _add(asked, act, user, identity, session_id)


def link_by_id_token(asked: Asked, body: JsonObject) -> IssuedSession:
    """Link the identity of an unused id_token. Return the caller's session, with a new refresh token."""
    identity, id_token = read_id_token(asked, body)
    _ask(asked, identity, asked.caller.user_id)
    with acts.on(asked.db, asked.caller.user_id) as act:
        # The body's nonce is that of the id_token.
        accepted = "current_password or nonce to POST /reauthenticate"
        user = admit_caller(asked, act, add("identity"), accepted=accepted)
        if not queries.spend_id_token(act, **id_token):
            raise invalid_id_token()
        _add(asked, act, user, identity, asked.caller.session_id)
        hook = asked.parts.token_hook
        if hook is None:
            return refreshing.renew(asked, act, None)
    # The token contains the identity, which stays linked if the hook refuses.
    issue = about_own(asked, hook, None)
    with acts.on(asked.db, asked.caller.user_id) as act:
        admit_caller(asked, act, level=Level.SESSION)
        issue.confirm(act)
        return refreshing.renew(asked, act, issue)


def _ask(asked: Asked, identity: ExternalIdentity, user_id: str) -> None:
    require_of_settings(identity.provider)
    admission.ask_hook(asked, user_id, identity.email, None, provider=identity.provider)


def _add(
    asked: Asked,
    act: Act,
    user: PersonFacts,
    identity: ExternalIdentity,
    session_id: str,
) -> None:
    gets_email, was_anonymous = False, is_anonymous(user)
    try:
        by_key = user.is_session_by_key
        if not queries.insert_identity(
            act,
            user_id=user.id,
            last_sign_in_at=None,
            by_key=by_key,
            is_first_proof=False,
            **identity.row,
        ):
            raise ApiError("identity_already_exists")
        if was_anonymous:
            if refusal := admission.refusal_of_identity(asked, act, user, identity):
                raise ApiError(refusal)
            gets_email = first_address.finish_by_identity(asked, act, user, identity, session_id)
    except UniqueViolation as error:
        is_email = error.diag.constraint_name == "users_email_key"
        raise ApiError("email_exists" if is_email else "identity_already_exists") from None
    if not was_anonymous:
        ends.end(act, user.id, session_id, "identity_linked")
        notify(asked, act, user, "identity_linked", provider=identity.provider)
    email = identity.email if gets_email else user.email
    entries = ["identity_linked", "email_confirmed" if gets_email else None]
    audit.record(act, user.id, email, entries, ["user.updated"], provider=identity.provider)


def unlink(asked: Asked, identity_id: str, *, proof: Proof | None = None) -> str:
    """Remove an identity, or its address, from the caller, and return the time in ISO 8601."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        user = admit_caller(asked, act, removing("identity", identity_id), proof=proof)
        ways = queries.list_ways_to_sign_in(act, user_id=user.id, ids=[identity_id])
        provider = found(next(iter(ways), None), "identity_not_found").provider
        email = removal.take_away(asked, act, user, [provider])
        audit.record(act, user.id, email, [], ["user.updated"])
    return iso_8601(act.acted_at)
