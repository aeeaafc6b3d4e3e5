"""Decides whether a caller may do an act, and which proof it needs (ASVS 3.7.1).

The SQL function `refusal_of_act` decides; docs/security.md shows its table. A proof is an authentication of
the last 15 minutes, by a factor if the user has one.
"""

from typing import Any, NamedTuple

from auth.core.promises import PROOF_AGE
from auth.flows.factors.factor_codes import check_totp
from auth.flows.links import nonces
from auth.flows.links.finding import by_code
from auth.flows.sign_in.passwords import check_current_password
from auth.web import Level, audit
from auth.web.asked import Asked
from auth.web.callers import CallerParameters, admit
from auth.web.errors import ApiError
from sql import Transaction, queries

# The least seconds for which the pages accept a proof: they ask for it on another page, before the change.
_LEAST_ON_PAGES = 300
_CREDENTIALS = (
    "current_password, factor_code from an authenticator app, or nonce with the code that GET /reauthenticate"
    " sends"
)
_CODE, _FACTOR = "code.reauthentication_needed", "mfa.reauthentication_needed"
# The proofs that satisfy the refusals of `refusal_of_act`, and the end of the message.
_WANTED = {
    "reauthentication_needed": (_CREDENTIALS, "this session is too old for this change"),
    _CODE: (
        "nonce with the code that GET /reauthenticate emails or latchkey create-admin prints",
        "the first factor of an administrator needs it",
    ),
    _FACTOR: (
        "factor_code from an authenticator app, a passkey, or verify a factor again",
        "a user with a factor needs one used in this session in the last 15 minutes",
    ),
}
# The members of a body that satisfy a refusal. The first one counts.
_ACCEPTED = {_CODE: ("nonce",), _FACTOR: ("factor_code",)}
_ANY = ("current_password", "factor_code", "nonce")


class Act(NamedTuple):
    """An act that `refusal_of_act` decides, on a credential by its kind or id."""

    name: str
    kind: str | None
    id: str | None = None


def add(kind: str) -> Act:
    return Act("add", kind)


def change(kind: str) -> Act:
    return Act("change", kind)


def remove(kind: str | None, id: str | None = None) -> Act:
    """Return the removal of a credential. The id of a verified one determines its kind."""
    return Act("remove", kind, id)


def code_address(known: Any) -> str | None:
    """Return the caller's confirmed address for codes of a proof, if any."""
    return (known.email_confirmed and known.email) or (known.phone_confirmed and known.phone) or None


def has_proof(asked: Asked, known: Any) -> bool:
    """Whether a session, a row with its `proof_age`, has a recent proof."""
    return (
        known.proof_age is not None
        and known.proof_age < _asked(asked, (), asked.caller_parameters())["proof_age"]
    )


def proof_needed(asked: Asked, *acts: Act, level: Level | None = None) -> str | None:
    """Return the key of the error if the caller must give a proof first. Raises other refusals."""
    caller = asked.caller_parameters(level)
    row = queries.select_refusal(asked.db, **_asked(asked, acts, caller))
    if row and row.state in _WANTED:
        return row.state
    admit(row)
    return None


def require(asked: Asked, *acts: Act) -> None:
    """Refuse if the caller may not do this, or not without a proof."""
    if key := proof_needed(asked, *acts):
        raise proof_refusal(key)


def give_proof(asked: Asked, known: Any, body: dict[str, Any], *acts: Act) -> str | None:
    """Check the current password or code of a body, and return the kind of proof. None, without a check, if
    the acts need none.
    """
    key = proof_needed(asked, *acts)
    return check_credential(asked, known, body, key) if key else None


def record_reauthentication(asked: Asked, known: Any, body: dict[str, Any]) -> str:
    """Check a body's password or code, record it in the session, and return the time in ISO 8601."""
    given = check_credential(asked, known, body)
    with asked.db.transaction() as tx:
        caller = lock_caller(asked, tx)
        queries.record_reauthentication(tx, session_id=asked.caller.session_id, given=given)
        if "nonce" not in body:
            # The statement that spends a code also records it.
            audit.record(tx, caller.id, caller.email, ["reauthenticated"], [])
    return caller.moment


def lock_caller(
    asked: Asked,
    tx: Transaction,
    *acts: Act,
    given: str | None = None,
    wanted: str | None = None,
    caller: CallerParameters | None = None,
) -> "queries.LockCaller":
    """Lock and return the caller's row. Refuse if the session has ended, or may not do the acts.

    `given` is the result of `give_proof`, or `begun` if an earlier request asked for the proof; `wanted` is
    the proof that the error asks for; `caller` is by default the caller of the request.
    """
    caller = caller or asked.caller_parameters()
    row = queries.lock_caller(tx, given=given, **_asked(asked, acts, caller))
    if row and row.state in _WANTED:
        raise proof_refusal(row.state, None if row.state == _FACTOR else wanted)
    return admit(row)


def check_credential(
    asked: Asked, known: Any, body: dict[str, Any], key: str = "reauthentication_needed"
) -> str:
    """Check the password or code of a body, and return `factor` for the code of an app, `code` for one from
    the mailbox, else `proof`. Refuse with `key` if the body has none that satisfies it.
    """
    name = next((each for each in _ACCEPTED.get(key, _ANY) if each in body), None)
    if name == "current_password":
        check_current_password(asked, body[name], known)
        return "proof"
    if name == "factor_code":
        if not check_totp(asked, asked.caller.user_id, body[name]):
            details = "factor_code: must be an unused code from an authenticator app"
            raise ApiError("reauthentication_not_valid", details)
        return "factor"
    given = _spend_nonce(asked, body[name], known, body.get("browser_hash")) if name else None
    if given is None or (given != "code" and key == _CODE):
        raise proof_refusal(key)
    return given


def proof_refusal(key: str = "reauthentication_needed", wanted: str | None = None) -> ApiError:
    """Return the error that asks for a proof: `wanted`, or the one of the key."""
    what, why = _WANTED[key]
    return ApiError(key, f"give {wanted or what}: {why}")


def _asked(asked: Asked, acts: tuple[Act, ...], caller: CallerParameters) -> dict[str, Any]:
    """Return the caller, the acts, and the seconds for which a proof and another authentication count."""
    most = asked.settings.reauthentication_age
    # The access tokens of applications expire.
    if most is not None and caller["caller_expires_at"] is None:
        most = max(most, _LEAST_ON_PAGES)
    return {
        **caller,
        "acts": [act.name for act in acts],
        "kinds": [act.kind for act in acts],
        "ids": [act.id for act in acts],
        "proof_age": PROOF_AGE if most is None else min(most, PROOF_AGE),
        "change_age": most,
    }


def _spend_nonce(asked: Asked, nonce: str, known: Any, browser_hash: bytes | None) -> str:
    address = code_address(known)
    given = address and nonces.spend(asked, by_code(asked, address, nonce, browser_hash))
    if not given:
        raise ApiError("reauthentication_not_valid", "nonce: must be the code that GET /reauthenticate sent")
    return given
