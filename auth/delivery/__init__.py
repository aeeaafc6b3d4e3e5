"""The outbox: SQL statements write messages, a process sends them."""
