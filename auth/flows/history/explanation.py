"""Explains whether and how a user can sign in, and the obstacles."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from auth.core.providers.places import is_out_of_place
from auth.core.settings import Settings
from auth.core.text import languages, names
from auth.core.text.catalogues import DEFAULT
from auth.core.text.labels import quoted
from auth.core.text.moments import clock, until
from auth.core.tokens.claim_rules import MAX_BYTES, evaluate
from auth.flows import failure_counts, organizations
from auth.flows.history import timeline
from auth.flows.history.mentions import Mentions, called, mentions_of
from auth.rules.identities import domain_of
from sql import Database, queries

_PASSWORD, _LINK, _SMS, PASSKEY = "a password", "an emailed link", "an SMS code", "a passkey"
_BY_ITSELF = "Clear the lock, or let it reset on its own."
_ELSEWHERE = (
    " Codes still work on a network where the user passed the second step in the last 365 days, or on any"
    " network after a sign-in with an emailed link."
)
# Possible locks of a user, with the ways to sign in that still work.
_LOCKS = {
    "passwords": (_LINK, PASSKEY),
    "codes": (_LINK, PASSKEY),
    "factors": (PASSKEY,),
}
# Messages without which a user may be unable to sign in.
_NEEDED = ["signup", "invite", "magiclink", "recovery", "sms", "email_change", "phone_change"]

# Reasons of refusals in the audit log.
_BY_HOOK = ["hook_refused", "hook_failed"]
_TOO_LARGE = f"left out of access tokens, as they are larger than {MAX_BYTES:,} bytes (AUTH_TOKEN_CLAIMS)"


@dataclass(frozen=True)
class SignInObstacle:
    """An obstacle to signing in, and its remedy; `act` is an act of the console."""

    text: str
    advice: str
    act: str | None = None
    message_id: str | None = None
    provider_id: str | None = None


_NO_WAY = SignInObstacle("no address, provider or passkey that is turned on", "Add an email.", "addresses")


@dataclass(frozen=True)
class Explanation:
    """`ways` are the sign-in methods that work, even during a lock; `limits` those of failure_counts.py.

    `requirements` are what organizations ask for besides a sign-in, and what of it the user lacks.
    `claims` are the claims of `AUTH_TOKEN_CLAIMS` in the next access token, without those of its session.
    """

    ways: list[str]
    obstacles: list[SignInObstacle]
    limits: list[failure_counts.Count]
    requirements: list[str]
    claims: dict[str, Any]
    claims_problem: str | None
    is_locked: bool


def explain(
    settings: Settings, db: Database, user: "queries.SelectSummary", mentions: Mentions | None = None
) -> Explanation:
    """Explain a row of `select_summary`. `mentions` has the user's providers, if the caller knows them."""
    addresses = [address for address in (user.email, user.phone, user.new_email, user.new_phone) if address]
    limits = failure_counts.against(settings, db, [user.id, *addresses])
    rows = queries.list_requirements_on_member(db, user_id=user.id) if organizations.is_on(settings) else []
    mentions = mentions or mentions_of(db, methods=user.providers)
    by_customer, of_customer = _customers(settings, db, user, mentions)
    ways = [] if user.banned_until else [*_ways(settings, user), *by_customer]
    locked = {count["what"] for count in limits if count["is_used_up"]} & _LOCKS.keys()
    obstacles = [*_obstacles(settings, user), *of_customer, *_locks(limits, ways)]
    message = queries.select_last_message(db, user_id=user.id, kinds=_NEEDED)
    if message and message.is_stuck:
        advice = "Fix the cause (“latchkey doctor” may name it), then send it again."
        obstacles.append(SignInObstacle(timeline.sentence_of_message(message), advice, "resend", message.id))
    asks = settings.hook_custom_access_token
    if refusal := queries.select_refusal_by_hook(db, user_id=user.id, reasons=_BY_HOOK) if asks else None:
        text = f"the hook {refusal.hook} refused at {clock(refusal.at)}: {quoted(refusal.said)}"
        advice = "latchkey hooks test custom-access-token asks it again. Change what it decides by."
        obstacles.append(SignInObstacle(text, advice))
    # A passkey is both steps.
    blocked = {"passwords": {_PASSWORD}, "codes": {_SMS}, "factors": {*ways} - {PASSKEY}}
    ways = [way for way in ways if not any(way in blocked[what] for what in locked)]
    row = queries.select_any_user(db, id=user.id) if settings.token_claims else None
    claims = evaluate(settings.token_claims, json.loads(row.user_object), {}) if row else {}
    problem = _TOO_LARGE if claims is None else None
    return Explanation(
        ways,
        obstacles if ways or obstacles else [_NO_WAY],
        limits,
        [_requirement(row) for row in rows],
        claims or {},
        problem,
        bool(locked),
    )


def _ways(settings: Settings, user: "queries.SelectSummary") -> Iterator[str]:
    by_email = user.email and settings.email_enabled
    by_phone = user.phone and settings.offers_phone
    email_counts = user.email_confirmed_at or not settings.email_confirm_required
    phone_counts = user.phone_confirmed_at or not settings.phone_confirm_required
    if user.has_password and ((by_email and email_counts) or (by_phone and phone_counts)):
        yield _PASSWORD
    if by_email:
        yield _LINK
    if by_phone:
        yield _SMS
    for name in user.providers:
        if name in settings.providers:
            yield names.provider(name, settings.providers) or name
    if user.has_passkey and settings.passkeys_enabled:
        yield PASSKEY


