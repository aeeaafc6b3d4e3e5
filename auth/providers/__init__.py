"""Signing in with OAuth and OpenID providers. Authlib speaks the protocol; presets hold what differs."""


class ProviderError(Exception):
    """The provider failed, or its answer is not valid; the text is for the log."""


class ProviderUnavailable(ProviderError):
    """The provider can't be reached now, but perhaps later."""
