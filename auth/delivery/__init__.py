"""The outbox: SQL statements write messages, and the delivery process sends them."""
