"""The outbox: SQL statements write messages, and a process sends them."""
