"""SMS by Twilio, or by an endpoint of the operator."""

from dataclasses import dataclass
from urllib.parse import urlencode

from auth.core import promises
from auth.core.settings import Settings
from auth.delivery.senders import http_post
from auth.delivery.senders.sender import Message, Refused, Sender, TryLater

# Statuses that blame the message, not the account.
_REFUSALS = {400, 422}


@dataclass(eq=False, repr=False)
class TwilioSender(Sender):
    """No repr: it would show secrets."""

    api_url: str
    account_sid: str
    auth_token: str
    sender: str
    timeout: float = promises.HTTP_TIMEOUT

    @classmethod
    def of(cls, settings: Settings) -> "TwilioSender":
        account = settings.twilio_account_sid, settings.twilio_auth_token
        return cls(settings.twilio_api_url, *account, settings.twilio_from)

    def send(self, recipient: str, message: Message) -> str:
        url = f"{self.api_url.rstrip('/')}/2010-04-01/Accounts/{self.account_sid}/Messages.json"
        # A messaging service, whose id begins with MG, picks a number for each country.
        sender = "MessagingServiceSid" if self.sender.startswith("MG") else "From"
        body = urlencode({"To": recipient, "Body": message.text.strip(), sender: self.sender}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        credentials = self.account_sid, self.auth_token
        response = http_post.post(url, body, headers, credentials, timeout=self.timeout)
        # The response repeats the text with its code, so only these members are kept.
        names = ("sid", "status") if response.is_success else ("code", "message")
        members = response.members()
        explanation = " ".join(str(members.get(name, "")) for name in names)
        if response.is_success:
            return message.masked(f"{response.status} {explanation}")
        reason = f"{response.status_line} {explanation}".strip()
        if response.status in _REFUSALS:
            raise Refused(reason)
        raise TryLater(reason, seconds=response.seconds, is_down=True)
