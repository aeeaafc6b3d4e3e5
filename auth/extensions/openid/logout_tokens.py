"""Notifies applications that a user's session has ended (OpenID Connect Back-Channel Logout 1.0)."""

import functools
import json
from dataclasses import dataclass
from urllib.parse import urlencode

from auth.core.constants import HTTP_TIMEOUT
from auth.core.keys.key_ring import KeyRing
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.net import webhook_urls
from auth.core.sender import RefusedByServer, RenderedMessage, Sender, TryLater, one_line
from auth.core.settings import Settings
from auth.core.tokens.client_tokens import ClientTokens, sid_of
from auth.core.tokens.derived_keys import Sealer
from auth.delivery.senders import http_post
from sql import Database, queries

CHANNEL = "logout"
_ACCEPTED = (200, 204)
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(eq=False, repr=False)
class LogoutSender(Sender):
    settings: Settings
    db: Database
    sealer: Sealer

    @staticmethod
    def compose(row: "queries.ClaimMessage") -> RenderedMessage:
        return RenderedMessage(row.id, row.kind, row.created_at, "", json.dumps(row.variables))

    def send(self, recipient: str, message: RenderedMessage) -> str:
        """Post a new token to an application, and return its reply. Raises `psycopg2.Error` too."""
        self._key_ring.refresh()
        tokens = ClientTokens(self.settings, self._key_ring.access_tokens, OpenIdKeys(self.db, self.sealer))
        session = json.loads(message.text)
        claims = {
            "sub": session["user_id"],
            "aud": session["client_id"],
            "sid": sid_of(session["session_id"]),
        }
        # Applications refuse old tokens and repeated ones.
        now = queries.select_time(self.db).seconds
        token = tokens.logout_token(claims, issued_at=now, algorithm=session["algorithm"])
        allows = webhook_urls.allowed_addresses(recipient, self.settings.webhook_private_networks)
        body = urlencode({"logout_token": token}).encode()
        try:
            response = http_post.post(recipient, body, _HEADERS, timeout=HTTP_TIMEOUT, allows=allows)
        except TryLater as failure:
            # One application is down, not the channel, so `is_down` stays false.
            raise TryLater(str(failure)) from failure
        reply = one_line(f"{response.status_line} {response.body.decode(errors='replace')}", token)
        if response.status in _ACCEPTED:
            return reply
        # The application understood the token, but could not end its session (section 2.8).
        if response.status == 400:
            raise RefusedByServer(reply)
        raise TryLater(reply, retry_after=response.retry_after)

    @functools.cached_property
    def _key_ring(self) -> KeyRing:
        return KeyRing(self.settings)
