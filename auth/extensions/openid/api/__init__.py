"""The endpoints of the OpenID provider."""
