"""Access tokens, refresh tokens, one-time links and codes, and the keys behind them."""
