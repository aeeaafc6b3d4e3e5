"""Settings of hooks: `AUTH_HOOK_<NAME>`, and the secrets that sign its requests."""

import re
from dataclasses import dataclass

from auth.core.settings.values import urls

# GoTrue's name of each hook, as in its requests, by the name of the setting.
NAMES = {
    "before_user_created": "before-user-created",
    "custom_access_token": "customize-access-token",
    "send_email": "send-email",
    "send_sms": "send-sms",
}
_FUNCTION = re.compile(r"pg-functions://postgres/([A-Za-z_]\w{0,62})/([A-Za-z_]\w{0,62})", re.ASCII)


@dataclass(frozen=True, repr=False)
class Hook:
    """A hook of the operator: a URL, or a SQL function. No repr: it would show secrets."""

    name: str
    url: str
    secrets: tuple[str, ...]
    # Whether the hook may be in a private network.
    private_networks: bool

    @property
    def function(self) -> tuple[str, str] | None:
        """The schema and the name of a SQL function."""
        match = _FUNCTION.fullmatch(self.url)
        return (match[1], match[2]) if match else None


def url_or_function(value: str) -> None:
    if value.startswith("pg-functions:"):
        if not _FUNCTION.fullmatch(value):
            raise ValueError("must be pg-functions://postgres/SCHEMA/FUNCTION")
        return
    urls.http_url(value)


def secrets(value: str) -> tuple[str, ...]:
    """Parse secrets in our form, `whsec_…,whsec_…`, or in GoTrue's, `v1,whsec_…|v1,whsec_…`."""
    values = tuple(part.strip() for part in re.split("[,|]", value) if part.strip() not in ("", "v1"))
    try:
        for secret in values:
            urls.webhook_secret(secret)
    except ValueError as error:
        raise ValueError(f"{error}. Make one with latchkey hooks secret") from None
    return values
