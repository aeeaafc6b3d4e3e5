"""The OpenID provider: applications that sign users in here (OpenID Connect Core 1.0, OAuth 2.1)."""