def _customers(
    settings: Settings, db: Database, user: "queries.SelectSummary", mentions: Mentions
) -> tuple[list[str], list[SignInObstacle]]:
    """Return the providers of customers that work for the user, and the obstacles."""
    ways, obstacles = [], []
    domain = domain_of(user.email)
    ids = [name.removeprefix(names.PREFIX) for name in user.providers if name.startswith(names.PREFIX)]
    for id in ids:
        if provider := queries.select_identity_provider(db, identifier="", id=id):
            problem = (
                (not settings.sso and "is off (AUTH_SSO)")
                or (
                    organizations.is_off_with_organizations(settings, provider)
                    and "is off (AUTH_ORGANIZATIONS)"
                )
                or (
                    is_out_of_place(settings, provider)
                    and "works only while AUTH_BASE_URL and AUTH_BIND are its machine"
                )
                or (provider.is_blocked and "is disabled by an operator")
                or (not provider.enabled and provider.organization_id and "is off: its owners can turn it on")
                or (not provider.enabled and "is disabled")
                or (domain not in provider.domains and "does not sign in addresses of this domain")
            )
            mention = mentions.provider(f"{names.PREFIX}{id}")
            way = f"the provider {mention.text if mention else quoted(provider.name)}"
            if problem:
                advice = f"See whose it is, and why: latchkey providers show {provider.identifier}"
                obstacles.append(SignInObstacle(f"{way} {problem}", advice, provider_id=id))
            else:
                ways.append(way)
    company = queries.select_provider_of_user(db, user_id=user.id) if settings.sso else None
    is_closed = company and company.enabled and not company.is_linked and not company.is_adopted
    if company and is_closed and not organizations.is_provider_off(settings, company):
        organization = queries.select_organization(db, id=company.organization_id, slug=None)
        name = called(company.name, organization.name if organization else None)
        text = f"the sign-in page leads to the provider {name}, which does not sign in this user"
        obstacles.append(
            SignInObstacle(text, f"Run: latchkey providers adopt {company.identifier} {user.email}")
        )
    return ways, obstacles


def _requirement(row: "queries.ListRequirementsOnMember") -> str:
    """Return what an organization asks for, and what of it the user lacks."""
    lines = []
    if row.level == "aal2":
        lines.append("a second factor" + ("" if row.has_factor else ", which the user doesn’t have"))
    if row.needs_own_provider:
        lines.append(f"its own sign-in, {_own_sign_in(row)}")
    if row.max_age:
        age = languages.duration(timedelta(seconds=row.max_age), DEFAULT)
        lines.append(f"a sign-in of the last {age}, without which membership doesn’t count")
    return f"{quoted(row.name)} asks for {', and for '.join(lines)}"


def _own_sign_in(row: "queries.ListRequirementsOnMember") -> str:
    own, on, off = (" or ".join(map(quoted, names)) for names in (row.own, row.on, row.off))
    if own:
        return f"so membership counts only after a sign-in with {own}"
    if on:
        return f"and the user never signed in with {on}"
    return f"and nobody can: {off} is off" if off else "and has no provider"


def _obstacles(settings: Settings, user: "queries.SelectSummary") -> Iterator[SignInObstacle]:
    if user.banned_until:
        yield SignInObstacle(f"banned {until(user.banned_until)}", "Lift the ban to let them in.", "unban")
    if user.email and not user.email_confirmed_at and settings.email_confirm_required:
        text = "the email isn’t confirmed, so the password won’t work. A link or code confirms it"
        yield SignInObstacle(text, "Send a recovery email: its link confirms the address.", "recover")
    if user.phone and not user.phone_confirmed_at and settings.phone_confirm_required:
        text = "the phone isn’t confirmed, so the password won’t work. A code confirms it"
        yield SignInObstacle(text, "Ask them to request an SMS code, which confirms the phone.")
    if user.email and not settings.email_enabled:
        yield SignInObstacle("email sign-in is turned off (AUTH_EMAIL_ENABLED)", "Change the setting.")
    if user.phone and not settings.offers_phone:
        name = "AUTH_SMS_PROVIDER" if settings.phone_enabled else "AUTH_PHONE_ENABLED"
        yield SignInObstacle(f"phone sign-in is turned off ({name})", "Change the setting.")
    if user.is_anonymous:
        advice = "To sign in again later, they must confirm an address in the application."
        yield SignInObstacle("anonymous: can only use an existing session", advice)
    elif not user.has_password:
        text = "no password: sign-in works only with a link, code, provider or passkey"
        if user.email:
            yield SignInObstacle(text, "Send a recovery email so they can set one.", "recover")
        else:
            yield SignInObstacle(text, "They can add one in their account after they sign in.")


def _locks(limits: list[failure_counts.Count], ways: list[str]) -> Iterator[SignInObstacle]:
    for count in limits:
        if count["is_used_up"] and count["what"] in _LOCKS:
            alternatives = " or ".join(way for way in _LOCKS[count["what"]] if way in ways)
            meanwhile = f" Meanwhile, {alternatives} works." if alternatives else ""
            elsewhere = _ELSEWHERE if count["what"] == "factors" and ways else ""
            yield SignInObstacle(count["text"], f"{_BY_ITSELF}{meanwhile}{elsewhere}", "unlock")
