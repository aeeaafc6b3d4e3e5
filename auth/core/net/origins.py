"""The web origins whose pages may call this service."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from auth.core.net.networks import is_loopback
from auth.core.net.redirects import InvalidUrl, is_web, parse_origin, parse_pattern


class Origins:
    """The origins in the settings: our own, and those `listed` or else those of `urls`.

    Without a list, a service on this machine also accepts all origins on this machine.
    """

    def __init__(self, base_url: str, listed: Sequence[str] | None, urls: Sequence[str]) -> None:
        self._listed = listed
        self._is_local = listed is None and is_loopback(urlsplit(base_url).hostname or "")
        named = map(urlsplit, (base_url, *(urls if listed is None else ())))
        self._patterns = [parse_pattern(f"{url.scheme}://{url.netloc}/**") for url in named]

    def lists(self, sent: str) -> bool:
        """Whether the operator lists exactly this origin."""
        return sent in (self._listed or ())

    def __contains__(self, sent: str) -> bool:
        if self.lists(sent) or self.lists("*"):
            return True
        try:
            parts = parse_origin(sent)
        except InvalidUrl:
            return False
        is_of_machine = self._is_local and is_web(sent) and is_loopback(parts.hostname or "")
        return is_of_machine or any(pattern.allows(parts) for pattern in self._patterns)
