"""Signing in with OAuth and OpenID providers."""


class ProviderError(Exception):
    """The provider failed, or its response is not valid. The message is for the log."""


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached now."""
