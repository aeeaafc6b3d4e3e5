"""Requests of devices: a user enters the code of one, and decides about its application.

A stranger may send a user the code of the stranger's own device. So the user signs in first, needs a proof of
the last 15 minutes, and always decides, even about an application that was allowed before.
"""

from typing import Literal, NamedTuple

from auth.core import constants
from auth.extensions.openid import consent, memberships
from auth.flows import verdicts
from auth.flows.facts import PersonFacts
from auth.flows.sign_in.reauthentication import add, admit_caller
from auth.rules import devices
from auth.rules.consent import Lack, organization_of
from auth.web import Level, limits
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Runner, acts, queries

WANTED = add("device")


class DeviceRequest(NamedTuple):
    """The rows of a request and its client, and what the user lacks to use the client."""

    request: "queries.SelectDeviceRequest"
    client: "queries.SelectClient"
    lack: Lack | None


def enter(asked: Asked, code: str) -> str:
    """Bind the request that waits for a code to this session. Return its id, or count and refuse the code."""
    macs = asked.parts.user_codes.macs("", code.upper())
    if not macs:
        raise ApiError("device.otp_expired")
    user_id, session_id = asked.caller.user_id, asked.caller.session_id
    network, most = asked.client["network"], constants.WRONG_CODES_A_DAY["device"]
    with acts.begin(asked.db) as act:
        request = queries.select_user_code(act, macs=macs)
        tallied = verdicts.limits_of_code(act, "device", user_id, network, user_id=user_id)
        verdict = act.record_verdict(tallied, is_right=_is_open(asked, request))
        act.lock_users([user_id])
        act.lock_request(request and request.id)
        request = act.read(queries.select_user_code, macs=macs)
        entered = request if verdict.refused_for is None and _is_open(asked, request) else None
        if entered:
            queries.bind_oauth_request(act, id=entered.id, user_id=user_id, session_id=session_id)
    asked.noted.note(user_id=user_id, tries=verdict.count, of=most)
    if verdict.refused_for is not None:
        asked.noted.add_window(limits.LimitWindow(most, 0, verdict.refused_for))
        raise limits.refusal("over_request_rate_limit", verdict.refused_for)
    return found(entered, "device.otp_expired").id


def find(asked: Asked, on: Runner, id: str, person: "PersonFacts | None") -> DeviceRequest:
    """Return a request that waits for the decision of the caller, who entered its code in this session."""
    row = queries.select_device_request(on, id=id)
    client = row and queries.select_client(on, id=row.client_id)
    if row is None or client is None or person is None or row.user_id != asked.caller.user_id:
        raise ApiError("oauth_authorization_not_found")
    if not _is_open(asked, row):
        raise ApiError("oauth_authorization_not_found")
    return DeviceRequest(row, client, consent.lack_of(row, client, person))


def decide(asked: Asked, id: str, action: str, organization: str) -> Literal["approved", "denied"]:
    """Record the caller's decision about a request, and return it.

    Refuse without an organization that the request needs. A client that the user may not use is denied.
    """
    request = found(queries.find_device_request(asked.db, id=id), "oauth_authorization_not_found")
    with acts.begin(asked.db) as act:
        act.share_client(request.client_id)
        act.lock_users([asked.caller.user_id])
        act.lock_request(id)
        person = admit_caller(asked, act, WANTED, level=Level.AAL2)
        row, client, lack = find(asked, act, id, person)
        is_allowed = action == "approve" and lack is None
        offer = memberships.offer_of(row, client, person, organization)
        chosen = organization_of(offer) if offer else None
        if is_allowed and offer and chosen is None:
            raise ApiError("validation_failed", "organization: must be one that counts")
        if is_allowed:
            consent.add_grant(asked, act, person, row, client)
        decision: Literal["approved", "denied"] = "approved" if is_allowed else "denied"
        queries.decide_device_request(act, id=id, decision=decision, organization_id=chosen)
    return decision


def _is_open(asked: Asked, row: "queries.SelectUserCode | queries.SelectDeviceRequest | None") -> bool:
    """Whether a request waits for its code, or for the decision of this session."""
    return row is not None and devices.is_open_to(
        asked.caller.session_id,
        entered_in=row.session_id,
        is_decided=row.decision is not None,
        expires_at=row.code_expires_at,
        now=row.now,
    )
