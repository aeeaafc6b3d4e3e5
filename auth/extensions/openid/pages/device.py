"""The page where a user types the code of a device, and then decides about its application."""

from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.core import normalize
from auth.core.net import networks
from auth.core.text import names, user_agents
from auth.extensions.openid import consent, device_requests, memberships
from auth.extensions.openid.device_codes import shown_code
from auth.extensions.openid.pages import choice
from auth.extensions.openid.pages.consent import account_name, lasts
from auth.flows.sign_in.reauthentication import proof_needed
from auth.html import browser_sessions, form_schemas, forms
from auth.html.page import ago, chosen_language, page, redirect_to_own
from auth.html.problems import Problem, form
from auth.web import Level, audited, g
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import canonical_id, read_form
from sql import queries

blueprint = Blueprint("devices", __name__)

# The paths of the pages, to which a sign-in returns.
PATHS = r"device(?:\?user_code=[A-Za-z0-9-]{1,32})?|device/consent\?request=[0-9a-f-]{36}"
_DONE = ("device_approved", "device_denied")


@blueprint.get("/device")
def show_code() -> Response:
    return Response() if request.method == "HEAD" else _code_page()


def _code_page(problem: Problem | None = None) -> Response:
    code = _code_of_device()
    here = _path_of(code)
    if to_step := _step_before(here, browser_sessions.resume(Level.AAL2)):
        return to_step
    if (done := forms.signed_value("done")) in _DONE:
        return page("device_decided.html", here="/device", done=done)
    text = request.values.get("user_code", "") if problem else code
    return page("device.html", here=f"/{here}", problem=problem, typed=text, example="WDJB-MJHT")


@blueprint.post("/device")
@form("enter_user_code", shown=_code_page, key=browser_sessions.user_or_network)
@audited("verification_refused")
def submit_code() -> Response:
    """Bind the device's request to this browser's session."""
    if to_step := _step_before(_path_of(_code_of_device()), browser_sessions.resume(Level.AAL2)):
        return to_step
    code = normalize.code(read_form(form_schemas.UserCodeForm)["user_code"])
    return redirect_to_own(_path_of_request(device_requests.enter(current_asked(), code)))


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
    id, session = _request_id(), browser_sessions.resume(Level.AAL2)
    here = _path_of_request(id)
    if to_step := _step_before(here, session):
        return to_step
    asked = current_asked()
    person = consent.caller(asked, asked.db)
    row, client, lack = device_requests.find(asked, asked.db, id, person)
    if lack:
        g.refused_because = "oauth_consent_not_found"
        g.note(user_id=g.user_id, client=_name(client), problem="the user may not use it")
    return page(
        "device_consent.html",
        status=403 if lack else 200,
        here=f"/{here}",
        problem=problem,
        decides="device/consent",
        fields={"request": id},
        account=account_name(session),
        application=_name(client),
        scopes=memberships.kinds(row.scopes) or ["openid"],
        scopes_of_api=memberships.of_apis(row.scopes),
        resource=row.resource,
        asked=ago(row.asked_at),
        ip=row.ip,
        browser=user_agents.device(row.user_agent, chosen_language()),
        is_same_network=row.ip is not None and networks.locate(row.ip)[1] == asked.client["network"],
        client_logo=client.logo_uri if client.logo_uri.startswith("https://") else None,
        **lasts(client),
        **choice.variables(asked, row, client, person, lack, here),
    )


@blueprint.post("/device/consent")
@form("decide_device", shown=_device_page, key=browser_sessions.user_or_network)
@audited("application_refused")
def submit_decision() -> Response:
    """Record the user's decision, and show it."""
    id = _request_id()
    if to_step := _step_before(_path_of_request(id), browser_sessions.resume(Level.AAL2)):
        return to_step
    values = read_form(form_schemas.DeviceForm)
    decision = device_requests.decide(current_asked(), id, values["action"], values["organization"])
    return redirect_to_own("device", f"device_{decision}")


def _request_id() -> str:
    return canonical_id(request.values.get("request", ""), "oauth_authorization_not_found")


def _path_of_request(id: str) -> str:
    return f"device/consent?{urlencode({'request': id})}"


def _step_before(here: str, session: browser_sessions.BrowserSession | None) -> Response | None:
    way_back = urlencode({"next": here})
    if session is None:
        return redirect_to_own(f"sign-in?{way_back}")
    if session.lacks_level:
        return redirect_to_own(f"second-step?{way_back}")
    if proof_needed(current_asked(), device_requests.WANTED, level=Level.AAL2):
        return redirect_to_own(f"account/confirm?{way_back}")
    return None


def _name(client: "queries.SelectClient") -> str:
    return names.in_one_line(client.name) or client.id
