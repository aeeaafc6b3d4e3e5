"""Lets `latchkey doctor` find out what is in front of the service.

The doctor stores the hash of a nonce in the database, and sends GET /health through the public URL with the
nonce and a forged address. The service records in the database how the request arrived, so that only the
doctor can read it.
"""

HEADER = "X-Latchkey-Probe"
FORGED_ADDRESS = "192.0.2.77"  # RFC 5737: reserved for documentation
