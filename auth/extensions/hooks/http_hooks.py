"""HTTP hooks: signed requests to the operator's server, whose answer decides (GoTrue's protocol)."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from auth.core import json_bodies
from auth.core.constants import HOOK_TIMEOUT
from auth.core.net import webhook_urls
from auth.core.sender import TryLater, one_line
from auth.core.settings.values.hooks import Hook
from auth.delivery.senders import http_post

# Statuses of servers that are down or overloaded.
_DOWN = {429, 502, 503, 504}


class HookRefused(Exception):
    """The hook answered with an error, whose status and message are for the client."""

    def __init__(self, status: int, message: str, hook: str) -> None:
        self.reason = f"{hook} refused with {status}: {message}"
        super().__init__(one_line(self.reason))
        self.status = status
        self.message = message


class HookFailed(Exception):
    """The hook gave no usable answer; with `is_down`, the next call would also fail.

    `reason` may have several lines, with the whole response of the hook.
    """

    def __init__(self, hook: str, reason: str, *, is_down: bool = False) -> None:
        super().__init__(one_line(f"{hook} failed: {reason}"))
        self.reason = reason
        self.is_down = is_down


def ask(hook: Hook, id: str, payload: Mapping[str, object], timeout: float = HOOK_TIMEOUT) -> dict[str, Any]:
    """Post a payload and return the hook's answer. Raises `HookRefused` or `HookFailed`."""
    body = json.dumps(payload)
    if len(body) > http_post.MOST_BYTES:
        raise HookFailed(hook.name, f"the request has {len(body)} bytes, more than {http_post.MOST_BYTES}")
    headers, allows = http_post.signed_headers(id, body, hook.secrets), allowed_addresses(hook)
    try:
        response = http_post.ask(hook.url, body.encode(), headers, timeout=timeout, allows=allows)
    except TryLater as failure:
        raise HookFailed(hook.name, failure.reason, is_down=True) from failure
    if response.status == 204:
        return {}
    if response.status not in (200, 202):
        reason = f"it answered {response.status}: {_said(response.body)}"
        raise HookFailed(hook.name, reason, is_down=response.status in _DOWN)
    if response.content_type.partition(";")[0].strip().lower() != "application/json":
        raise HookFailed(hook.name, f"its answer is not application/json but {response.content_type!r}")
    return parse(hook.name, response.body)


def allowed_addresses(hook: Hook) -> Callable[[str], bool]:
    """Return a check of the addresses that a call may connect to."""
    return webhook_urls.allowed_for_operator(hook.url, hook.private_networks)


def parse(name: str, body: bytes | str) -> dict[str, Any]:
    """Return the answer in a body. Raises `HookRefused` or `HookFailed`."""
    if len(body) > http_post.MOST_BYTES:
        raise HookFailed(name, f"its answer has more than {http_post.MOST_BYTES} bytes")
    try:
        answer = json.loads(body, object_pairs_hook=json_bodies.without_duplicates)
    except (ValueError, RecursionError, json_bodies.InvalidJson):
        raise HookFailed(name, f"its answer is not JSON, or repeats a member: {_said(body)}") from None
    if not isinstance(answer, dict):
        raise HookFailed(name, f"its answer is not a JSON object: {_said(body)}")
    if answer.get("error") is not None:
        raise refusal(name, answer["error"])
    return answer


def _said(body: bytes | str) -> str:
    return body if isinstance(body, str) else body.decode(errors="replace")


def refusal(name: str, error: object) -> HookRefused | HookFailed:
    """Return the exception for an `error` in a hook's answer. Its status is 500 unless the hook sets one."""
    members = error if isinstance(error, dict) else {}
    status, message = members.get("http_code", 500), members.get("message")
    # With a status of success, or an invalid one, the client would believe that the hook agreed.
    is_status = type(status) is int and 400 <= status <= 599
    if not is_status or not isinstance(message, str) or not one_line(message):
        return HookFailed(name, f"its error is malformed: {json.dumps(error)}")
    return HookRefused(status, message, name)
