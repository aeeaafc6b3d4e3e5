"""A WSGI application that fails in the middle of a response, which ours never does, to test the worker."""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Respond at /; everywhere else fail after the first bytes."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"begun"
    if environ["PATH_INFO"] != "/":
        raise RuntimeError
