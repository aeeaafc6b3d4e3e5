"""A WSGI application that fails in the middle of its answers, which ours never does: what is told of is the
worker.
"""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer at /; fail after the first bytes anywhere else."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"begun"
    if environ["PATH_INFO"] != "/":
        raise RuntimeError
