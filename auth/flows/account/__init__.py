"""The caller's own profile, identities, keys and applications."""
