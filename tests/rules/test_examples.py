"""What the rules say, a sentence and an example each. The other files compare them with SQL."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from auth.rules import (
    admission,
    clients,
    counts,
    first_proof,
    levels,
    links,
    messages,
    proofs,
    refreshing,
    remaining,
    sessions,
    sign_in,
    tokens,
    users,
)
from auth.rules.clients import Client
from auth.rules.counts import Allowance, KnownNetwork, Limit
from auth.rules.deciding import Deciding, DecidingSession, still_decides
from auth.rules.devices import DeviceRequest, is_open_to
from auth.rules.policy import Policy, Window
from auth.rules.proofs import Act
from auth.rules.refreshing import RefreshTokens
from auth.rules.tokens import ApiKey
from tests.support import counting
from tests.support.cases import cases
from tests.support.counting import Count
from tests.support.rule_rows import Confirmation, Link, Person, Session, row_to_refresh

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROSECOND, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WINDOW = Window(most=3, age=HOUR)
POLICY = Policy(
    refresh_token_lifetime=30 * DAY,
    refresh_window=WINDOW,
    reuse_interval=10 * SECOND,
    session_timebox=None,
    mfa_required="none",
    proof_age=15 * MINUTE,
    change_age=DAY,
)
FACTOR_FOR_ALL = replace(POLICY, mfa_required="all")
FACTOR_FOR_ADMINISTRATORS = replace(POLICY, mfa_required="admins")
TIMEBOX = replace(POLICY, session_timebox=DAY)
ALICE = Person(
    email="alice@example.com",
    email_added_at=NOW - 90 * DAY,
    email_confirmed_at=NOW - 90 * DAY,
    email_proved=True,
    last_sign_in_at=NOW - DAY,
    password_hash="a hash",
)
CONFIRMED = replace(ALICE, email_proved=False)
UNCONFIRMED = replace(CONFIRMED, email_confirmed_at=None)
CAROL = replace(ALICE, role="admin")
BANNED = replace(ALICE, banned_until=NOW + SECOND)
ANONYMOUS = Person(made_by="anonymous")
CONVERTED = replace(ALICE, made_by="anonymous", converted_at=NOW - HOUR)
UNUSED = replace(UNCONFIRMED, last_sign_in_at=None)
WITH_APP = replace(ALICE, oldest_factor_at=NOW - 8 * DAY, has_second_step=True)
WITH_NEW_APP = replace(WITH_APP, oldest_factor_at=NOW - DAY)
WITH_PASSKEY = replace(ALICE, oldest_factor_at=NOW - 8 * DAY)
FRESH = Session(method="password", aal="aal1", session_created_at=NOW - MINUTE, refreshed_at=NOW - MINUTE)
STALE = replace(FRESH, session_created_at=NOW - HOUR)
ANCIENT = replace(FRESH, session_created_at=NOW - 2 * DAY)
RAISED = replace(FRESH, aal="aal2", factor_proved_at=NOW - MINUTE)
RECOVERY = replace(FRESH, method="recovery")
OF_APPLICATION = replace(FRESH, opened_by="a session")


def token(
    user: Person, session: Session | None, level: Any = "aal1", policy: Policy = POLICY, aal: str = ""
) -> Any:
    aal = aal or (session.aal if session else "aal1")
    return tokens.refusal_of_session(user, session, NOW + HOUR, aal, level, policy, NOW)


def act(user: Person, session: Session, verb: Any, kind: Any, proof: Any = None, added: Any = None) -> Any:
    added_at = None if added is None else NOW - added
    asked = Act(verb=verb, kind=kind, added_at=added_at)
    return proofs.refusal_of_act(asked, user, session, session.aal, proof, POLICY, NOW)


def of_client(user: Person, client: Client | None) -> Any:
    return tokens.refusal_of_client_session(user, OF_APPLICATION, None, client, None, POLICY, NOW)


NUMBER = "+4915100000000"


def of_sign_up(**facts: bool) -> Any:
    known = dict.fromkeys(("is_new", "is_repeated", "has_owner", "is_stopped"), False)
    return messages.message_of_sign_up(**known | {"is_mail": True, "is_hidden": True} | facts)


@dataclass(frozen=True)
class AdmissionSettings:
    email_enabled: bool = True
    offers_phone: bool = True
    signup_domains: frozenset[str] = frozenset()
    signup_blocked_domains: frozenset[str] = frozenset()
    sms_countries: tuple[str, ...] = ()


ALL_ADMITTED = AdmissionSettings()


def admitted(address: str, settings: AdmissionSettings = ALL_ADMITTED) -> Any:
    email, phone = (address, None) if "@" in address else (None, address)
    is_possible = phone is not None and len(phone) > 10
    return admission.refusal_of_address(email, phone, settings, is_possible_phone=is_possible, is_first=True)


MACHINE = Client(grant_types=frozenset({"client_credentials"}))


def for_itself(client: Client, expires_at: datetime = NOW + SECOND) -> Any:
    return tokens.refusal_of_client(client, expires_at, NOW)


USED = RefreshTokens(
    counter=7,
    used_counter=6,
    successor_counter=7,
    refreshed_at=NOW - 5 * SECOND,
    refreshes=0,
    counted_until=NOW,
    echoes=None,
)
LATER = replace(USED, refreshed_at=NOW - HOUR)
ECHOING = replace(USED, echoes={"7": {"5": (NOW + SECOND).isoformat()}})
RAISED_SINCE = replace(USED, counter=8)
OFTEN = replace(USED, refreshes=3, counted_until=NOW + SECOND)


def refused(known: RefreshTokens, sent: int) -> Any:
    return refreshing.refusal_of_refresh(known, sent, WINDOW, NOW)


def given(known: RefreshTokens, sent: int, rotates: bool = True) -> int:
    interval = 10 * SECOND
    new = refreshing.refreshed(known, sent, rotates=rotates, reuse_interval=interval, window=WINDOW, now=NOW)
    return new.counter


LINK = Link(purpose="recovery", created_at=NOW - HOUR, expires_at=NOW + HOUR, code_expires_at=NOW + HOUR)
HERE, ELSEWHERE = "203.0.113.7", "198.51.100.7"
OWN, OF_ALL = Limit("login", "alice", HERE, 2, 60), Limit("account", "alice", None, 5, 60)
ALLOWANCE = Allowance((2, 60), (5, 60))


def told(known: dict[Limit, Count], is_right: bool) -> Any:
    verdict = counting.verdict([OWN, OF_ALL], known, is_right=is_right, now=NOW)
    return verdict.refused_by and verdict.refused_by.kind, verdict.counts[OWN].count


def limits(is_known: bool) -> list[str]:
    limited = counts.password_limits("alice", "id", HERE, is_known=is_known, allowance=ALLOWANCE)
    return [limit.kind for limit in limited]


def passed(*names: str) -> list[KnownNetwork]:
    return [KnownNetwork(network=name, passed_at=NOW - place * DAY) for place, name in enumerate(names)]


def with_phone(user: Person) -> Person:
    moment = NOW - DAY
    return replace(user, phone=NUMBER, phone_added_at=moment, phone_confirmed_at=moment, phone_proved=True)


def first(user: Person, value: str = "alice@example.com", proof: Any = "signup") -> bool:
    return first_proof.is_first_proof(user, "email", value, proof)


Example = tuple[str, Callable[[], Any], Any]


def signed_in(user: Person | None, is_right: bool = True, admin_only: bool = False) -> Any:
    return sign_in.refusal_of_password(
        user,
        is_right=is_right,
        provider="email",
        settings=Confirmation(),
        role="admin" if admin_only else None,
        now=NOW,
    )


def refreshed_by(user: Person, session: Session, is_of_client: bool = False) -> Any:
    row = row_to_refresh(user, session, asdict(USED), is_of_client=is_of_client, now=NOW)
    return refreshing.refusal_of_refresh_token(row, 7, WINDOW, POLICY)


def stopped(channel: Any, total: int, is_proved: bool, left: int | None = 1, is_beyond: bool = False) -> Any:
    return messages.what_stops_message(
        channel, total, 20, is_beyond=is_beyond, is_proved=is_proved, recipient_left=left
    )


def beyond_tenth(of_network: int | None, is_proved: bool = False, left: int | None = 1) -> bool:
    return messages.is_beyond_tenth(of_network, 20, is_proved=is_proved, recipient_left=left)


TOLD = Deciding(
    id="alice",
    role="authenticated",
    email="alice@example.com",
    email_confirmed_at=NOW,
    phone=None,
    phone_confirmed_at=None,
    app_metadata={},
    banned_until=None,
    is_anonymous=False,
    created_at=NOW,
    providers=("email",),
    factors=(),
    session=DecidingSession(id="a", aal="aal1", ended_at=None, factor_id=None, amr=None),
)
DEVICE = DeviceRequest(code_expires_at=NOW + SECOND)
SIGN_INS: list[Example] = [
    ("The right password signs in.", lambda: signed_in(ALICE), None),
    ("A wrong one does not.", lambda: signed_in(ALICE, is_right=False), "invalid_credentials"),
    ("An unknown user is refused like it.", lambda: signed_in(None), "invalid_credentials"),
    ("A wrong one learns of no ban.", lambda: signed_in(BANNED, is_right=False), "invalid_credentials"),
    ("The right one does.", lambda: signed_in(BANNED), "user_banned"),
    ("And of an address that is not confirmed.", lambda: signed_in(UNUSED), "email_not_confirmed"),
    (
        "Of several sign-ups none counts.",
        lambda: signed_in(replace(ALICE, password_hash=None)),
        "invalid_credentials",
    ),
    ("A session is refreshed.", lambda: refreshed_by(ALICE, FRESH), None),
    ("One that lacks a step is, for that step.", lambda: refreshed_by(WITH_APP, FRESH), None),
    ("A ban is told.", lambda: refreshed_by(BANNED, FRESH), "refresh.user_banned"),
    (
        "Expiry is told.",
        lambda: refreshed_by(ALICE, replace(FRESH, refreshed_at=NOW - 31 * DAY)),
        "refresh.session_expired",
    ),
    (
        "An end is not.",
        lambda: refreshed_by(ALICE, replace(FRESH, ended_at=NOW)),
        "refresh.refresh_token_not_found",
    ),
    (
        "Applications refresh elsewhere.",
        lambda: refreshed_by(ALICE, FRESH, True),
        "refresh.refresh_token_not_found",
    ),
    ("A hook's answer counts while nothing changes.", lambda: still_decides(TOLD, replace(TOLD)), True),
    ("Not after a change of role.", lambda: still_decides(TOLD, replace(TOLD, role="admin")), False),
    (
        "Nor after the end of the session.",
        lambda: still_decides(
            TOLD,
            replace(
                TOLD, session=DecidingSession(id="a", aal="aal1", ended_at=NOW, factor_id=None, amr=None)
            ),
        ),
        False,
    ),
    ("A device waits for its code.", lambda: is_open_to(DEVICE, "a", NOW), True),
    (
        "Then for the session that entered it.",
        lambda: is_open_to(replace(DEVICE, session_id="a"), "b", NOW),
        False,
    ),
    ("It waits until its decision.", lambda: is_open_to(replace(DEVICE, is_decided=True), "a", NOW), False),
]
MESSAGES: list[Example] = [
    (
        "A notice goes to the address that was proved, the email first.",
        lambda: [
            messages.address_of_notices(
                replace(ALICE, email_proved=email, phone=NUMBER, phone_proved=phone), offers_phone=offers
            )
            for email, phone, offers in (
                (True, True, True),
                (False, True, True),
                (False, True, False),
                (False, False, True),
            )
        ],
        ["alice@example.com", NUMBER, None, None],
    ),
    ("A new address gets its link or code.", lambda: of_sign_up(is_new=True), "signup"),
    ("So does one with an unused sign-up.", lambda: of_sign_up(is_repeated=True, has_owner=True), "signup"),
    (
        "An owner is told, by mail alone, where the answer hides it.",
        lambda: [
            of_sign_up(has_owner=True, is_mail=is_mail, is_hidden=is_hidden)
            for is_mail, is_hidden in ((True, True), (False, True), (True, False))
        ],
        ["signup_attempt", "none", "none"],
    ),
    (
        "Beyond a limit nobody gets anything.",
        lambda: [of_sign_up(is_new=True, is_stopped=True), of_sign_up(has_owner=True, is_stopped=True)],
        ["none", "none"],
    ),
    (
        "A first address is asked for likewise.",
        lambda: [
            messages.message_of_first_address(is_mail=is_mail, is_taken=is_taken)
            for is_mail in (True, False)
            for is_taken in (False, True)
        ],
        ["email_change", "signup_attempt", "phone_change", "none"],
    ),
    ("The first notice leaves at once.", lambda: messages.due_at(None, is_mail=True, now=NOW), NOW),
    (
        "The next mail ten minutes after it.",
        lambda: messages.due_at(NOW - MINUTE, is_mail=True, now=NOW),
        NOW + 9 * MINUTE,
    ),
    (
        "The next SMS an hour.",
        lambda: messages.due_at(NOW - MINUTE, is_mail=False, now=NOW),
        NOW + 59 * MINUTE,
    ),
    ("No message is due in the past.", lambda: messages.due_at(NOW - DAY, is_mail=True, now=NOW), NOW),
    ("The total stops mail to strangers.", lambda: stopped("mail", 21, is_proved=False), "total"),
    ("It stops none to an owner.", lambda: stopped("mail", 21, is_proved=True), None),
    ("Three quarters stop SMS to strangers.", lambda: stopped("sms", 16, is_proved=False), "total"),
    ("All of them those to an owner.", lambda: stopped("sms", 21, is_proved=True), "total"),
    ("A recipient's windows stop either.", lambda: stopped("mail", 1, is_proved=True, left=-1), "recipient"),
    ("A network has a tenth.", lambda: [beyond_tenth(2), beyond_tenth(3)], [False, True]),
    ("An owner gets more.", lambda: beyond_tenth(3, is_proved=True), False),
    ("Until the windows are used up.", lambda: beyond_tenth(3, is_proved=True, left=-1), True),
    ("The service role key has no network.", lambda: beyond_tenth(None), False),
    ("No code is sent to a confirmed address.", lambda: links.is_due("signup", ALICE, [], NOW), False),
    ("Nor to one that another user has.", lambda: links.is_due("email_change", ALICE, [CAROL], NOW), False),
    ("But to one whose holder gives way.", lambda: links.is_due("email_change", ALICE, [UNUSED], NOW), True),
    ("An unused sign-up can be declined.", lambda: links.can_be_declined("signup", UNUSED, NOW), True),
    ("A user cannot.", lambda: links.can_be_declined("signup", ALICE, NOW), False),
    ("The first address of a user can.", lambda: links.can_be_declined("email_change", ANONYMOUS, NOW), True),
]
USERS: list[Example] = [
    ("A ban ends at its moment.", lambda: users.is_banned(replace(ALICE, banned_until=NOW), NOW), False),
    ("A converted user is not anonymous.", lambda: users.is_anonymous(CONVERTED), False),
    ("An unused sign-up gives way.", lambda: users.gives_way(UNUSED, NOW), True),
    (
        "It makes way for the owner of its address, unless it is an administrator's.",
        lambda: [users.is_replaced(replace(UNUSED, role=role), NOW) for role in ("authenticated", "admin")],
        [True, False],
    ),
    (
        "A user who has signed in does not.",
        lambda: users.gives_way(replace(UNUSED, last_sign_in_at=NOW), NOW),
        False,
    ),
    (
        "A ban keeps its address.",
        lambda: users.gives_way(replace(UNUSED, banned_until=NOW + DAY), NOW),
        False,
    ),
    (
        "An operator's password keeps its address.",
        lambda: users.gives_way(replace(UNUSED, is_password_vouched=True), NOW),
        False,
    ),
    (
        "An address that is only confirmed is not proved.",
        lambda: users.is_proved(CONFIRMED, "email"),
        False,
    ),
    (
        "A banned user cannot sign in.",
        lambda: signed_in(BANNED),
        "user_banned",
    ),
    (
        "An address may have to be confirmed first.",
        lambda: signed_in(UNUSED),
        "email_not_confirmed",
    ),
    (
        "The console admits administrators alone.",
        lambda: signed_in(ALICE, admin_only=True),
        "not_admin",
    ),
]
SESSIONS: list[Example] = [
    (
        "What has ended stays ended.",
        lambda: token(ALICE, replace(FRESH, ended_at=NOW - DAY)),
        "session_not_found",
    ),
    (
        "A session without refreshes expires.",
        lambda: token(ALICE, replace(FRESH, refreshed_at=NOW - 30 * DAY)),
        "session_expired",
    ),
    (
        "It does so no microsecond earlier.",
        lambda: token(ALICE, replace(FRESH, refreshed_at=NOW - 30 * DAY + MICROSECOND)),
        None,
    ),
    ("The timebox ends a session in use.", lambda: token(ALICE, ANCIENT, policy=TIMEBOX), "session_expired"),
    (
        "The timebox of an anonymous user has not begun.",
        lambda: token(ANONYMOUS, replace(ANCIENT, method="anonymous"), policy=TIMEBOX),
        None,
    ),
    (
        "It begins when the user becomes permanent.",
        lambda: token(CONVERTED, replace(ANCIENT, method="anonymous"), policy=TIMEBOX),
        None,
    ),
    (
        "A sign-up that goes on authenticates nobody.",
        lambda: sessions.authenticated_at(replace(FRESH, method="sign_up")),
        sessions.EPOCH,
    ),
    ("Nor does an application's session.", lambda: sessions.authenticated_at(OF_APPLICATION), sessions.EPOCH),
    (
        "An anonymous sign-in proves nothing.",
        lambda: sessions.proved_at(replace(FRESH, method="anonymous")),
        None,
    ),
]
TOKENS: list[Example] = [
    ("A live session gives a token.", lambda: token(ALICE, FRESH), None),
    ("A banned user gets none.", lambda: token(BANNED, FRESH), "user_banned"),
    ("A ban is told before the end of the session.", lambda: token(BANNED, None), "user_banned"),
    ("A session that is gone gives none.", lambda: token(ALICE, None), "session_not_found"),
    (
        "An expired access token is told first.",
        lambda: tokens.refusal_of_session(BANNED, FRESH, NOW, "aal1", "aal1", POLICY, NOW),
        "bad_jwt",
    ),
    ("A client that admits the user gets one.", lambda: of_client(ALICE, Client()), None),
    (
        "A role that the client does not allow ends it.",
        lambda: of_client(ALICE, Client(allowed_roles=frozenset({"staff"}))),
        "session_not_found",
    ),
    ("So does a client that is gone.", lambda: of_client(ALICE, None), "session_not_found"),
    ("So does a blocked one.", lambda: of_client(ALICE, Client(is_blocked=True)), "session_not_found"),
    (
        "A role of the app metadata counts.",
        lambda: clients.may_use(
            replace(ALICE, app_metadata={"roles": ["staff"]}),
            Client(allowed_roles=frozenset({"staff"})),
            None,
        ),
        True,
    ),
    ("An anonymous user uses no client.", lambda: clients.may_use(ANONYMOUS, Client(), None), False),
    (
        "A resource that was taken from a client is refused.",
        lambda: clients.may_use(ALICE, Client(), "https://api"),
        False,
    ),
    ("A token of a client for itself is good.", lambda: for_itself(MACHINE), None),
    ("It expires at its moment.", lambda: for_itself(MACHINE, NOW), "bad_jwt"),
    ("A blocked client has none.", lambda: for_itself(replace(MACHINE, is_blocked=True)), "bad_jwt"),
    ("Nor has one that may not get any.", lambda: for_itself(Client()), "bad_jwt"),
    (
        "A key expires at its moment.",
        lambda: tokens.end_of_key(ApiKey(aal="aal1", expires_at=NOW), NOW),
        "api_key_not_found",
    ),
    (
        "A key has the level of its session.",
        lambda: tokens.refusal_of_api_key(WITH_APP, ApiKey(aal="aal1", expires_at=None), None, POLICY, NOW),
        "insufficient_aal",
    ),
]
LEVELS: list[Example] = [
    ("A user with an app needs it.", lambda: token(WITH_APP, FRESH), "insufficient_aal"),
    ("A session that used it has the level.", lambda: token(WITH_APP, RAISED), None),
    (
        "A token from before keeps its own level.",
        lambda: token(WITH_APP, RAISED, aal="aal1"),
        "insufficient_aal",
    ),
    ("A passkey is no second step.", lambda: token(WITH_PASSKEY, FRESH), None),
    (
        "Sensitive operations ask for the passkey too.",
        lambda: token(WITH_PASSKEY, FRESH, "aal2"),
        "insufficient_aal",
    ),
    (
        "A demand for all does not mean anonymous users.",
        lambda: token(ANONYMOUS, FRESH, policy=FACTOR_FOR_ALL),
        None,
    ),
    ("It means everybody else.", lambda: token(ALICE, FRESH, policy=FACTOR_FOR_ALL), "insufficient_aal"),
    (
        "One for administrators means them.",
        lambda: token(CAROL, FRESH, policy=FACTOR_FOR_ADMINISTRATORS),
        "insufficient_aal",
    ),
    ("And nobody else.", lambda: token(ALICE, FRESH, policy=FACTOR_FOR_ADMINISTRATORS), None),
    (
        "A session that lacks a step may enrol.",
        lambda: token(ALICE, FRESH, "enrol", FACTOR_FOR_ALL, "aal0"),
        None,
    ),
    (
        "A first passkey raises its session.",
        lambda: levels.level_of(replace(FRESH, first_passkey_at=NOW - MINUTE), "aal1", NOW),
        "aal2",
    ),
    (
        "For fifteen minutes.",
        lambda: levels.level_of(replace(FRESH, first_passkey_at=NOW - 15 * MINUTE), "aal1", NOW),
        "aal1",
    ),
]
REFRESHING: list[Example] = [
    ("The newest token is good.", lambda: (refused(USED, 7), given(USED, 7)), (None, 8)),
    ("The one before gets the present successor.", lambda: (refused(USED, 6), given(USED, 6)), (None, 7)),
    ("After the interval it gets a new one.", lambda: (refused(LATER, 6), given(LATER, 6)), (None, 8)),
    ("A dead one ends the session.", lambda: refused(USED, 5), "refresh.refresh_token_already_used"),
    ("An echo gets the present successor.", lambda: (refused(ECHOING, 5), given(ECHOING, 5)), (None, 7)),
    (
        "No echo outlives a second step.",
        lambda: refused(replace(ECHOING, counter=9), 5),
        "refresh.refresh_token_already_used",
    ),
    (
        "A token of a second step kills the one before.",
        lambda: refused(RAISED_SINCE, 6),
        "refresh.refresh_token_already_used",
    ),
    ("One ahead of a restored database is good.", lambda: (refused(USED, 12), given(USED, 12)), (None, 13)),
    ("Without rotation the token stays.", lambda: given(USED, 7, rotates=False), 7),
    ("Refreshes are limited.", lambda: refused(OFTEN, 7), "over_request_rate_limit"),
    ("A limit hides no theft.", lambda: refused(OFTEN, 5), "refresh.refresh_token_already_used"),
]
PROOFS: list[Example] = [
    ("A fresh sign-in may add an address.", lambda: act(ALICE, FRESH, "add", "email"), None),
    ("A stale one may not.", lambda: act(ALICE, STALE, "add", "email"), "reauthentication_needed"),
    ("A proof with the request does.", lambda: act(ALICE, STALE, "add", "email", "proof"), None),
    ("A password is changed within a day.", lambda: act(ALICE, STALE, "change", "password"), None),
    ("And no later.", lambda: act(ALICE, ANCIENT, "change", "password"), "reauthentication_needed"),
    (
        "A fresh recovery is the proof for the password.",
        lambda: act(ALICE, RECOVERY, "change", "password"),
        None,
    ),
    ("Metadata needs no proof.", lambda: act(ALICE, ANCIENT, "change", "metadata"), None),
    ("Nor does removing an API key.", lambda: act(ALICE, ANCIENT, "remove", "api_key", added=DAY), None),
    (
        "An anonymous user adds the first address.",
        lambda: act(ANONYMOUS, replace(STALE, method="anonymous"), "add", "email"),
        None,
    ),
    (
        "Who has a factor is below the level.",
        lambda: act(WITH_APP, FRESH, "add", "email"),
        "insufficient_aal",
    ),
    ("Who has a factor proves with it.", lambda: act(WITH_APP, RAISED, "add", "email"), None),
    (
        "And with nothing else.",
        lambda: act(WITH_APP, replace(RAISED, factor_proved_at=None), "add", "email", "code"),
        "mfa.reauthentication_needed",
    ),
    (
        "An administrator's first factor needs a code.",
        lambda: act(CAROL, FRESH, "add", "factor", "proof"),
        "code.reauthentication_needed",
    ),
    ("With the code it is enrolled.", lambda: act(CAROL, FRESH, "add", "factor", "code"), None),
    (
        "A recovery takes a thief's factor back.",
        lambda: act(WITH_NEW_APP, RECOVERY, "remove", "factor", added=DAY),
        None,
    ),
    (
        "Not a factor of eight days.",
        lambda: act(WITH_APP, RECOVERY, "remove", "factor", added=8 * DAY),
        "insufficient_aal",
    ),
    (
        "Nor anything, where one is that old.",
        lambda: act(WITH_APP, RECOVERY, "remove", "email", added=DAY),
        "insufficient_aal",
    ),
    (
        "Nor does an application's session.",
        lambda: act(WITH_NEW_APP, OF_APPLICATION, "remove", "factor", added=DAY),
        "insufficient_aal",
    ),
    (
        "Recovery codes need the second factor.",
        lambda: act(ALICE, FRESH, "add", "recovery_codes"),
        "insufficient_aal",
    ),
    (
        "An administrator changes no other one.",
        lambda: proofs.refusal_of_target(CAROL),
        "target.insufficient_permissions",
    ),
    ("An administrator changes users.", lambda: proofs.refusal_of_target(ALICE), None),
    (
        "A code to an address of this week adds no administrator's factor.",
        lambda: proofs.proof_of_code(is_of_session=True, address_added_at=NOW - 7 * DAY, now=NOW),
        "proof",
    ),
    (
        "One to an older address does.",
        lambda: proofs.proof_of_code(is_of_session=True, address_added_at=None, now=NOW),
        "code",
    ),
    (
        "So does the code of a command.",
        lambda: proofs.proof_of_code(is_of_session=False, address_added_at=NOW - DAY, now=NOW),
        "code",
    ),
]
FIRST_PROOFS: list[Example] = [
    ("The first proof removes everything else.", lambda: first(UNCONFIRMED), True),
    ("The second one nothing.", lambda: first(ALICE), False),
    (
        "An address that was added by a proved user is no first one.",
        lambda: first(with_phone(ALICE), "new@example.com"),
        False,
    ),
    (
        "Nor is one that is younger than the other proof.",
        lambda: first(with_phone(replace(UNCONFIRMED, email_added_at=NOW))),
        False,
    ),
    (
        "An administrator vouches for their own user.",
        lambda: first(replace(UNCONFIRMED, made_by="administrator"), proof="administrator"),
        False,
    ),
    ("A sign-up's code keeps its password.", lambda: first_proof.keeps_password(UNUSED, "signup"), True),
    (
        "A link that anybody can ask for does not.",
        lambda: first_proof.keeps_password(UNUSED, "magiclink"),
        False,
    ),
    (
        "Nor does a user of an administrator.",
        lambda: first_proof.keeps_password(replace(UNUSED, made_by="administrator"), "signup"),
        False,
    ),
    (
        "Unless the password is vouched for.",
        lambda: first_proof.keeps_password(
            replace(UNUSED, made_by="import", is_password_vouched=True), "signup"
        ),
        True,
    ),
    (
        "A code does not tell whose sign-up it is.",
        lambda: first_proof.is_own_sign_up(is_first=True, is_shown=False, carries_data=True),
        False,
    ),
    (
        "An administrator's recovery link sets its password.",
        lambda: first_proof.sets_password("recovery", is_own=False, carries_password=True),
        True,
    ),
]
LINKS: list[Example] = [
    (
        "A link is good until it expires.",
        lambda: links.is_good_link(replace(LINK, expires_at=NOW), NOW),
        False,
    ),
    ("It is good once.", lambda: links.is_good_link(replace(LINK, spent_at=NOW), NOW), False),
    ("The newest three work.", lambda: links.is_good_link(replace(LINK, newer=2), NOW), True),
    ("The fourth does not.", lambda: links.is_good_link(replace(LINK, newer=3), NOW), False),
    (
        "A thief cannot void the link of a notice.",
        lambda: links.is_good_link(replace(LINK, purpose="undo", newer=9), NOW),
        True,
    ),
    (
        "A code expires on its own.",
        lambda: links.is_open_code(replace(LINK, code_expires_at=NOW), True, ["recovery"], NOW),
        False,
    ),
    ("A code is for its purpose.", lambda: links.is_open_code(LINK, True, ["signup"], NOW), False),
    (
        "A page's code works in its browser alone.",
        lambda: links.code_for_browser([replace(LINK, browser_hash=memoryview(b"a"))], b"b"),
        None,
    ),
    (
        "A link is for the user's own address, and a new one while it is pending.",
        lambda: [
            links.refusal_of_use(purpose, target, replace(ALICE, new_email=pending), NOW)
            for purpose, target, pending in (
                ("recovery", "alice@example.com", None),
                ("recovery", "other@example.com", "other@example.com"),
                ("email_change", "other@example.com", "other@example.com"),
                ("email_change", "other@example.com", None),
                ("email_change", "alice@example.com", None),
            )
        ],
        [None, "otp_expired", None, "otp_expired", None],
    ),
    (
        "Not for a banned user.",
        lambda: links.refusal_of_use(
            "recovery", "alice@example.com", replace(ALICE, banned_until=NOW + MICROSECOND), NOW
        ),
        "user_banned",
    ),
    (
        "A recovery that we mailed is one.",
        lambda: links.method_of_session("recovery", was_mailed=True),
        "recovery",
    ),
    ("A generated link is not.", lambda: links.method_of_session("recovery", was_mailed=False), "otp"),
    (
        "An address that somebody proved since stays theirs.",
        lambda: links.comes_back([ALICE], "alice@example.com"),
        False,
    ),
    ("Of a user without proof it comes back.", lambda: links.comes_back([UNUSED], "alice@example.com"), True),
    ("A notice asks for a factor of seven days.", lambda: links.asks_for_factor(NOW - 7 * DAY, NOW), True),
    ("For none that is younger.", lambda: links.asks_for_factor(NOW - 7 * DAY + MICROSECOND, NOW), False),
]
REMAINING: list[Example] = [
    ("A proved address signs in.", lambda: remaining.can_sign_in(ALICE, ["email"], False, ["email"]), True),
    (
        "Not where email is disabled.",
        lambda: remaining.can_sign_in(ALICE, ["email"], False, ["phone"]),
        False,
    ),
    ("A provider does.", lambda: remaining.can_sign_in(ALICE, ["github"], False, ["github"]), True),
    ("A passkey does.", lambda: remaining.can_sign_in(ANONYMOUS, [], True, ["passkey"]), True),
    (
        "An address that is only confirmed does with a password.",
        lambda: [
            remaining.can_sign_in(CONFIRMED, ["email"], False, usable)
            for usable in (["email"], ["email", "password"])
        ],
        [False, True],
    ),
    (
        "Nothing remains.",
        lambda: remaining.refusal_of_removal(ALICE, [], False, ["email"]),
        "single_identity_not_deletable",
    ),
    ("The last administrator stays.", lambda: remaining.refusal_of_leaving(CAROL, 0), "last_administrator"),
    ("One of two may leave.", lambda: remaining.refusal_of_leaving(CAROL, 1), None),
]
COUNTS: list[Example] = [
    ("A wrong one counts.", lambda: told({}, is_right=False), (None, 1)),
    ("A right one is taken from the counts again.", lambda: told({}, is_right=True), (None, 0)),
    (
        "Beyond the limit even a right one is not told.",
        lambda: told({OWN: Count(2, NOW + SECOND)}, is_right=True),
        ("login", 3),
    ),
    ("A window ends at its moment.", lambda: told({OWN: Count(2, NOW)}, is_right=False), (None, 1)),
    (
        "All other networks count together.",
        lambda: limits(is_known=False),
        ["login", "account", "user", "user"],
    ),
    ("A known network counts for itself.", lambda: limits(is_known=True), ["login", "user"]),
    ("Where every step was passed is known.", lambda: counts.is_known_network(passed(HERE), HERE, NOW), True),
    (
        "Of the last ten such networks.",
        lambda: counts.is_known_network(
            passed(*(f"192.0.2.{place}" for place in range(10)), HERE), HERE, NOW
        ),
        False,
    ),
    (
        "For a day, where a mailed link was used.",
        lambda: [
            counts.is_known_network([KnownNetwork(network=HERE, mail_proved_at=NOW - age)], HERE, NOW)
            for age in (DAY - SECOND, DAY)
        ],
        [True, False],
    ),
    (
        "A network and a browser that are new are told of.",
        lambda: counts.is_new_sign_in(ALICE, is_known=False),
        True,
    ),
    (
        "A browser that is known is not.",
        lambda: counts.is_new_sign_in(ALICE, is_known=True),
        False,
    ),
    ("Nor is a first sign-in.", lambda: counts.is_new_sign_in(UNUSED, is_known=False), False),
]
ADMISSIONS: list[Example] = [
    ("A free address is whose it is given to.", lambda: admitted("bob@example.com"), None),
    (
        "Email can be disabled.",
        lambda: admitted("bob@example.com", replace(ALL_ADMITTED, email_enabled=False)),
        "email_provider_disabled",
    ),
    (
        "SMS can be disabled.",
        lambda: admitted("+4915100000000", replace(ALL_ADMITTED, offers_phone=False)),
        "phone_provider_disabled",
    ),
    ("A number must be a possible one.", lambda: admitted("+49151"), "phone.validation_failed"),
    (
        "It must be of a country that gets SMS.",
        lambda: [
            admitted("+4915100000000", replace(ALL_ADMITTED, sms_countries=codes))
            for codes in (("+33", "+49"), ("+33",))
        ],
        [None, "country.validation_failed"],
    ),
    (
        "One that gets none can still sign in with a password.",
        lambda: admission.refusal_of_kind(None, "+49151", ALL_ADMITTED),
        None,
    ),
    (
        "An allowed domain is exact.",
        lambda: [
            admitted(email, replace(ALL_ADMITTED, signup_domains=frozenset({"example.com"})))
            for email in ("bob@example.com", "bob@mail.example.com")
        ],
        [None, "email_address_not_authorized"],
    ),
    (
        "It needs an email that will be proved.",
        lambda: admission.is_listed(
            "bob@example.com",
            replace(ALL_ADMITTED, signup_domains=frozenset({"example.com"})),
            is_proved=False,
        ),
        False,
    ),
    (
        "A blocked domain has its subdomains.",
        lambda: [
            admitted(email, replace(ALL_ADMITTED, signup_blocked_domains=frozenset({"example.com"})))
            for email in ("bob@example.com", "bob@mail.example.com", "bob@notexample.com")
        ],
        ["email_address_not_authorized", "email_address_not_authorized", None],
    ),
    (
        "An allow list admits nobody without an email, but the second address of a user.",
        lambda: [
            admission.refusal_of_address(
                None,
                phone,
                replace(ALL_ADMITTED, signup_domains=frozenset({"example.com"})),
                is_possible_phone=True,
                is_first=is_first,
            )
            for phone, is_first in ((None, True), ("+4915100000000", True), ("+4915100000000", False))
        ],
        ["email_address_not_authorized", "email_address_not_authorized", None],
    ),
    (
        "Whom a stranger may have made blocks no address.",
        lambda: admission.refusal_of_holders("email", [UNUSED], NOW),
        None,
    ),
    (
        "Everybody else keeps theirs.",
        lambda: [admission.refusal_of_holders(kind, [ALICE], NOW) for kind in ("email", "phone")],
        ["email_exists", "phone_exists"],
    ),
]
EXAMPLES = (
    SIGN_INS
    + ADMISSIONS
    + MESSAGES
    + USERS
    + SESSIONS
    + TOKENS
    + LEVELS
    + REFRESHING
    + PROOFS
    + FIRST_PROOFS
    + LINKS
    + REMAINING
    + COUNTS
)


@cases(("sentence", "ask", "answer"), EXAMPLES)
def test_rule_answers_as_its_sentence(sentence, ask, answer):
    assert ask() == answer
