"""Tokens of a provider's widget, which its server verifies: Turnstile, hCaptcha and others of their form."""

import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from auth.core.logs import ThrottledLog
from auth.core.net import webhook_urls
from auth.core.sender import TryLater
from auth.delivery.senders import http_post
from auth.web.application import FORM
from auth.web.asked import Asked
from auth.web.errors import ApiError, unavailable

URLS = {
    "turnstile": "https://challenges.cloudflare.com/turnstile/v0/siteverify",
    "hcaptcha": "https://api.hcaptcha.com/siteverify",
}
# The form field with the token, if the widget does not let us choose its name.
FIELDS: Mapping[str, str] = {"hcaptcha": "h-captcha-response"}
_TIMEOUT = 5.0  # seconds
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# These errors are about our settings or the provider, not about the user.
_NOT_THE_USERS = re.compile(r".*secret.*|.*sitekey.*|bad-request|internal-error")
# Per worker: a slow provider must not occupy all requests.
_semaphore = threading.BoundedSemaphore(50)
_failed = ThrottledLog("captcha_failed")


def problem_of(asked: Asked, token: str) -> str | None:
    """Return the error codes of a token, or None if it is valid. Refuse if the provider does not respond."""
    answer = _answer(asked, token)
    if answer.get("success") is not True:
        listed = answer.get("error-codes")
        listed = listed if isinstance(listed, list) else []
        codes = [code for code in listed if isinstance(code, str) and _CODE.fullmatch(code)][:8]
        if any(_NOT_THE_USERS.fullmatch(code) for code in codes):
            raise _unavailable(asked, ", ".join(codes))
        return ", ".join(codes) or "invalid-input-response"
    settings, hostname = asked.settings, answer.get("hostname")
    own_hosts = [urlsplit(url).hostname for url in (settings.base_url, settings.site_url)]
    # Turnstile and hCaptcha always send the page's host. Other providers may not.
    if hostname in own_hosts or (hostname is None and settings.captcha not in URLS):
        return None
    return "hostname-mismatch"


def _answer(asked: Asked, token: str) -> dict[str, Any]:
    settings = asked.settings
    url = URLS.get(settings.captcha, settings.captcha)
    form = {"secret": settings.captcha_secret, "response": token}
    if settings.captcha_remote_ip:
        form["remoteip"] = asked.client["ip"] or ""
    allows = webhook_urls.allowed_for_operator(url, settings.webhook_private_networks)
    if not _semaphore.acquire(blocking=False):
        raise _unavailable(asked, "too many wait for its answer")
    try:
        body, headers = urlencode(form).encode(), {"Content-Type": FORM}
        response = http_post.post(url, body, headers, timeout=_TIMEOUT, allows=allows)
    except TryLater as failure:
        raise _unavailable(asked, failure.reason) from failure
    finally:
        _semaphore.release()
    if response.status >= 500:
        raise _unavailable(asked, f"it answered {response.status}")
    if not (answer := response.members()):
        raise _unavailable(asked, "its answer is not a JSON object")
    return answer


def _unavailable(asked: Asked, reason: str) -> ApiError:
    _failed.count(captcha=asked.settings.captcha, reason=reason)
    return unavailable("provider.service_unavailable")
