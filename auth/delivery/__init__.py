"""The outbox: messages written by SQL statements, and the process that sends them."""
