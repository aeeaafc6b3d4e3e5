"""Signing in with OAuth and OpenID providers."""
