"""The limit of open files, within which a worker accepts connections."""

import resource
from contextlib import suppress

# Files of a worker besides the connections of clients: those to Postgres, providers and hooks, and its own.
_OTHERS = 200
_FILES = resource.RLIMIT_NOFILE


def make_room(connections: int) -> int:
    """Raise the limit of this process for `connections`, and return how many of them fit.

    Without a free file, gevent would accept no connection, and not close silent ones either.
    """
    needed = connections + _OTHERS
    soft, hard = resource.getrlimit(_FILES)
    if not _allows(soft, needed):
        with suppress(ValueError, OSError):  # macOS has another limit below an infinite one
            resource.setrlimit(_FILES, (needed if _allows(hard, needed) else hard, hard))
    return _number_within(resource.getrlimit(_FILES)[0], connections)


def shortage(connections: int) -> str | None:
    """Return a line for the operator if a worker cannot accept `connections`."""
    _, hard = resource.getrlimit(_FILES)
    number = _number_within(hard, connections)
    if number == connections:
        return None
    return (
        f"A process may open {hard} files, so each worker accepts {number} connections instead of"
        f" {connections}. Raise the limit to {connections + _OTHERS}: LimitNOFILE= of systemd, or ulimit -n."
    )


def _allows(limit: int, files: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= files


def _number_within(limit: int, connections: int) -> int:
    """Return how many connections fit into a limit, half of it if it leaves too little for the others."""
    return connections if _allows(limit, connections + _OTHERS) else max(limit - _OTHERS, limit // 2)
