"""Gates: sign-in for tools that have none, asked by the proxy in front of them (forward authentication)."""
