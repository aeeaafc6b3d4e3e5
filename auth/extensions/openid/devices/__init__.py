"""Signs users in on devices without a browser: they type a code elsewhere (RFC 8628)."""
