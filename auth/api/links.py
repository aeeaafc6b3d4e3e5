import re
from collections.abc import Mapping

from flask import Blueprint, Response, jsonify, request
from marshmallow import ValidationError, validates_schema

from auth.core.json_bodies import JsonObject
from auth.core.net.redirects import with_query
from auth.core.text.masking import masked
from auth.core.tokens import one_time
from auth.flows.factors import factor_schemas
from auth.flows.links import declining, targets, undo
from auth.flows.links.finding import LinkOrCode, OpenedLink, by_code, good_link
from auth.flows.links.spending import ToBrowser, ToProgram, spend
from auth.flows.sessions.issuing import IssuedSession
from auth.flows.sessions.token_response import Outcome, token_response
from auth.flows.sign_in import waiting
from auth.html import browser_sessions, form_schemas, forms, redirects
from auth.html.forms import own_form_or_json
from auth.html.page import address, page, redirect_to_own
from auth.html.problems import asks_for_page
from auth.html.redirects import FlowEnd
from auth.web import audited, cookies, dialect, fields, g, refuses_by_page, schemas
from auth.web.application import FORM, JsonResponse, redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import check, read_body, read_form, read_query
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("verify", __name__)

_PREVIEW_BOTS = re.compile(
    r"bot\b|crawl|spider|preview|slurp|facebookexternalhit|whatsapp|telegram|discord|slack|linkedin|skype"
    r"|teams|embed|vkshare|safelinks|barracuda|mimecast|proofpoint|urlscan|virustotal|google-read-aloud"
    r"|yahoo|pinterest|iframely|mastodon|snapchat"
    r"|viber|kakaotalk|ms-?office|microsoft office|outlook",
    re.IGNORECASE,
)
# Sec-Fetch-Mode is not among them, because Node's fetch sends it too.
_BROWSER_HEADERS = {
    "sec-fetch-site", "sec-fetch-dest", "sec-fetch-user",
    "sec-purpose", "purpose", "x-purpose", "x-moz",
}  # fmt: skip
_DONE = {
    "email_change": "The new email address is confirmed",
    "undo": "The account was taken back, and its password removed; choose a new one to sign in",
}

# The sections of the texts about the result of a form, and the text of each.
_TOLD = {
    "declined": "text",
    "change_declined": "text",
    "confirmed": "email_change",
    "undone": "taken",
}
# The flow and the section of each type of link that offers "This wasn't me". Any other type in
# the form is treated as a sign-up, whose flow declines only such links.
_DECLINED = {
    "signup": (declining.decline_sign_up, "declined"),
    "email_change": (declining.decline_change, "change_declined"),
}

_WRONG_FACTOR = {
    "insufficient_aal", "over_request_rate_limit", "validation_failed",
    "webauthn_verification_failed", "webauthn_challenge_not_found", "webauthn_challenge_expired",
}  # fmt: skip


class _VerifyQuery(schemas.Input):
    token = fields.Text(required=True)
    type = fields.Text(required=True)
    redirect_to = fields.Text()


class _Verification(schemas.Input):
    # The link of a notice works only on our page.
    type = fields.Choice(*(name for name in one_time.PURPOSES if name != "undo"), required=True)
    token = fields.Code()
    token_hash = fields.Text()
    email = fields.Email()
    phone = fields.Phone()

    @validates_schema
    def names_what_was_sent(self, data: JsonObject, **_kwargs: object) -> None:
        if "token_hash" in data:
            return
        if "token" not in data:
            raise ValidationError("give a token with an email or a phone, or a token_hash", "token")
        if ("email" in data) == ("phone" in data):
            raise ValidationError("give either an email or a phone", "email")


_VerifyForm = _VerifyQuery.of(
    action=fields.Text(), factor_code=fields.Code(), challenge_id=fields.Text(), credential=fields.LongText()
)


@blueprint.get("/verify")
# A HEAD request, which scanners send, spends nothing, and nobody can guess a token.
@limited("open_link", unless=lambda: request.method == "HEAD")
@audited("verification_refused", sign_in="link")
@refuses_by_page
def verify_link() -> Response:
    """Spend a link for a program. Show browsers a page with a button, so that scanners do not spend it."""
    try:
        query = read_query(_VerifyQuery)
    except ApiError as error:
        if not asks_for_page():
            raise
        return _incomplete_link_page(error)
    if request.method != "HEAD" and latchkey.settings.verify_on_get == "programs" and _is_program():
        return _spend_and_redirect(query)
    return _page_of_link(query)


