"""The backlog of a listening socket, connections that wait for a worker, when the service stops."""

import mmap

# Memory that the workers share with the master.
_state = mmap.mmap(-1, 1)


def note_stop() -> None:
    """Tell the workers that nothing has their listening socket after them. A reload only replaces workers."""
    _state[0] = 1


def ends() -> bool:
    """Whether the listening socket ends with the workers."""
    return _state[0] == 1
