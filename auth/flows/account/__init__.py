"""Users about themselves: their profile, identities, keys and applications."""
