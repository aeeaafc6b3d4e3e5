"""The page where a user types the code of a device, and then decides about its application.

A stranger may send a user the code of the stranger's own device. So the user signs in first, needs a proof of
the last 15 minutes, and always decides, even about an application that was allowed before.
"""

from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.core import constants, normalize
from auth.core.net import networks
from auth.core.text import names, user_agents
from auth.extensions.openid import consent, memberships
from auth.extensions.openid.devices.device_codes import shown_code
from auth.extensions.openid.pages.consent import account_name, counted_browser, lasts
from auth.flows import organizations, verdicts
from auth.flows.sign_in.reauthentication import add, admit_caller, proof_needed
from auth.html import browser_sessions, form_schemas, forms
from auth.html.page import ago, chosen_language, page, redirect_to_own
from auth.html.problems import Problem, form
from auth.rules import clients, devices
from auth.rules.consent import organization_of
from auth.web import Level, audited, callers, g, limits
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import known_id, read_form
from sql import Runner, acts, queries

blueprint = Blueprint("devices", __name__)

# The paths of the pages, to which a sign-in returns.
PATHS = r"device(?:\?user_code=[A-Za-z0-9-]{1,32})?|device/consent\?request=[0-9a-f-]{36}"
_ACT = add("device")
_EXAMPLE = "WDJB-MJHT"
_DONE = ("device_approved", "device_denied")


@blueprint.get("/device")
def show_code() -> Response:
    return Response() if request.method == "HEAD" else _code_page()


def _code_page(problem: Problem | None = None) -> Response:
    """Ask for the code, or redirect to the missing step."""
    shown = _code_of_device()
    here = _path_of(shown)
    if to_step := _step_before(here, browser_sessions.resume(Level.AAL2)):
        return to_step
    if (done := forms.signed("done")) in _DONE:
        return page("device_decided.html", here="/device", done=done)
    text = request.values.get("user_code", "") if problem else shown
    return page("device.html", here=f"/{here}", problem=problem, typed=text, example=_EXAMPLE)


@blueprint.post("/device")
@form("enter_user_code", shown=_code_page, key=counted_browser)
@audited("verification_refused")
def submit_code() -> Response:
    """Bind the device's request to this browser's session."""
    if to_step := _step_before(_path_of(_code_of_device()), browser_sessions.resume(Level.AAL2)):
        return to_step
    return redirect_to_own(f"device/consent?{urlencode({'request': _enter()})}")


def _code_of_device() -> str:
    """Return the code of the request as devices show it, or "" if it cannot be one."""
    code = normalize.code(request.values.get("user_code", "")).upper()
    return shown_code(code) if latchkey.user_codes.macs("", code) else ""


def _path_of(code: str) -> str:
    return f"device?{urlencode({'user_code': code})}" if code else "device"


@blueprint.get("/device/consent")
def show_device() -> Response:
    return Response() if request.method == "HEAD" else _device_page()


def _device_page(problem: Problem | None = None) -> Response:
    """Show the device's request and its origin, and ask for the user's decision."""
    id, known = _request_id(), browser_sessions.resume(Level.AAL2)
    here = f"device/consent?{urlencode({'request': id})}"
    if to_step := _step_before(here, known):
        return to_step
    person = callers.select(latchkey.db, g.caller)
    row, client, may_use = _find(latchkey.db, id, person)
    if not may_use:
        g.refused_because = "oauth_consent_not_found"
        g.note(user_id=g.user_id, client=_name(client), problem="the user may not use it")
    return page(
        "device_consent.html",
        status=200 if may_use else 403,
        here=f"/{here}",
        problem=problem,
        is_refused=not may_use,
        decides="device/consent",
        fields={"request": id},
        account=account_name(known),
        application=_name(client),
        scopes=memberships.kinds(row.scopes),
        organizations=memberships.offered(row, client, person),
        aal=person and person.aal,
        resource=row.resource,
        asked=ago(row.asked_at),
        ip=row.ip,
        browser=user_agents.device(row.user_agent, chosen_language()),
        is_same_network=row.ip is not None and networks.locate(row.ip)[1] == g.client["network"],
        client_logo=client.logo_uri if client.logo_uri.startswith("https://") else None,
        **lasts(client),
    )


