"""A client's socket: an answer is sent in one piece, and a socket stays as it is."""

import socket

import pytest

from auth.client_sockets import ClientSocket


@pytest.fixture
def sockets():
    """The service's end of a connection, and the client's."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        ClientSocket(listener.accept()[0]) as ours,
    ):
        yield ours, client


def nothing_has_come(client: socket.socket) -> bool:
    try:
        return not client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True


def test_what_is_sent_waits_for_the_end_of_the_answer(sockets):
    ours, client = sockets
    ours.sendall(b"head, ")
    ours.sendall(b"body")
    assert nothing_has_come(client)
    ours.flush()
    assert client.recv(100) == b"head, body"
    ours.flush()
    assert nothing_has_come(client)


def test_much_does_not_wait(sockets):
    ours, client = sockets
    ours.sendall(b"x" * 70_000)
    received = b""
    while len(received) < 70_000:
        received += client.recv(70_000)
    assert received == b"x" * 70_000


def test_what_others_want_it_to_be_leaves_it_blocking(sockets):
    ours, client = sockets
    ours.setblocking(False)
    ours.settimeout(0.01)
    assert ours.gettimeout() is None
    with pytest.raises(BlockingIOError):
        ours.recv(1, socket.MSG_DONTWAIT)
    client.sendall(b"x")
    assert ours.recv(1) == b"x"


def test_to_send_where_nothing_can_be_sent_any_more_fails(sockets):
    ours, _ = sockets
    ours.shutdown(socket.SHUT_WR)
    ours.sendall(b"x")
    with pytest.raises(BrokenPipeError):
        ours.flush()


def test_the_socket_that_was_accepted_is_taken_over():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        accepted = listener.accept()[0]
        number = accepted.fileno()
        with ClientSocket(accepted) as ours:
            assert (ours.fileno(), accepted.fileno()) == (number, -1)
