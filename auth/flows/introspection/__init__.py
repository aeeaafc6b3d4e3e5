"""POST /introspect: the current state of a token (RFC 7662)."""