@blueprint.post("/verify")
@own_form_or_json
@limited("verify")
@audited("verification_refused", sign_in="link")
@dialect.translated(writes=dialect.message)
@refuses_by_page
def verify() -> Response:
    """Spend a link or a code. Redirect the page's form; return tokens to a program."""
    asked = current_asked()
    if request.mimetype == FORM:
        form = read_form(_VerifyForm)
        if form.get("action") != "decline":
            return _spend_and_redirect(form)
        decline, what = _DECLINED.get(form["type"], _DECLINED["signup"])
        if decline(asked, form["token"]):
            return redirect_to_own("verify/done", what)
        return _dead_link_page(form["type"])
    body = read_body(_Verification)
    if "token_hash" in body:
        secret: LinkOrCode = OpenedLink(one_time.hash_token(body["token_hash"]))
    else:
        secret = by_code(asked, body.get("email") or body["phone"], body["token"])
    outcome = spend(asked, body["type"], secret, ToProgram())
    if outcome.session is None:
        return jsonify(message=_DONE[body["type"]])
    return JsonResponse(token_response(asked.parts, outcome.session, **outcome.members))


@blueprint.get("/verify/done")
@refuses_by_page
def show_done() -> Response:
    """Show the result to the browser that sent the form of a link, so that reloading sends nothing."""
    what, here = forms.signed_value("done"), request.full_path
    if what == "given_back" and (
        row := waiting.typed_address(current_asked(), request.args.get("typed", ""))
    ):
        shown = address(masked(row.address))
        return page("undone.html", here=here, problem=None, typed=row.id, shown=shown)
    if what in _TOLD:
        return page("told.html", here=here, what=what, said=_TOLD[what])
    # The link of another browser, or an old one.
    return redirect_to_own("sign-in") if latchkey.settings.pages else redirect(latchkey.settings.site_url)


def _page_of_link(query: Mapping[str, str]) -> Response:
    asked = current_asked()
    if query["type"] not in one_time.PURPOSES or one_time.hash_token(query["token"]) is None:
        return _incomplete_link_page(ApiError("validation_failed"))
    link = good_link(asked, query["token"], one_time.PURPOSES[query["type"]])
    if link is None:
        return _dead_link_page(query["type"])
    target = _target(query, targets.target_of(asked, link))
    if link.purpose == "undo":
        return _undo_page(query, link, target)
    application, next_page = redirects.url_and_page_of(target)
    elsewhere = waiting.is_elsewhere(asked, link)
    return page(
        "link.html",
        form_target=application,
        next_page=next_page,
        target=target,
        query=query,
        link=link,
        can_be_declined=declining.is_offered(asked, link),
        elsewhere=elsewhere,
        code=waiting.code_elsewhere(asked, link, query["token"]) if elsewhere and link.browser_hash else None,
    )


def _undo_page(query: Mapping[str, str], link: "queries.SelectLink", target: str) -> Response:
    """Show what taking the account back removes. After a form without the right factor, ask for it."""
    asked = current_asked()
    token, is_asked = query["token"], request.method == "POST"
    is_back = undo.comes_back(asked.db, link)
    challenge = undo.challenge(asked, token) if is_asked else None
    return page(
        "undo.html",
        form_target=redirects.url_and_page_of(target)[0],
        target=target,
        query=query,
        link=link,
        comes_back=is_back,
        undone=undo.list_undone(asked.db, link, is_back=is_back),
        kept=_kept(),
        needs_factor=bool(undo.asked_factors(asked, token)),
        is_asked=is_asked,
        challenge=challenge,
        script=challenge is not None,
        status=403 if is_asked else 200,
    )


def _kept() -> set[str]:
    return set(request.form.getlist("shown")) - set(request.form.getlist("remove"))


def _dead_link_page(link_type: str) -> Response:
    return page("link_dead.html", status=403, type=link_type)


def _incomplete_link_page(error: ApiError) -> Response:
    g.refused_because = error.error_code
    return page("link_incomplete.html", status=error.status)


