"""SMS, by Twilio or by an endpoint of the deployment's own."""

import json
from urllib.parse import urlencode

from auth.delivery import http, signatures
from auth.delivery.messages import Message
from auth.delivery.senders import Refused, Sender, TryLater, one_line

# What says that this message is at fault, and not the server or we.
_REFUSALS = {400, 422}


class TwilioSender(Sender):
    """Sends by Twilio's API, or one that is like it."""

    def __init__(self, api_url: str, account_sid: str, auth_token: str, sender: str, *, timeout: float = http.TIMEOUT) -> None:
        self._url = f"{api_url.rstrip('/')}/2010-04-01/Accounts/{account_sid}/Messages.json"
        self._credentials = (account_sid, auth_token)
        self._timeout = timeout
        # A messaging service, which picks a number for each country, has an id like a number's.
        self._sender = {"MessagingServiceSid" if sender.startswith("MG") else "From": sender}

    def send(self, recipient: str, message: Message) -> str:
        """Send one SMS, and return Twilio's id for it."""
        body = urlencode({"To": recipient, "Body": message.text.strip(), **self._sender}).encode()
        answer = http.post(self._url, body, {"Content-Type": "application/x-www-form-urlencoded"}, self._credentials, timeout=self._timeout)
        told = _json_object(answer.body)
        # The answer repeats the text with the code: only these parts of it are kept.
        if answer.is_success:
            return one_line(f"{answer.status} {told.get('sid', '')} {told.get('status', '')}", message.code)
        raise _failure(answer, one_line(f"{told.get('code', '')} {told.get('message', '')}", message.code))


class WebhookSender(Sender):
    """Posts `{"to", "message"}` to an endpoint that sends it on, signed as Standard Webhooks says."""

    def __init__(self, url: str, secret: str, *, timeout: float = http.TIMEOUT) -> None:
        self._url = url
        self._secret = secret
        self._timeout = timeout

    def send(self, recipient: str, message: Message) -> str:
        """Hand over one SMS. Its id stays the same when it is tried again, so that the endpoint can tell."""
        body = json.dumps({"to": recipient, "message": message.text.strip()}, ensure_ascii=False)
        answer = http.post(self._url, body.encode(), signatures.headers(message.id, body, [self._secret]), timeout=self._timeout)
        if answer.is_success:
            return answer.status_line
        raise _failure(answer)


def _failure(answer: http.Answer, told: str = "") -> Refused | TryLater:
    reason = f"{answer.status_line} {told}".strip()
    if answer.status in _REFUSALS:
        return Refused(reason)
    return TryLater(reason, seconds=answer.seconds, is_down=True)


def _json_object(body: bytes) -> dict[str, object]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
