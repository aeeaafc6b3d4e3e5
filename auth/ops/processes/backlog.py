"""The backlog of a listening socket, connections that wait for a worker, while the service stops."""

import ctypes
import mmap
import socket
import struct
import sys

_SO_ATTACH_FILTER = 26
# A program of the classic BPF (struct sock_filter), which reads the TCP header: code, jumps if true and if
# false, operand.
_DROP_SYN = [
    (0x30, 0, 0, 13),  # load the flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # drop the packet
    (0x06, 0, 0, 0xFFFF_FFFF),  # keep all of it
]
# Memory that the workers share with the master.
_state = mmap.mmap(-1, 1)


def note_stop() -> None:
    """Tell the workers that nothing has their listening socket after them. A reload only replaces workers."""
    _state[0] = 1


def closes() -> bool:
    """Whether the listening socket is closed when the workers have ended."""
    return _state[0] == 1


def drop_new_connections(listener: socket.socket) -> None:
    """Drop the first packet of each new connection, on Linux; those in the backlog stay.

    The close of the socket would reset a connection that begins after the last `accept`, and a proxy sends no
    POST twice. A client repeats the first packet after a second: then the address refuses it, or the next
    service has it. All processes with this socket have the filter. Raises `OSError`.
    """
    if sys.platform != "linux":
        return
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in _DROP_SYN))
    filter = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(program))  # struct sock_fprog
    listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter)
