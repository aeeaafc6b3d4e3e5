"""The end of a sign-in: its session, and the token response (RFC 6749, section 5.1) or the
authorization code (RFC 7636) that stands for it."""

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from flask import Response

from auth.context import latchkey
from auth.hooks import access_token
from auth.tokens import one_time
from auth.tokens.access_tokens import SECOND_STEP
from auth.web import audit, g
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from sql import Transaction, queries

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The result of a sign-in: a session (a row of `open_session`), an authorization code, or a refusal."""

    session: Any = None
    authorization_code: str | None = None
    refusal: ApiError | None = None
    redirect_to: str | None = None
    recent_changes: list[dict[str, Any]] | None = None
    # A sign-up whose password is not confirmed.
    lacks_password: bool = False
    # A link that another browser asked for: the application gets nothing.
    is_elsewhere: bool = False


def open_session(
    tx: Transaction, user_id: str, method: str, *, is_handed_over: bool = False
) -> "queries.OpenSession":
    """Open a session of a user whose row is locked, and return its row."""
    network = None if is_handed_over else g.client["network"]
    return queries.open_session(tx, user_id=user_id, method=method, **g.client | {"network": network})


def raise_session(
    tx: Transaction, session_id: str, method: str, factor_id: str | None
) -> "queries.RaiseSession":
    """Raise a session of a user whose row is locked to `aal2`, and return its row."""
    columns = {"session_id": session_id, "method": method, "factor_id": factor_id}
    return queries.raise_session(tx, **columns, network=g.client["network"])


def see_other(url: str) -> Response:
    # Not `redirect`: its page repeats the tokens. Browsers that leave for another website get a page instead:
    # see auth/pages/leaving.py.
    return Response(status=303, headers={"Location": url})


def token_response(row: Any, **members: Any) -> Response:
    # Postgres has written the user as JSON.
    body = json.dumps(members | tokens(row))
    return JsonResponse(f'{body[:-1]}, "user": {row.user_object}}}')


def issuing(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run an act whose session is for a client, not for a browser on our pages: the token hook is asked."""
    g.issues_token = True
    return act(*args, **kwargs)


def issued(tx: Transaction, row: Any, method: str | None = None) -> Any:
    """Ask the token hook about a session, a row of `open_session`, last in a transaction, and return the row.

    The transaction is one of `access_token.transaction`. `method` is that of `amr` unless given.
    """
    if g.issues_token and access_token.hook():
        g.token_claims = access_token.customize(tx, _compose(row), method or row.amr[-1]["method"])
    return row


@access_token.asked
def issued_by(query: Callable[..., Any], *, method: str | None = None, **parameters: Any) -> Any:
    """Run the one statement that opens or refreshes a session, and return its row."""
    if not (g.issues_token and access_token.hook()):
        return query(latchkey.db, **parameters)
    with access_token.transaction() as tx:
        row = query(tx, **parameters)
        return row if row is None or getattr(row, "state", "live") != "live" else issued(tx, row, method)


def _compose(row: Any) -> dict[str, Any]:
    own = {"session_id": row.session_id, "aal": row.aal, "amr": row.amr}
    claims = latchkey.access_tokens.compose(json.loads(row.user_object), row.issued_at, own)
    is_restricted = row.lacks_step and latchkey.settings.mfa_tokens == SECOND_STEP
    return latchkey.access_tokens.restricted(claims) if is_restricted else claims


def tokens(row: Any) -> dict[str, Any]:
    """Return the tokens of a session, a row of `open_session`."""
    access_tokens = latchkey.access_tokens
    claims = g.token_claims
    if access_token.hook() and (claims is None or claims["session_id"] != row.session_id):
        raise RuntimeError("a token is issued without its hook")
    return {
        "access_token": access_tokens.sign(claims or _compose(row)),
        "token_type": "bearer",
        "expires_in": access_tokens.lifetime,
        "expires_at": row.issued_at + access_tokens.lifetime,
        "refresh_token": latchkey.refresh_tokens.make(row.session_id, row.counter),
    }


def write_code(
    tx: Transaction,
    user_id: str,
    code_challenge: str,
    method: str,
    opened_by: str | None = None,
    provider: str | None = None,
    auth_time: float | None = None,
) -> str:
    """Write a code and return it. `opened_by` is the session on our pages that hands it over, if any."""
    code = one_time.new_token()
    queries.write_authorization_code(
        tx,
        user_id=user_id,
        code_hash=one_time.hash_token(code),
        code_challenge=code_challenge,
        method=method,
        opened_by=opened_by,
        provider=provider,
        auth_time=auth_time,
        network=g.client["network"],
        authorization_code_lifetime=one_time.AUTHORIZATION_CODE_LIFETIME,
    )
    return code


@access_token.asked
def exchange(code: str, code_challenge: str) -> Any:
    """Open a session for a code and return its row (RFC 7636). Reuse of the code ends the session."""
    code_hash = one_time.hash_token(code)
    with access_token.transaction() as tx:
        owner = queries.lock_owner_of_authorization_code(tx, code_hash=code_hash)
        audit.about(user_id=owner and owner.id)
        known = queries.select_authorization_code(tx, code_hash=code_hash)
        if owner is None or known is None:
            raise ApiError("flow_state_not_found")
        if not hmac.compare_digest(known.code_challenge, code_challenge):
            raise ApiError("bad_code_verifier")
        if known.session_id is None:
            if owner.is_banned:
                raise ApiError("user_banned")
            row = open_application_session(tx, owner, known.method, known.opened_by, known.provider)
            queries.mark_authorization_code_used(tx, code_hash=code_hash, session_id=row.session_id)
            return row
        queries.end_access(
            tx, user_id=owner.id, session_id=known.session_id, reason="authorization_code_reused"
        )
        audit.record(tx, owner.id, None, ["authorization_code_reused"], [], session_id=known.session_id)
    raise ApiError("flow_state_not_found")


def open_application_session(
    tx: Transaction, owner: Any, method: str, opened_by: str | None, provider: str | None = None
) -> Any:
    """Open a session, for an application that a session on our pages may have let in, and return its row."""
    row = open_session(tx, owner.id, method, is_handed_over=opened_by is not None)
    if provider:
        row = row._replace(amr=queries.record_provider(tx, session_id=row.session_id, provider=provider).amr)
    if opened_by:
        level = queries.mark_opened_by(tx, session_id=row.session_id, opened_by=opened_by)
        row = row._replace(**level._asdict())
    details = {"method": method, "session_id": row.session_id}
    audit.record(tx, owner.id, owner.email, ["signed_in"], ["auth.login"], **details)
    return issued(tx, row)
