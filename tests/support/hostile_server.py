"""Servers on loopback whose answers are made to occupy their reader: without an end, byte by byte, or costly to parse."""

import base64
import functools
import gzip
import json
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric import ec, rsa

Answer = Callable[[], Iterator[bytes]]

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_MIB = 1024 * 1024


def without_end(start: bytes, piece: bytes) -> Answer:
    def answer() -> Iterator[bytes]:
        yield start
        pieces = piece * (65_536 // len(piece) + 1)
        while True:
            yield pieces

    return answer


def byte_by_byte(start: bytes, byte: bytes) -> Answer:
    """Return an answer in as many packets as it has bytes."""

    def answer() -> Iterator[bytes]:
        yield start
        while True:
            yield byte

    return answer


def drip() -> Iterator[bytes]:
    """Yield a byte now and then, well within the time that each read may take."""
    while True:
        threading.Event().wait(0.05)
        yield b"H"


def whole(body: bytes, content_type: str = "application/json") -> Answer:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n".encode()
    return lambda: iter([head + body])


def document(members: Any) -> Answer:
    return whole(json.dumps(members, ensure_ascii=False).encode())


def _encoded(encoding: str) -> bytes:
    return _HEAD + f"Content-Encoding: {encoding}\r\n\r\n".encode()


_ZEROS = b"\0" * (16 * _MIB)
# Answers that any client of HTTP may get.
ANSWERS: dict[str, Answer] = {
    "interim responses": without_end(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "short interim responses": without_end(b"", b"HTTP/1.1 100 \r\n\r\n"),
    "a status line": without_end(b"HTTP/1.1 200 ", b"O"),
    "a header": without_end(_HEAD + b"X: ", b"x"),
    "headers": without_end(_HEAD, b"X: y\r\n"),
    "a folded header": without_end(_HEAD + b"X: y\r\n", b" y\r\n"),
    "cookies": whole(b"{}", "application/json" + ("\r\nSet-Cookie: " + "a=b; expires=1-a-" + "1" * 60_000) * 4),
    "a body": without_end(_HEAD + b"\r\n", b"["),
    "a body of a length without end": without_end(_HEAD + b"Content-Length: " + b"9" * 4000 + b"\r\n\r\n", b"["),
    "packets of one byte": byte_by_byte(_HEAD + b"\r\n", b" "),
    "interim responses in packets of one byte": byte_by_byte(b"HTTP/1.1 103 A\r\nX: ", b"x"),
    "chunks of one byte": without_end(_CHUNKED, b"1\r\n \r\n"),
    "the size of a chunk": without_end(_CHUNKED, b"0"),
    "an absurd size of a chunk": without_end(_CHUNKED + b"f" * 3000 + b"\r\n", b" "),
    "the extension of a chunk": without_end(_CHUNKED + b"1;x=", b"x"),
    "trailers": without_end(_CHUNKED + b"0\r\n", b"X: y\r\n"),
    "empty members of gzip": without_end(_encoded("gzip"), gzip.compress(b"")),
    "zeros in gzip": without_end(_encoded("gzip"), gzip.compress(_ZEROS)),
    "zeros in deflate": without_end(_encoded("deflate"), zlib.compress(_ZEROS)),
    "gzip in gzip": without_end(_encoded("gzip, gzip, gzip"), gzip.compress(gzip.compress(_ZEROS))),
    "a text in Punycode": whole(b"a-" + b"a" * 240_000, "application/json; charset=punycode"),
    "a text in no encoding": whole(b'"' + bytes(range(128, 256)) * 7000 + b'"'),
    "deep JSON": whole(b"[" * 250_000),
    "wide JSON": whole(b"[" + b"{}," * 80_000 + b"{}]"),
    "a long number": whole(b'{"issuer": ' + b"1" * 250_000 + b"}"),
    "a long fraction": whole(b'{"issuer": 9007199254740993.' + b"0" * 240_000 + b"1}"),
    "a number out of range": whole(b'{"issuer": 1e400}'),
}  # fmt: skip


def _number(value: int) -> str:
    return base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8)).rstrip(b"=").decode()


@functools.cache
def _private_key() -> dict[str, str]:
    """Return an RSA key without its primes, which a reader may want to find."""
    numbers = rsa.generate_private_key(65537, 2048).private_numbers()
    public = numbers.public_numbers
    return {"kty": "RSA", "n": _number(public.n), "e": _number(public.e), "d": _number(numbers.d)}


@functools.cache
def _public_key() -> dict[str, str]:
    numbers = ec.generate_private_key(ec.SECP521R1()).public_key().public_numbers()
    return {"kty": "EC", "crv": "P-521", "x": _number(numbers.x), "y": _number(numbers.y)}


def key_sets() -> dict[str, Answer]:
    """Return JWK Sets that are costly to import, some of them larger than an answer may be."""
    modulus = _number((1 << 8 * 150_000) | 1)
    sets: dict[str, list[dict[str, Any]]] = {
        "private keys": [_private_key()] * 340,
        "a mebibyte of private keys": [_private_key()] * 1400,
        "public keys": [_public_key()] * 1200,
        "a mebibyte of public keys": [_public_key()] * 4800,
        "an RSA key of a million bits": [{"kty": "RSA", "n": modulus, "e": "AQAB"}],
        "a modulus of 500 KB": [{"kty": "RSA", "n": _number((1 << 8 * 375_000) | 1), "e": "AQAB"}],
        "an exponent of a million bits": [{"kty": "RSA", "n": _private_key()["n"], "e": modulus}],
        "certificates": [_public_key() | {"x5c": ["M" * 1000] * 200, "kid": 1e300}],
    }
    return {name: document({"keys": keys}) for name, keys in sets.items()}


class HostileServer:
    """Answers each path of `answers`, and notes it in `paths`; closes all connections at the end of the context.

    It serves https if it has `tls`. A `greeting`, as of a mail server, is sent instead of reading a request.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, greeting: Answer | None = None) -> None:
        self._greeting = greeting
        self.answers: dict[str, Answer] = {}
        self.paths: list[str] = []
        self._tls, self._over = tls, threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            encrypted = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            with encrypted, encrypted.makefile("rb") as lines:
                if self._greeting:
                    return self._send(encrypted, self._greeting)
                path = lines.readline().split()[1].decode()
                headers = dict(line.lower().split(b":", 1) for line in iter(lines.readline, b"\r\n"))
                lines.read(int(headers.get(b"content-length", 0)))
                self.paths.append(path)
                self._send(encrypted, self.answers[path])

    def _send(self, connection: socket.socket, answer: Answer) -> None:
        for piece in answer():
            if self._over.is_set():
                return
            connection.sendall(piece)
