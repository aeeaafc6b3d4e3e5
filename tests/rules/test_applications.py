"""The rules about applications, a sentence and an example each."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from auth.rules import consent, devices, tokens
from auth.rules.clients import Client, may_use, problem_of_credentials, spelled_in
from auth.rules.consent import Asking, Code, Grant, Request
from tests.rules.facts import DAY, HOUR, MICROSECOND, MINUTE, NOW, POLICY, SECOND, Person, Session
from tests.support.cases import cases

ALICE, ANONYMOUS = Person(), Person(made_by="anonymous")
STAFF = Client(allowed_roles=frozenset({"staff", "s"}))
API = "https://api.example.com"
ACME, BETA = "0f7a", "51c2"
BOTH = frozenset({ACME, BETA})
MEMBERS = Client(organizations=frozenset({ACME}))
MACHINE = Client(grant_types=frozenset({"client_credentials"}))
BROWSER = Session(method="password", aal="aal1", session_created_at=NOW - MINUTE, refreshed_at=NOW - MINUTE)


def with_roles(roles: object) -> Person:
    return replace(ALICE, app_metadata={"roles": roles})


@cases(
    ("sentence", "user", "client", "resource", "is_admitted"),
    [
        ("A client admits users.", ALICE, Client(), None, True),
        ("But no anonymous one.", ANONYMOUS, Client(), None, False),
        ("And nobody while it is blocked.", ALICE, Client(is_blocked=True), None, False),
        ("It may allow roles.", ALICE, STAFF, None, False),
        ("The user's own counts.", replace(ALICE, role="staff"), STAFF, None, True),
        ("So does one of the app metadata.", with_roles(["staff", 1]), STAFF, None, True),
        ("Only of a list.", with_roles("staff"), STAFF, None, False),
        ("And not of an object.", with_roles({"staff": True}), STAFF, None, False),
        ("An administrator lists the resources of a client.", ALICE, Client(), API, False),
        ("Those it may use.", ALICE, Client(resources=frozenset({API})), API, True),
        ("A client that registered itself may use any.", ALICE, Client(is_dynamic=True), API, True),
        ("It may admit the members of an organization.", ALICE, MEMBERS, None, True),
        ("Its session may be for another one.", ALICE, replace(MEMBERS, organizations=BOTH), None, False),
    ],
)
def test_client_admits_a_user(sentence, user, client, resource, is_admitted):
    assert may_use(user, client, resource, {ACME}) is is_admitted


def test_client_of_an_organization_admits_nobody_without_a_membership():
    assert may_use(ALICE, MEMBERS, None) is False
    assert may_use(ALICE, MEMBERS, None, {BETA}) is False


@cases(
    ("sentence", "memberships", "chosen", "organization"),
    [
        ("The only membership needs no choice.", {ACME: True}, None, ACME),
        ("But it has to count.", {ACME: False}, None, None),
        ("Of several, the user chooses one.", {ACME: True, BETA: True}, None, None),
        ("That is the one.", {ACME: True, BETA: True}, BETA, BETA),
        ("If it counts.", {ACME: True, BETA: False}, BETA, None),
        ("Another one's choice counts for nothing.", {ACME: True, BETA: True}, "x", None),
        ("The only one is no other's place.", {ACME: True}, BETA, None),
        ("Without a membership there is none.", {}, ACME, None),
    ],
)
def test_request_is_for_an_organization(sentence, memberships, chosen, organization):
    assert consent.organization_of(consent.Offer(memberships, chosen)) == organization


@cases(
    ("sentence", "client", "user", "refusal"),
    [
        ("A client that admits the user gets a token.", Client(), ALICE, None),
        ("A role that it does not allow ends its session.", STAFF, ALICE, "session_not_found"),
        ("A client that is gone has none.", None, ALICE, "session_not_found"),
        (
            "Its session must have every step.",
            Client(),
            replace(ALICE, has_second_step=True),
            "insufficient_aal",
        ),
    ],
)
def test_sessions_of_a_client_give_tokens(sentence, client, user, refusal):
    assert tokens.refusal_of_client_session(user, BROWSER, None, client, None, POLICY) == refusal


@cases(
    ("sentence", "client", "expires_at", "refusal"),
    [
        ("A token of a client for itself is good.", MACHINE, NOW + SECOND, None),
        ("It expires at its moment.", MACHINE, NOW, "bad_jwt"),
        ("A blocked client has none.", replace(MACHINE, is_blocked=True), NOW + SECOND, "bad_jwt"),
        ("Nor has one that may not get any.", Client(), NOW + SECOND, "bad_jwt"),
    ],
)
def test_tokens_of_a_client_for_itself_are_good(sentence, client, expires_at, refusal):
    assert tokens.refusal_of_client(client, expires_at, NOW) == refusal


@dataclass(frozen=True, kw_only=True)
class Credentials:
    token_endpoint_auth_method: str
    secret_hash: memoryview | None = None
    previous_secret_hash: memoryview | None = None
    previous_secret_expires_at: datetime | None = None
    now: datetime = NOW
    accepts_either_method: bool = False
    is_blocked: bool = False


CONFIDENTIAL = Credentials(
    token_endpoint_auth_method="client_secret_basic",
    secret_hash=memoryview(b"present"),
    previous_secret_hash=memoryview(b"previous"),
    previous_secret_expires_at=NOW + SECOND,
)
BASIC, POST = "client_secret_basic", "client_secret_post"


@cases(
    ("sentence", "credentials", "method", "secret", "problem"),
    [
        ("A secret is sent in one way.", CONFIDENTIAL, BASIC, b"present", None),
        ("That is named to a client that uses another.", CONFIDENTIAL, POST, b"present", BASIC),
        (
            "A client may use either.",
            replace(CONFIDENTIAL, accepts_either_method=True),
            POST,
            b"present",
            None,
        ),
        ("A wrong secret is told like an unknown client.", CONFIDENTIAL, POST, b"wrong", "unknown"),
        ("So is none.", CONFIDENTIAL, BASIC, None, "unknown"),
        ("The secret before works for a time.", CONFIDENTIAL, BASIC, b"previous", None),
        ("That ends.", replace(CONFIDENTIAL, previous_secret_expires_at=NOW), BASIC, b"previous", "unknown"),
        ("It has to be sent.", CONFIDENTIAL, "none", None, "secret_missing"),
        ("A public client has none.", Credentials(token_endpoint_auth_method="none"), "none", None, None),
        ("And sends none.", Credentials(token_endpoint_auth_method="none"), BASIC, b"any", "public"),
        ("A blocked client learns it.", replace(CONFIDENTIAL, is_blocked=True), BASIC, b"present", "blocked"),
    ],
)
def test_credentials_authenticate_a_client(sentence, credentials, method, secret, problem):
    assert problem_of_credentials(credentials, method, secret) == problem


REQUEST = Request(created_at=NOW - 2 * MINUTE, scopes=("openid",))
LATER_REQUEST = replace(REQUEST, created_at=NOW - MINUTE)
LOGIN = frozenset({"login"})
API_REQUEST = replace(REQUEST, resource=API)
SITE, REGISTERED = Asking(updated_at=NOW - HOUR), Asking(updated_at=NOW - HOUR, is_dynamic=True)
DOCUMENT = replace(REGISTERED, has_document=True)
GRANT = Grant(scopes=("openid", "email"), granted_at=NOW - HOUR)
OUTDATED = replace(GRANT, granted_at=NOW - HOUR - MICROSECOND)


@cases(
    ("sentence", "request_", "user", "session", "is_fresh"),
    [
        ("A session is fresh for a request that asks for nothing.", REQUEST, ALICE, BROWSER, True),
        ("There is none before the log-in.", REQUEST, None, None, True),
        ("It must have every step.", REQUEST, replace(ALICE, has_second_step=True), BROWSER, False),
        ("A log-in is one since the request.", replace(REQUEST, prompts=LOGIN), ALICE, BROWSER, True),
        ("And not at its moment.", replace(LATER_REQUEST, prompts=LOGIN), ALICE, BROWSER, False),
        (
            "max_age counts from the request.",
            replace(LATER_REQUEST, max_age=MICROSECOND),
            ALICE,
            BROWSER,
            True,
        ),
        ("Until its moment.", replace(LATER_REQUEST, max_age=0 * SECOND), ALICE, BROWSER, False),
    ],
)
def test_session_is_fresh_for_a_request(sentence, request_, user, session, is_fresh):
    assert consent.is_fresh_for(request_, user, session, POLICY) is is_fresh


@cases(
    ("sentence", "grant", "request_", "client", "is_covered"),
    [
        ("A grant covers its scopes.", GRANT, REQUEST, SITE, True),
        ("And no others.", GRANT, replace(REQUEST, scopes=("openid", "phone")), SITE, False),
        ("Without one the user is asked.", None, REQUEST, SITE, False),
        ("A document that changed is another application.", OUTDATED, REQUEST, DOCUMENT, False),
        ("Not one that is as old as the grant.", GRANT, REQUEST, DOCUMENT, True),
        ("What an administrator changes stays the application.", OUTDATED, REQUEST, SITE, True),
        (
            "A redirect URI that came later asks.",
            replace(GRANT, has_redirect_uri=False),
            REQUEST,
            SITE,
            False,
        ),
        ("Its resources are allowed with it.", GRANT, API_REQUEST, SITE, True),
        ("Those of a client that registered itself one by one.", GRANT, API_REQUEST, REGISTERED, False),
        (
            "So they are once.",
            replace(GRANT, opened_scopes=frozenset({"openid"})),
            API_REQUEST,
            REGISTERED,
            True,
        ),
    ],
)
def test_grant_covers_a_request(sentence, grant, request_, client, is_covered):
    assert consent.covers(grant, request_, client) is is_covered


@cases(
    ("grant", "client", "scopes"),
    [
        (GRANT, DOCUMENT, ["openid", "email", "phone"]),
        (OUTDATED, DOCUMENT, ["openid", "phone"]),
        (OUTDATED, SITE, ["openid", "email", "phone"]),
        (None, SITE, ["openid", "phone"]),
    ],
)
def test_grant_keeps_its_scopes_and_gets_further_scopes(grant, client, scopes):
    assert consent.scopes_after(grant, ("openid", "phone"), client) == scopes


CODE = Code(expires_at=NOW + SECOND)
DEVICE_CODE = replace(CODE, is_of_device=True, decision="approved")


ANY, OF_BETA = consent.Offer({}), consent.Offer({}, is_named=True)


@cases(
    ("sentence", "offer", "client", "user", "memberships", "lack"),
    [
        ("Who may use a client lacks nothing.", None, Client(), ALICE, {}, None),
        ("Nor does a member.", consent.Offer({ACME: True}), MEMBERS, ALICE, {ACME: True}, None),
        (
            "A membership may ask for a step.",
            consent.Offer({ACME: False}),
            Client(),
            ALICE,
            {ACME: False},
            "step",
        ),
        ("So may the one that the client demands.", None, MEMBERS, ALICE, {ACME: False}, "step"),
        ("Another one's step does not help.", None, MEMBERS, ALICE, {BETA: False}, "named_membership"),
        ("A client may need any membership.", ANY, Client(), ALICE, {}, "membership"),
        ("Or a certain one.", None, MEMBERS, ALICE, {}, "named_membership"),
        ("Even if any is asked for.", ANY, MEMBERS, ALICE, {BETA: True}, "named_membership"),
        ("A request may name it, too.", OF_BETA, Client(), ALICE, {ACME: True}, "named_membership"),
        ("Without the role, no membership helps.", ANY, STAFF, ALICE, {}, "role"),
        ("A blocked client helps nobody.", ANY, Client(is_blocked=True), ALICE, {}, "access"),
        ("Nor is an anonymous user told what it allows.", None, STAFF, ANONYMOUS, {}, "access"),
    ],
)
def test_user_is_told_what_the_use_of_a_client_lacks(sentence, offer, client, user, memberships, lack):
    assert consent.lack_of(offer, client, None, user, memberships) == lack
    request, facts = replace(REQUEST, offer=offer), (GRANT, "1", user, BROWSER, POLICY, memberships)
    asking = Asking(**asdict(client), updated_at=NOW - DAY)
    is_refused = consent.obstacle(request, asking, *facts) == "access_denied"
    assert is_refused == (lack is not None)


REQUEST_OF_MEMBER = replace(REQUEST, offer=consent.Offer({ACME: True}))
ACME_SITE = replace(SITE, organizations=frozenset({ACME}))


@cases(
    ("sentence", "request_", "client", "grant", "is_told"),
    [
        ("An application learns why it gets nothing.", REQUEST, SITE, None, True),
        ("But nothing about memberships, which nobody let it know.", REQUEST_OF_MEMBER, SITE, None, False),
        ("Once the user has, it does.", REQUEST_OF_MEMBER, SITE, GRANT, True),
        ("Nor who is a member of the one that it admits.", REQUEST, ACME_SITE, None, False),
        ("But for what the user allowed.", REQUEST, ACME_SITE, GRANT, True),
        ("Nor who has a role.", REQUEST, replace(SITE, allowed_roles=frozenset({"staff"})), None, False),
        ("So does the team's own.", REQUEST_OF_MEMBER, replace(SITE, skips_consent=True), None, True),
        ("One that registered itself never.", REQUEST_OF_MEMBER, REGISTERED, GRANT, False),
    ],
)
def test_application_learns_an_obstacle(sentence, request_, client, grant, is_told):
    answer = "access_denied" if is_told else "consent_required"
    assert consent.disclosed("access_denied", request_, client, grant) == answer


@cases(
    ("sentence", "code", "facts", "refusal"),
    [
        ("A code is good.", CODE, {}, None),
        ("It expires at its moment.", replace(CODE, expires_at=NOW), {}, "invalid_grant"),
        ("It goes with its grant.", replace(CODE, has_grant=False), {}, "invalid_grant"),
        ("That of a device is good once approved.", DEVICE_CODE, {}, None),
        ("And not before.", replace(DEVICE_CODE, decision=None), {}, "invalid_grant"),
        ("A ban is told.", CODE, {"user": replace(ALICE, banned_until=NOW + SECOND)}, "user_banned"),
        ("So is a client that refuses the user.", CODE, {"client": STAFF}, "access_denied"),
        (
            "It gives what its session gives.",
            CODE,
            {"opener": replace(BROWSER, ended_at=NOW)},
            "invalid_grant",
        ),
        ("Nothing without one.", CODE, {"opener": None}, "invalid_grant"),
    ],
)
def test_code_of_a_request_gives_tokens(sentence, code, facts, refusal):
    all_facts: dict[str, Any] = {"user": ALICE, "opener": BROWSER, "client": Client()} | facts
    assert consent.refusal_of_code(code, **all_facts, policy=POLICY) == refusal


DEVICE: dict[str, Any] = {"entered_in": None, "is_decided": False, "expires_at": NOW + SECOND}


@cases(
    ("sentence", "request_", "is_open"),
    [
        ("A device waits for its code.", DEVICE, True),
        ("Until that expires.", DEVICE | {"expires_at": NOW}, False),
        ("Then for the session that entered it.", DEVICE | {"entered_in": "this"}, True),
        ("And for no other.", DEVICE | {"entered_in": "another"}, False),
        ("It waits until its decision.", DEVICE | {"is_decided": True}, False),
    ],
)
def test_request_of_a_device_is_open(sentence, request_, is_open):
    assert devices.is_open_to("this", **request_, now=NOW) is is_open


@cases(
    ("sentence", "polled_at", "is_early"),
    [
        ("A device asks for the first time.", None, False),
        ("Four seconds later, of five.", NOW - 4 * SECOND, False),
        ("Not sooner.", NOW - 4 * SECOND + MICROSECOND, True),
    ],
)
def test_device_asks_too_early(sentence, polled_at, is_early):
    assert devices.is_early(polled_at, 5 * SECOND, NOW) is is_early


@cases(
    ("sentence", "decision", "poll", "state"),
    [
        ("A device asks until its user has decided.", None, {"is_early": False}, "authorization_pending"),
        ("Not too often.", None, {}, "slow_down"),
        ("A decision is told at once.", "approved", {}, "approved"),
        ("Either of them.", "denied", {}, "access_denied"),
        ("A code expires.", "approved", {"expires_at": NOW}, "expired_token"),
        ("A denial stays one.", "denied", {"expires_at": NOW}, "access_denied"),
        ("A used code is told as such later.", None, {"expires_at": NOW, "has_session": True}, "approved"),
    ],
)
def test_device_learns_of_the_decision(sentence, decision, poll, state):
    facts: dict[str, Any] = {"is_early": True, "has_session": False, "expires_at": NOW + DAY} | poll
    assert devices.state_of_poll(decision, **facts, now=NOW) == state


@cases(
    ("resource", "resources", "spelled"),
    [
        ("https://a.example", ["https://a.example"], "https://a.example"),
        ("https://a.example/", ["https://a.example"], "https://a.example"),
        ("https://a.example", ["https://b.example", "https://a.example/"], "https://a.example/"),
        ("https://a.example/", ["https://a.example", "https://a.example/"], "https://a.example/"),
        ("https://a.example?x", ["https://a.example/?x"], "https://a.example/?x"),
        ("https://a.example/x/", ["https://a.example/x"], None),
        ("https://a.example//", ["https://a.example"], None),
        ("https://a.example/?", ["https://a.example"], None),
        ("https://A.example", ["https://a.example"], None),
        ("https://a.example:443", ["https://a.example"], None),
        ("https://a.example/", ["http://a.example"], None),
        ("urn:a:b", ["urn:a:b/"], None),
        ("https://a.example", [], None),
    ],
)
def test_resource_is_spelled_as_it_is_registered(resource, resources, spelled):
    """RFC 3986, section 6.2.3: only an empty path has another spelling."""
    assert spelled_in(resources, resource) == spelled
