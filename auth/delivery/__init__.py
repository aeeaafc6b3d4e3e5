"""The outbox: what is to be sent was written by the statement that made it true, and is sent from here, outside any request."""
