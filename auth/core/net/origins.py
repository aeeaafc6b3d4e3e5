"""The web origins whose pages may call this service."""

from urllib.parse import urlsplit

from auth.core.net.networks import is_loopback
from auth.core.net.redirects import InvalidUrl, is_web, parse_origin, parse_pattern
from auth.core.settings import Settings


class Origins:
    """The origins in the settings: our own, and those listed or else those of the applications, whose pages
    receive tokens, use passkeys or ask for consent.

    Without a list, a service on this machine also accepts all origins on this machine.
    """

    def __init__(self, settings: Settings) -> None:
        self._listed, urls = settings.cors_origins, [settings.base_url]
        self._is_local = self._listed is None and settings.is_local
        if self._listed is None:
            urls += [settings.site_url, *settings.redirect_allow_list, settings.oauth_consent_url]
            urls += settings.webauthn_origins
        # Applications on Android have an identifier instead of an origin.
        websites = [urlsplit(url) for url in urls if "://" in url]
        self._patterns = [parse_pattern(f"{url.scheme}://{url.netloc}/**") for url in websites]

    def lists(self, origin: str) -> bool:
        """Whether the operator lists exactly this origin."""
        return origin in (self._listed or ())

    def __contains__(self, origin: str) -> bool:
        if self.lists(origin) or self.lists("*"):
            return True
        try:
            parts = parse_origin(origin)
        except InvalidUrl:
            return False
        is_of_machine = self._is_local and is_web(origin) and is_loopback(parts.hostname or "")
        return is_of_machine or any(pattern.allows(parts) for pattern in self._patterns)
