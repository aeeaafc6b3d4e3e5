"""Access tokens for SMTP, with the client credentials grant (RFC 6749, section 4.4)."""

import base64
import re
import threading
import time
import uuid
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from auth.core.providers import said
from auth.core.sender import TryLater
from auth.core.settings import Settings
from auth.delivery.senders import http_post

_MARGIN = 60  # seconds; a token is not used this shortly before its end
_ASSERTION_LIFETIME = 240
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
# In base64, a token of this length fits into a line of AUTH (RFC 4954, section 4).
_TOKEN = re.compile(r"[!-~]{1,8192}")


class SmtpTokens:
    """The access token that the threads of a sender share."""

    def __init__(self, settings: Settings, timeout: float) -> None:
        self.url, self._timeout = settings.smtp_token_url, timeout
        self._client_id, self._scope = settings.smtp_client_id, settings.smtp_scope
        self._secret, self._key = settings.smtp_client_secret, settings.smtp_client_key
        self._lock = threading.Lock()
        self._token = ""
        self._good_until = 0.0

    def get(self, refused: str = "") -> str:
        """Return a token, but not the one that the mail server has refused. Raises `TryLater`."""
        with self._lock:
            asked_at = time.monotonic()
            if self._token == refused or asked_at >= self._good_until:
                self._token = ""
                self._token, lifetime = self._fetch()
                self._good_until = asked_at + lifetime - _MARGIN
            return self._token

    def _fetch(self) -> tuple[str, int]:
        """Return a new token and its lifetime in seconds."""
        form = {"grant_type": "client_credentials", "client_id": self._client_id}
        if self._scope:
            form["scope"] = self._scope
        try:
            credentials = self._assertion() if self._key else {"client_secret": self._secret}
            body = urlencode(form | credentials).encode()
            response = http_post.ask(self.url, body, _HEADERS, timeout=self._timeout)
        except TryLater as failure:
            raise self._failure(failure.reason) from failure
        except ValueError as error:
            raise self._failure(f"AUTH_SMTP_CLIENT_KEY: {error}") from None
        answer = response.members()
        token, lifetime = answer.get("access_token"), str(answer.get("expires_in"))
        if response.status == 200 and isinstance(token, str) and _TOKEN.fullmatch(token):
            # Without a lifetime, each connection fetches a token. Some servers send digits as text.
            return token, int(lifetime) if re.fullmatch(r"[0-9]{1,9}", lifetime) else 0
        reason = said(answer.get("error"), answer.get("error_description"), *credentials.values())
        if response.status == 200:
            reason = reason or "the answer has no access_token that can be used"
        text = f"{response.status_line}: {reason}" if reason else response.status_line
        raise self._failure(text, response.retry_after)

    def _failure(self, reason: str, retry_after: float = 0.0) -> TryLater:
        host = urlsplit(self.url).netloc
        text = f"can't get an access token from {host}: {reason}"
        return TryLater(text, "token", retry_after=retry_after, is_down=True)

    def _assertion(self) -> dict[str, str]:
        """Return the proof of `private_key_jwt` (RFC 7523, section 2.2). Raises `ValueError`."""
        from joserfc import jwk, jwt

        key, certificate = read_client_key(self._key)
        header = {"alg": "RS256"}
        if certificate:
            # Microsoft finds the key by this header.
            thumbprint = base64.urlsafe_b64encode(certificate.fingerprint(hashes.SHA256()))
            header = {"alg": "PS256", "x5t#S256": thumbprint.decode().rstrip("=")}
        now = int(time.time())
        claims = {"iss": self._client_id, "sub": self._client_id, "aud": self.url, "jti": str(uuid.uuid4())}
        times = {"iat": now, "nbf": now, "exp": now + _ASSERTION_LIFETIME}
        assertion = jwt.encode(header, claims | times, jwk.RSAKey.import_key(key), algorithms=[header["alg"]])
        return {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": assertion}


def read_client_key(path: Path | None) -> tuple[RSAPrivateKey, x509.Certificate | None]:
    """Return the key of a client and its certificate, if the file has one. Raises `ValueError`."""
    problem = "must be the path of a PEM file with an RSA private key without a passphrase"
    try:
        pem = path.read_bytes() if path else b""
        key = serialization.load_pem_private_key(pem, None)
        certificate = x509.load_pem_x509_certificate(pem) if b"BEGIN CERTIFICATE" in pem else None
    except OSError as error:
        raise ValueError(f"{error.strerror}. {problem[0].upper()}{problem[1:]}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(problem) from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError(problem)
    if certificate and certificate.public_key() != key.public_key():
        raise ValueError("has the certificate of another key. Put that of the key there, or none")
    return key, certificate
