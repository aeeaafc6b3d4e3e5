"""SMS by Twilio, or by an endpoint of the operator."""

from urllib.parse import urlencode

from auth.core import constants
from auth.core.sender import RefusedByServer, RenderedMessage, Sender, TryLater
from auth.core.settings import Settings
from auth.delivery.senders import http_post

# Statuses that blame the message, not the account.
_REFUSALS = {400, 422}


class TwilioSender(Sender):
    def __init__(self, settings: Settings, timeout: float = constants.HTTP_TIMEOUT) -> None:
        self._timeout = timeout
        self._url, self._from = settings.twilio_api_url.rstrip("/"), settings.twilio_from
        self._account = settings.twilio_account_sid, settings.twilio_auth_token

    def send(self, recipient: str, message: RenderedMessage) -> str:
        url = f"{self._url}/2010-04-01/Accounts/{self._account[0]}/Messages.json"
        # A messaging service, whose id begins with MG, picks a number for each country.
        sender = "MessagingServiceSid" if self._from.startswith("MG") else "From"
        body = urlencode({"To": recipient, "Body": message.text.strip(), sender: self._from}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        response = http_post.post(url, body, headers, self._account, timeout=self._timeout)
        # The response repeats the text with its code, so only these members are kept.
        names = ("sid", "status") if response.is_success else ("code", "message")
        members = response.members()
        explanation = " ".join(str(members.get(name, "")) for name in names)
        if response.is_success:
            return message.masked(f"{response.status} {explanation}")
        reason = f"{response.status_line} {explanation}".strip()
        if response.status in _REFUSALS:
            raise RefusedByServer(reason)
        raise TryLater(reason, retry_after=response.retry_after, is_down=True)
