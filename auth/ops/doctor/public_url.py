"""Checks of the public URL, the proxies in front of it, and the allowed targets of links."""

import secrets
import ssl
import time
from urllib.parse import urlsplit

import requests

import auth
from auth.core.checks import NOT_PUBLIC, Context, Failure, NotChecked, check
from auth.core.net import probes
from auth.core.net.bounded_http import BoundedSession
from auth.core.net.networks import is_loopback
from auth.core.net.sockets import NO_ANSWER, Deadline, tls, why
from auth.core.settings import Settings, running
from auth.core.tokens import one_time
from sql import queries

_LEAST_DAYS = 14  # until a certificate expires
_PROBE_LIFETIME = 30
# Remedies by the response of GET /health. The first match counts.
_HEALTH_REMEDIES = {
    "hash": "See docs/monitoring.md, and run: systemctl restart latchkey",
    "delivery": "Fix what journalctl -u latchkey says of the delivery process, which restarts by itself.",
    **dict.fromkeys(
        ("nothing can be written", "wait for a lock"), "Fix what the other ✗ say. Nothing needs a restart."
    ),
    "": "Fix what journalctl -u latchkey says. If it says nothing, run: systemctl restart latchkey",
}


@check("public-url", "The public URL reaches this service")
def _public_url(context: Context) -> Failure | None:
    """Ask GET /health. Raises `NotRunningError`, because a proxy would answer for a stopped service."""
    base_url = context.settings.base_url
    remedy = f"If {base_url} is the public URL, fix DNS, the proxy or the service; else set AUTH_BASE_URL."
    if not running.is_serving(context.settings.state_dir):
        remedy = "Start the service, which does not run with this state directory: systemctl start latchkey"
    if urlsplit(base_url).scheme != "https" and not context.settings.is_local:
        return Failure(
            f"{base_url} is not https: passwords and tokens can be read in transit.",
            f"Serve it by https, and set: AUTH_BASE_URL=https://{urlsplit(base_url).netloc}",
        )
    context.settings.find_database()
    try:
        status, body = _fetch_object(context, f"{base_url}/health")
    except requests.RequestException as error:
        reason = why(error)
        return Failure(f"{base_url} cannot be reached from here: {reason}.", remedy, reason == NO_ANSWER)
    if body.get("service") != "latchkey":
        return Failure(f"{base_url}/health returns {status}, but not from Latchkey.", remedy)
    if status != requests.codes.ok or body.get("status") == "degraded":
        problem = " ".join(str(body.get("msg", "no reason given")).split())
        remedy = next(remedy for sign, remedy in _HEALTH_REMEDIES.items() if sign in problem)
        return Failure(f"{base_url}/health returns {status}: {problem}.", remedy)
    if body.get("version") != auth.__version__:
        return Failure(
            f"{base_url} runs version {body.get('version')}, but this command is {auth.__version__}.",
            "Run: systemctl restart latchkey",
        )
    return None


