"""How `latchkey doctor` finds out what is in front of the service.

It sends GET /health through the public URL with a nonce, whose hash it has put into the database, and a
forged address. The service records there how the request arrived, so that only this process can read it.
"""

HEADER = "X-Latchkey-Probe"
FORGED_ADDRESS = "192.0.2.77"  # RFC 5737: reserved for documentation