def _is_program() -> bool:
    names = {name.lower() for name, _ in request.headers}
    if "text/html" in request.headers.get("Accept", "").lower() or names & _BROWSER_HEADERS:
        return False
    return not _PREVIEW_BOTS.search(request.headers.get("User-Agent", ""))


def _spend_and_redirect(query: Mapping[str, str]) -> Response:
    """Spend a link, and redirect to its target, or show the result."""
    link_type = query["type"]
    if link_type == "undo":
        return _take_back(query)
    try:
        outcome = spend(
            current_asked(),
            link_type,
            OpenedLink(one_time.hash_token(query["token"])),
            ToBrowser(
                redirect_to=query.get("redirect_to"),
                is_shown=request.method == "POST",
                is_same=query.get("action") == "same",
            ),
        )
    except ApiError as error:
        return _refused(query, error)
    target, changes = _target(query, outcome.redirect_to), link_type == "email_change"
    if outcome.is_elsewhere and outcome.session:
        return _redirect_elsewhere(outcome, outcome.session, target)
    # In another browser, the page that requested the change would ask for a sign-in.
    if changes and latchkey.redirects.is_own_page(target) and browser_sessions.resume() is None:
        return redirect_to_own("verify/done", "confirmed")
    if link_type in _DONE:
        ending = FlowEnd(target, has_challenge=outcome.has_challenge)
        return redirects.redirect_done(ending, link_type, _DONE[link_type])
    return redirects.redirect_signed_in(target, outcome, link_type)


def _take_back(query: Mapping[str, str]) -> Response:
    asked, answer = current_asked(), undo.Answer(query.get("factor_code", ""))
    try:
        if "challenge_id" in query:
            form = check(form_schemas.CredentialForm, dict(query))
            answer = undo.verify(asked, query["token"], check(factor_schemas.PasskeyResponse, form))
        email = undo.take_back(asked, query["token"], answer, _kept())
    except ApiError as error:
        return _page_of_link(query) if error.error_code in _WRONG_FACTOR else _refused(query, error)
    target = _target(query, None)
    if not latchkey.redirects.is_own_page(target):
        return redirects.redirect_done(FlowEnd(target), "undo", _DONE["undo"])
    if email is None:
        return redirect_to_own("verify/done", "undone")
    address_id = waiting.keep_address(asked, email, **cookies.bind_to_browser(), has_asked=False)
    return redirect_to_own(with_query("verify/done", {"typed": address_id}), "given_back")


def _redirect_elsewhere(outcome: Outcome, session: IssuedSession, target: str) -> Response:
    """Sign this browser in without the application, which waits in the browser that requested the link."""
    to, done = redirects.entrance(target), redirects.done_of(outcome)
    path = "sign-in" if to.next else "sign-in/here"
    if outcome.purpose == "recovery" or done:
        path = "new-password"
    return redirects.redirect_with_cookie(to.own_url(path), session, done=done)


def _refused(query: Mapping[str, str], error: ApiError) -> Response:
    # The row of a dead link may remain. Its own target counts only with a challenge: then the application has
    # named it.
    link = queries.select_link(latchkey.db, token_hash=one_time.hash_token(query["token"]), id=None)
    has_challenge = link is not None and link.code_challenge is not None
    target = _target(query, link.redirect_to if link and has_challenge else None)
    leads_to_password = query["type"] in targets.TO_PASSWORD or redirects.is_password_page(target)
    if not latchkey.redirects.is_own_page(target) or not leads_to_password:
        ending = FlowEnd(target, has_challenge=has_challenge)
        return redirects.redirect_with_error(ending, "access_denied", error)
    # In a signed-in browser, that page would ask for another user's password.
    if error.error_code != "otp_expired":
        ending = FlowEnd(f"{latchkey.settings.base_url}/sign-in")
        return redirects.redirect_with_error(ending, "access_denied", error)
    g.refused_because = error.error_code
    return _dead_link_page(query["type"])


def _target(query: Mapping[str, str], requested: str | None) -> str:
    """Return the target of the link, or of the request that sent it, if allowed, else the site's URL."""
    return latchkey.redirects.checked(query.get("redirect_to") or requested)
