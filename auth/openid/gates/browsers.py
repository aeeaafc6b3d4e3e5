"""What browsers have of a gate: two cookies for its host, and the addresses on it.

A page of a sibling host can send them along (SameSite does not separate hosts of one site), but with the
prefix `__Host-` none can set them.
"""

import base64
import binascii
import re
from urllib.parse import urlsplit

from flask import Response, request

from auth.core import promises
from auth.core.tokens import one_time
from auth.core.tokens.derived_keys import CannotOpen
from auth.web.context import latchkey

SESSION, FLOW = "latchkey-gate", "latchkey-gate-flow"
_PREFIX = "__Host-"
_OURS = {prefix + name for prefix in (_PREFIX, "") for name in (SESSION, FLOW)}
# Seconds for which browsers keep the cookie at most. The session ends earlier.
_LONGEST = 400 * promises.DAY
# What a browser sends in a request line. It drops TAB, and takes // and /\ for another host.
_PATH = re.compile(r"/(?!/)[!-\[\]-~]*")
# Longer paths are not kept: the URL of a flow has it sealed.
_LONGEST_PATH = 2000
_OF_SERVICE = "/.latchkey/"


def read_cookies(host: str) -> tuple[str, str, str]:
    """Return the origin that the cookie of a gate is for, which decides with the host, its value, and the
    other cookies. Only one with https has the prefix.
    """
    own, others = {}, []
    for pair in request.environ.get("HTTP_COOKIE", "").split(";"):
        # Nothing else is space to a browser: a sibling host may set the cookie `\xa0__Host-latchkey-gate`.
        name, _, value = pair.strip(" \t").partition("=")
        if name in _OURS:
            own[name] = value
        elif name:
            others.append(pair.strip(" \t"))
    value = own.get(_PREFIX + SESSION)
    origin = f"http://{host}" if value is None else f"https://{host}"
    return origin, own.get(SESSION, "") if value is None else value, "; ".join(others)


def sent(gate_origin: str, name: str) -> str:
    return request.cookies.get(_name(gate_origin, name), "")


def remember(response: Response, gate_origin: str, name: str, value: str) -> None:
    """Set a cookie for the host of the gate alone; with an empty value, delete it."""
    longest = promises.FLOW_LIFETIME if name == FLOW else _LONGEST
    response.set_cookie(
        _name(gate_origin, name),
        value,
        max_age=longest if value else 0,
        httponly=True,
        secure=gate_origin.startswith("https:"),
        samesite="Lax",
    )


def own_path(sent_path: str) -> str:
    """Return a path with its query if a gate may lead there, else `/`."""
    is_good = _PATH.fullmatch(sent_path) and len(sent_path) <= _LONGEST_PATH
    return sent_path if is_good and not sent_path.startswith(_OF_SERVICE) else "/"


def url_of(gate_origin: str, path: str) -> str:
    """Return the absolute URL of a path at a gate, which leads nowhere else."""
    url = gate_origin + own_path(path)
    parts = urlsplit(url)
    return url if f"{parts.scheme}://{parts.netloc}" == gate_origin else f"{gate_origin}/"


def seal_state(gate_id: str, flow: str, path: str) -> str:
    """Return the `state` of a flow: its path, and the cookie that it is bound to."""
    members = {"flow": _digest(flow), "path": path}
    return base64.urlsafe_b64encode(latchkey.sealer.seal_json(members, _row(gate_id))).rstrip(b"=").decode()


def open_state(gate_id: str, state: str, flow: str) -> tuple[str | None, bool]:
    """Return the path of a `state`, None if it is not of this gate, and whether it is of this flow."""
    try:
        sealed = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
        members = latchkey.sealer.open_json(sealed, _row(gate_id))
    except (binascii.Error, ValueError, CannotOpen):
        return None, False
    return members["path"], bool(flow) and members["flow"] == _digest(flow)


def _name(gate_origin: str, name: str) -> str:
    # The prefix needs TLS.
    return _PREFIX + name if gate_origin.startswith("https:") else name


def _row(gate_id: str) -> str:
    return f"gate {gate_id}"


def _digest(flow: str) -> str | None:
    digest = one_time.hash_token(flow)
    return digest.hex() if digest else None
