"""How many files a process may have open, of which each connection is one."""

import resource

# What a process has open beside: the log, the listening socket, connections to the database and to others.
_SPARE = 200


def allow(connections: int) -> int:
    """Raise the limit for so many connections, as far as the system lets us; return how many of them there may be.

    gunicorn ceases to accept at that number. Without a descriptor for the next one it would try again and again.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - _SPARE))
