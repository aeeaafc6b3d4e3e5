"""POST /introspect: what a token is worth now (RFC 7662)."""
