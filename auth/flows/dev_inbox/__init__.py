"""GET /dev/inbox: messages that are shown instead of sent, for development."""
