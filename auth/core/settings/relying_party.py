"""The relying party of WebAuthn: its id, a domain, and the origins of the pages that use it."""

import re
from urllib.parse import urlsplit

from auth.core.net import networks, redirects
from auth.core.settings.values import Values, urls
from auth.core.settings.values.validators import matching, one_origin

_DOMAIN = r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
_WEB = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]+)(:[0-9]{1,5})?")
# An Android application's origin contains the hash of its signing key.
_ANDROID = re.compile(r"android:apk-key-hash:[A-Za-z0-9_-]{43}")

apple_app = matching(
    r"[A-Z0-9]{10}\.[A-Za-z0-9.-]{1,155}", "must be a team and a bundle, such as ABCDE12345.com.example.app"
)
android_app = matching(
    r"(?a)[A-Za-z]\w*(\.[A-Za-z]\w*)+/[0-9A-F]{2}(:[0-9A-F]{2}){31}",
    "must be a package, / and the SHA-256 of a certificate, such as com.example.app/14:6D:E9:…",
)
rp_id = matching(_DOMAIN, "must be a lower-case domain such as example.com, without a scheme or port")


def origin(value: str) -> None:
    match = _WEB.fullmatch(value)
    problem = "must be https origins such as https://app.example.com, without a path"
    is_secure = match and (match["scheme"] == "https" or networks.is_loopback(match["host"]))
    if is_secure:
        one_origin(value, _WEB.pattern, problem)
    elif not _ANDROID.fullmatch(value):
        raise ValueError(problem)


def defaults(values: Values) -> Values:
    """Return the id, the host of `base_url`, and the origins, unless they are set."""
    origins = [urls.origin(redirects.origin(values[name])) for name in ("base_url", "site_url")]
    return {
        "webauthn_rp_id": values["webauthn_rp_id"] or _host(values["base_url"]),
        "webauthn_origins": values["webauthn_origins"] or tuple(dict.fromkeys(origins)),
    }


def problem_of_site(site_url: str, rp_id: str) -> str | None:
    """Return why the pages of an application cannot use passkeys of a relying party, or None."""
    host = _host(site_url)
    if not re.fullmatch(_DOMAIN, rp_id):
        return f"{rp_id} is not a domain"
    if f".{host}".endswith(f".{rp_id}"):
        return None
    return f"{host}, the host of AUTH_SITE_URL, is neither {rp_id} nor a subdomain of it"


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()
