"""Signing in with OAuth and OpenID providers. Authlib speaks the protocol; presets hold what differs."""
