"""Signs in with a password. A verdict is recorded before it is revealed."""

from dataclasses import dataclass, replace
from typing import Any

from auth.core.json_bodies import JsonObject
from auth.flows import facts
from auth.flows.facts import PersonFacts
from auth.flows.sessions.issuing import IssuedSession, about_new
from auth.flows.sessions.token_response import SignInProof, sign_in_user
from auth.registry import TokenHook
from auth.rules import counts
from auth.rules.admission import refusal_of_kind
from auth.rules.counts import Limit
from auth.rules.sign_in import refusal_of_password
from auth.rules.users import AddressKind
from auth.web import limits
from auth.web.asked import Asked
from auth.web.errors import ApiError, unavailable
from sql import acts, queries

# The password may change while it is checked.
_TRIES = 3


@dataclass(frozen=True)
class _Credentials:
    """The hash that a password is compared with, and the limits that a wrong one counts in.

    An address without a user has credentials, too.
    """

    kind: AddressKind
    address: str
    user_id: str | None
    password_hash: str | None
    limits: list[Limit]

    def belong_to(self, person: "PersonFacts | None") -> bool:
        """Whether the user still has this address and this password."""
        if person is None or self.address != getattr(person, self.kind):
            return False
        return (person.password_hash or person.sign_up_hash) == self.password_hash


def sign_in_with_password(
    asked: Asked, body: JsonObject, hook: TokenHook | None, *, role: str | None = None
) -> IssuedSession:
    """Open a session for a `PasswordGrant` body, of a user with this `role`, if one is demanded."""
    email, phone, password = body.get("email"), body.get("phone"), body["password"]
    if disabled := refusal_of_kind(email, phone, asked.settings):
        raise ApiError(disabled, doing="Sign-in")
    for _ in range(_TRIES):
        # An unknown address, or a user without a password, costs the same statements and hash as a wrong
        # password.
        credentials = _look_up(asked, email, phone)
        is_right, renewed_hash = asked.parts.passwords.check(password, credentials.password_hash), None
        if is_right and not asked.parts.passwords.lasting_form.match(credentials.password_hash or ""):
            renewed_hash = asked.parts.passwords.hash(password)
        issue = verdict = None
        if is_right and hook:
            # The call of the hook also reveals that the password was right.
            verdict = _record_verdict(asked, credentials, is_right=True)
            if verdict.refused_by:
                raise _error(asked, credentials, verdict.refused_by, verdict)
            issue = about_new(asked, hook, credentials.user_id, "password")
        with acts.begin(asked.db) as act:
            verdict = verdict or act.record_verdict(credentials.limits, is_right=is_right)
            act.lock_users([credentials.user_id])
            # This comes before other refusals: the user may have changed since the hook decided.
            if issue and issue.answer is not None:
                issue.confirm(act)
            person = act.read(queries.select_person, user_id=credentials.user_id, session_id=None)
            if is_right and not verdict.refused_by and not credentials.belong_to(person):
                # A concurrent log-in has renewed the hash, or the password or the address was changed.
                continue
            refusal: str | None = verdict.refused_by or refusal_of_password(
                person,
                is_right=is_right,
                kind=credentials.kind,
                must_be_confirmed=asked.settings.confirm_required(credentials.kind),
                role=role,
            )
            if person and not refusal:
                proof = SignInProof(
                    method="password",
                    identity=credentials.kind,
                    renewed_hash=renewed_hash,
                    by_key=person.is_password_by_key,
                )
                session = sign_in_user(asked, act, person, proof, issue)
        if refusal:
            raise _error(asked, credentials, refusal, verdict)
        # This comes last: a refused attempt must not reveal whether its password has leaked.
        leaked = asked.parts.leaked_passwords
        if leaked is None or not leaked.when_used(password):
            return session
        queries.mark_password_leaked(asked.db, user_id=credentials.user_id)
        return replace(session, is_leaked=True)
    raise unavailable()


def check_current_password(asked: Asked, password: str, caller: PersonFacts) -> None:
    """Check the password of the caller."""
    with asked.parts.passwords.queue():
        credentials = _look_up(asked, caller.email, None if caller.email else caller.phone)
        is_right = asked.parts.passwords.check(password, credentials.password_hash)
        # While the request waited in the queue, another user may have got the address.
        is_right = is_right and credentials.user_id == caller.id
        verdict = _record_verdict(asked, credentials, is_right=is_right)
    refusal = verdict.refused_by or (None if is_right else "invalid_credentials")
    if refusal is None:
        return
    error = _error(asked, credentials, refusal, verdict)
    if error.key == "invalid_credentials":
        raise ApiError("current_password_invalid", "current_password: must be the user's password")
    raise error


def _look_up(asked: Asked, email: str | None, phone: str | None) -> _Credentials:
    """Return the credentials of a user, or of an address without one. Refuse after too many failures."""
    settings, here = asked.settings, asked.client["network"]
    row = queries.select_credentials(asked.db, email=email, phone=phone, network=here)
    credentials = _Credentials(
        "email" if email else "phone", email or phone or "", row.user_id, row.password_hash, []
    )
    if not settings.rate_limits_enabled:
        return credentials
    failures = settings.rate_limit_login_failures, settings.rate_limit_account_failures
    own, of_all = ((each.amount, each.get_expiry()) for each in failures)
    is_known = counts.is_known_network(facts.networks_of_json(row.networks), here, row.now)
    counted = counts.password_limits(
        credentials.address, row.user_id, here, is_known=is_known, own=own, of_all=of_all
    )
    used_up = counts.used_up_until(counted, facts.tallies_of_json(row.counts), row.now)
    if used_up:
        about: dict[str, Any] = {"user_id": row.user_id, "address": None, "token_hash": None, "details": {}}
        reason = "over_request_rate_limit"
        queries.record_refusal(asked.db.asynchronous, **about, action="sign_in_refused", reason=reason)
        raise _too_many(asked, (used_up - row.now).total_seconds())
    return replace(credentials, limits=counted)


def _record_verdict(asked: Asked, credentials: _Credentials, *, is_right: bool) -> "queries.RecordVerdict":
    with acts.begin(asked.db) as act:
        return act.record_verdict(credentials.limits, is_right=is_right)


def _error(
    asked: Asked, credentials: _Credentials, refusal: str, verdict: "queries.RecordVerdict"
) -> ApiError:
    """Return the error for a refusal, or for the kind of a used-up limit, with its headers."""
    most = asked.settings.rate_limit_login_failures.amount
    asked.noted.note(user_id=credentials.user_id, tries=verdict.count, of=most)
    if verdict.refused_for is not None and refusal in ("login", "account"):
        return _too_many(asked, verdict.refused_for)
    if refusal in ("user", "nobody", "invalid_credentials"):
        if verdict.count and verdict.seconds_left is not None:
            asked.noted.add_window(limits.LimitWindow(most, most - verdict.count, verdict.seconds_left))
        return ApiError("invalid_credentials")
    return ApiError("sign_in.not_admin" if refusal == "not_admin" else refusal)


def _too_many(asked: Asked, seconds: float) -> ApiError:
    asked.noted.add_window(limits.LimitWindow(asked.settings.rate_limit_login_failures.amount, 0, seconds))
    return limits.refusal("sign_in.over_request_rate_limit", seconds)