@check("certificate", "The certificate is valid")
def _certificate(context: Context) -> Failure | None:
    parts = urlsplit(context.settings.base_url)
    if parts.scheme != "https" or not parts.hostname:
        raise NotChecked("AUTH_BASE_URL is not https")
    host = parts.hostname
    try:
        with Deadline(context.seconds_left) as deadline:
            plain = deadline.connect(host, parts.port or 443, context.seconds_left)
            with tls().wrap_socket(plain, server_hostname=host) as connection:
                certificate = connection.getpeercert() or {}
    except ssl.SSLError as error:
        return Failure(
            f"Browsers and applications refuse the certificate of {host}:"
            f" {why(error).removeprefix('TLS: ')}.",
            f"Get a certificate for {host}, for example by: certbot certonly --webroot -d {host}",
        )
    except OSError:
        raise NotChecked("the public URL cannot be reached") from None
    ends_at = ssl.cert_time_to_seconds(str(certificate["notAfter"]))
    days = int((ends_at - time.time()) // 86_400)
    if days >= _LEAST_DAYS:
        return None
    return Failure(
        f"The certificate of {host} expires in {days} days.", "Renew it, for example by: certbot renew"
    )


@check("proxies", "The service sees its clients' addresses")
def _proxies(context: Context) -> Failure | None:
    """Send a request with a forged address through the public URL, and read how it arrived."""
    settings, nonce = context.settings, one_time.new_token()
    token_hash = one_time.hash_token(nonce)
    queries.create_probe(context.db, token_hash=token_hash, lifetime=_PROBE_LIFETIME)
    try:
        headers = {probes.HEADER: nonce, "X-Forwarded-For": probes.FORGED_ADDRESS}
        fetch(context, f"{settings.base_url}/health", headers)
    except requests.RequestException:
        raise NotChecked("the public URL cannot be reached") from None
    finally:
        row = queries.take_probe(context.db, token_hash=token_hash)
    if row is None or row.request is None:
        return Failure(
            f"{settings.base_url} reaches a service with another database.",
            "Set AUTH_BASE_URL to the URL of this service, or DATABASE_URL to the database of that one.",
        )
    return _judge(settings, row.request["forwarded_for"], row.request["scheme"])


def _judge(settings: Settings, forwarded: list[str], scheme: str) -> Failure | None:
    # Proxies append the address of their peer, or discard what the client sent.
    is_kept = probes.FORGED_ADDRESS in forwarded
    hops = len(forwarded) - (forwarded.index(probes.FORGED_ADDRESS) + 1 if is_kept else 0)
    trusted, is_https = settings.trusted_proxies, settings.base_url.startswith("https:")
    if hops != trusted:
        senders = {0: "no proxy sends", 1: "one proxy sends"}.get(hops, f"{hops} proxies send")
        effect = (
            "clients can forge the address that limits count"
            if trusted > hops
            else "all clients share one limit"
        )
        return Failure(
            f"Behind {settings.base_url}, {senders} X-Forwarded-For, but the service trusts {trusted}:"
            f" {effect}.",
            f"Set AUTH_TRUSTED_PROXIES={hops}.",
        )
    if is_https and not hops:
        return Failure(
            "The proxy that terminates TLS does not send X-Forwarded-For, so all clients share one limit.",
            "Have the proxy send X-Forwarded-For and X-Forwarded-Proto, and set AUTH_TRUSTED_PROXIES=1.",
        )
    if is_https and scheme != "https":
        return Failure(
            "The proxy does not send X-Forwarded-Proto, so the service takes requests by https for http.",
            "Have the proxy send the header: X-Forwarded-Proto: https",
        )
    return None


@check("discovery", "Applications find the OpenID provider")
def _discovery(context: Context) -> Failure | None:
    settings = context.settings
    if not settings.oauth_server or not queries.count_clients(context.db).total:
        raise NotChecked("no application signs users in here")
    url = f"{settings.jwt_issuer.rstrip('/')}/.well-known/openid-configuration"
    remedy = f"Have the proxy lead {url} to this service, or set: AUTH_JWT_ISSUER={settings.base_url}"
    try:
        status, body = _fetch_object(context, url)
    except requests.RequestException as error:
        reason = why(error)
        return Failure(f"Applications cannot reach {url}: {reason}.", remedy, reason == NO_ANSWER)
    if "issuer" not in body:
        return Failure(
            f"{url} returns {status}, not the provider's metadata: no application can sign users in.",
            remedy,
        )
    if body["issuer"] != settings.jwt_issuer:
        return Failure(f"{url} names another issuer, so applications refuse it.", remedy)
    return None


@check("redirects", "Links lead to the application")
def _redirects(context: Context) -> Failure | None:
    settings = context.settings
    if settings.is_local:
        return None
    site = urlsplit(settings.site_url)
    if is_loopback(site.hostname or ""):
        return Failure(
            f"Links lead to {settings.site_url}, which is each user's own machine.",
            "Set AUTH_SITE_URL to the URL of your application, such as https://app.example.com.",
        )
    if site.scheme == "http":
        return Failure(
            f"Links send tokens to {settings.site_url} without TLS, so the network can read them.",
            f"Serve your application by https, and set: AUTH_SITE_URL=https://{site.netloc}",
        )
    for pattern in settings.redirect_allow_list:
        if pattern.startswith("http://") and not is_loopback(urlsplit(pattern).hostname or ""):
            return Failure(
                f"Links may send tokens to {pattern} without TLS, so the network can read them.",
                f"In AUTH_REDIRECT_ALLOW_LIST, replace it by: https://{pattern.removeprefix('http://')}",
            )
    return None


@check("test-settings", "No test settings are used")
def _test_settings(context: Context) -> Failure | None:
    settings = context.settings
    if settings.is_local:
        raise NotChecked(NOT_PUBLIC)
    if not settings.rate_limits_enabled:
        return Failure(
            "Rate limits are off, so passwords can be guessed.", "Set AUTH_RATE_LIMITS_ENABLED=true."
        )
    if settings.rate_limit_storage.startswith("memory:"):
        return Failure(
            "Each worker counts requests on its own, so clients get each limit several times.",
            "Set AUTH_RATE_LIMIT_STORAGE=postgresql.",
        )
    return None


def fetch(context: Context, url: str, headers: dict[str, str] | None = None) -> requests.Response:
    """Return the response to a GET. Raises `requests.RequestException`."""
    defaults = {"User-Agent": "latchkey doctor", "X-Request-Id": secrets.token_hex(16)}
    with Deadline(context.seconds_left) as deadline, BoundedSession() as session:
        try:
            return session.request("GET", url, headers=defaults | (headers or {}))
        except requests.RequestException:
            if deadline.has_passed:  # the deadline closes the connection
                raise requests.Timeout from TimeoutError()
            raise


def _fetch_object(context: Context, url: str) -> tuple[int, dict[str, object]]:
    """Return a response's status and its object, empty without one. Raises `requests.RequestException`."""
    response = fetch(context, url)
    try:
        body = response.json()
    except requests.JSONDecodeError:
        body = None
    return response.status_code, body if isinstance(body, dict) else {}


CHECKS = (_public_url, _certificate, _proxies, _discovery, _redirects, _test_settings)
