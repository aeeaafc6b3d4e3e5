"""SMS by Twilio, or by an endpoint of the operator."""

import json
from urllib.parse import urlencode

from auth.senders import http
from auth.senders.sender import Message, Refused, Sender, TryLater, one_line

# Statuses that blame the message, not the account.
_REFUSALS = {400, 422}


class TwilioSender(Sender):
    def __init__(
        self, api_url: str, account_sid: str, auth_token: str, sender: str, *, timeout: float = http.TIMEOUT
    ) -> None:
        self._url = f"{api_url.rstrip('/')}/2010-04-01/Accounts/{account_sid}/Messages.json"
        self._credentials = (account_sid, auth_token)
        self._timeout = timeout
        # MG: the id of a messaging service, which picks a number for each country.
        self._sender = {"MessagingServiceSid" if sender.startswith("MG") else "From": sender}

    def send(self, recipient: str, message: Message) -> str:
        body = urlencode({"To": recipient, "Body": message.text.strip(), **self._sender}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        response = http.post(self._url, body, headers, self._credentials, timeout=self._timeout)
        # The response repeats the text with the code, so only some members are kept.
        names = ("sid", "status") if response.is_success else ("code", "message")
        try:
            members = json.loads(response.body)
        except (ValueError, RecursionError):
            members = None
        if not isinstance(members, dict):
            members = {}
        explanation = one_line(" ".join(str(members.get(name, "")) for name in names), message.code)
        if response.is_success:
            return one_line(f"{response.status} {explanation}")
        raise _failure(response, explanation)


class WebhookSender(Sender):
    """Posts `{"to", "message"}`, signed as in Standard Webhooks, to an endpoint that sends the SMS."""

    def __init__(self, url: str, secret: str, *, timeout: float = http.TIMEOUT) -> None:
        self._url = url
        self._secret = secret
        self._timeout = timeout

    def send(self, recipient: str, message: Message) -> str:
        body = json.dumps({"to": recipient, "message": message.text.strip()}, ensure_ascii=False)
        headers = http.signed_headers(message.id, body, [self._secret])
        response = http.post(self._url, body.encode(), headers, timeout=self._timeout)
        if response.is_success:
            return response.status_line
        raise _failure(response)


def _failure(response: http.Response, explanation: str = "") -> Refused | TryLater:
    reason = f"{response.status_line} {explanation}".strip()
    if response.status in _REFUSALS:
        return Refused(reason)
    return TryLater(reason, seconds=response.seconds, is_down=True)
