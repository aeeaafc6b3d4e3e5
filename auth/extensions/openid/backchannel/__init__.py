"""Messages to applications without a browser."""
