"""GET /dev/inbox: the messages that development shows instead of sending them."""