@blueprint.post("/device/consent")
@form("decide_device", shown=_device_page, key=counted_browser)
@audited("application_refused")
def submit_decision() -> Response:
    id = _request_id()
    here = f"device/consent?{urlencode({'request': id})}"
    if to_step := _step_before(here, browser_sessions.resume(Level.AAL2)):
        return to_step
    sent = read_form(form_schemas.DeviceForm)
    return _decided(id, sent["action"], sent["organization"])


def _request_id() -> str:
    return known_id(request.values.get("request", ""), "oauth_authorization_not_found")


def _step_before(here: str, known: browser_sessions.BrowserSession | None) -> Response | None:
    """Redirect to the step that this browser lacks: the sign-in, the second step or the proof."""
    way_back = urlencode({"next": here})
    if known is None:
        return redirect_to_own(f"sign-in?{way_back}")
    if known.lacks_level:
        return redirect_to_own(f"second-step?{way_back}")
    if proof_needed(current_asked(), _ACT, level=Level.AAL2):
        return redirect_to_own(f"account/confirm?{way_back}")
    return None


def _enter() -> str:
    """Return the id of the request that waits for the code. Count and refuse a wrong code."""
    code = normalize.code(read_form(form_schemas.UserCodeForm)["user_code"])
    macs = latchkey.user_codes.macs("", code.upper())
    if not macs:
        raise ApiError("device.otp_expired")
    user_id, most = g.caller.user_id, constants.WRONG_CODES_A_DAY["device"]
    with acts.begin(latchkey.db) as act:
        request = queries.select_user_code(act, macs=macs)
        known = verdicts.limits_of_code(act, "device", user_id, g.client["network"], user_id=user_id)
        verdict = act.record_verdict(known, is_right=_is_open(request))
        act.lock_users([user_id])
        act.lock_request(request and request.id)
        request = act.read(queries.select_user_code, macs=macs)
        entered = request if verdict.refused_for is None and _is_open(request) else None
        if entered:
            queries.bind_oauth_request(act, id=entered.id, user_id=user_id, session_id=g.caller.session_id)
    g.note(user_id=user_id, tries=verdict.count, of=most)
    if verdict.refused_for is not None:
        g.add_window(limits.LimitWindow(most, 0, verdict.refused_for))
        raise limits.refusal("over_request_rate_limit", verdict.refused_for)
    return found(entered, "device.otp_expired").id


def _is_open(row: "queries.SelectUserCode | queries.SelectDeviceRequest | None") -> bool:
    """Whether a request waits for its code, or for the decision of this session."""
    return row is not None and devices.is_open_to(
        g.caller.session_id,
        entered_in=row.session_id,
        is_decided=row.decision is not None,
        expires_at=row.code_expires_at,
        now=row.now,
    )


def _find(
    on: Runner, id: str, person: "queries.SelectPerson | None"
) -> "tuple[queries.SelectDeviceRequest, queries.SelectClient, bool]":
    """Return a request that waits for the decision of this user, who entered its code in this session, with
    its client, and whether the user may use that.
    """
    row = queries.select_device_request(on, id=id)
    client = row and queries.select_client(on, id=row.client_id)
    if row is None or client is None or person is None or row.user_id != g.user_id or not _is_open(row):
        raise ApiError("oauth_authorization_not_found")
    counting = organizations.counting(row.memberships, person)
    offer = memberships.offer_of(row, client, person)
    has_membership = offer is None or any(offer.memberships.values())
    may_use = clients.may_use(person, consent.asking_of(client), row.resource, counting)
    return row, client, may_use and has_membership


def _decided(id: str, action: str, organization: str) -> Response:
    known = found(queries.find_device_request(latchkey.db, id=id), "oauth_authorization_not_found")
    with acts.begin(latchkey.db) as act:
        act.share_client(known.client_id)
        act.lock_users([g.user_id])
        act.lock_request(id)
        user = admit_caller(current_asked(), act, _ACT, level=Level.AAL2)
        row, client, may_use = _find(act, id, user)
        is_allowed = action == "approve" and may_use
        offer = memberships.offer_of(row, client, user, organization)
        chosen = organization_of(offer) if offer else None
        if is_allowed and offer and chosen is None:
            return redirect_to_own(f"device/consent?{urlencode({'request': id})}")
        if is_allowed:
            consent.add_grant(act, user, row, client)
        decision = "approved" if is_allowed else "denied"
        queries.decide_device_request(act, id=id, decision=decision, organization_id=chosen)
    return redirect_to_own("device", "device_approved" if is_allowed else "device_denied")


def _name(client: "queries.SelectClient") -> str:
    return names.in_one_line(client.name) or client.id
