"""Second factors and passkeys: TOTP, recovery codes, WebAuthn."""
