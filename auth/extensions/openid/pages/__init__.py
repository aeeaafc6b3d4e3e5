"""The pages of the OpenID provider."""
