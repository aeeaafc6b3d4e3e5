"""`latchkey test-server`: the real service for tests of applications, and an interface to control it."""

# The folder of the state directory with a file for each request that is to fail.
FAILURES = "failures"


class Refused(Exception):
    """The message is for the developer."""
