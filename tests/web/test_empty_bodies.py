"""An empty body is no body, also if it comes in chunks, as Cloudflare Tunnel sends it."""

import io
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.raw_http import HOST, exchange
from tests.web.test_unparsed_bodies import routes

KINDS = ("", "text/plain", "application/octet-stream", "application/json")


def in_chunks(content: bytes) -> dict[str, Any]:
    """Return the options of a request as gunicorn passes it on."""
    return {
        "input_stream": io.BytesIO(content),
        "headers": {"Transfer-Encoding": "chunked"},
        "environ_overrides": {"wsgi.input_terminated": True},
    }


@cases("kind", KINDS)
def test_empty_body_in_chunks_is_answered_as_no_body_is_by_every_route(whole_app, kind):
    client, all_statuses = whole_app.test_client(), set()
    for method, path, _endpoint in routes(whole_app):
        answers = [
            client.open(path, method=method, content_type=kind or None, **framed)
            for framed in ({}, in_chunks(b""))
        ]
        statuses = [answer.status_code for answer in answers]
        assert statuses[0] == statuses[1], (method, path)
        all_statuses.add(statuses[0])
    assert {400, 401} <= all_statuses


@cases("kind", KINDS[:3])
def test_body_of_another_type_in_chunks_is_refused(client, alice, kind):
    session = alice.open_session()
    options = in_chunks(b"x")
    options["headers"] |= session.authorization
    assert client.post("/logout", content_type=kind or None, **options).status_code == 415
    assert client.get("/user", headers=session.authorization).status_code == 200


@pytest.mark.parametrize("chunks", [b"0\r\n\r\n", b"0;x=y\r\n\r\n"])
def test_sign_out_and_deletion_take_an_empty_body_in_chunks(server, alice, bob, service_role, chunks):
    session = alice.open_session()

    def ask(line: str, headers: dict[str, str]) -> int:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        lines += ["Transfer-Encoding: chunked", "Connection: close", "", ""]
        head = f"{line} HTTP/1.1\r\n".encode() + HOST + "\r\n".join(lines).encode()
        (reply,) = exchange(server.port, head + chunks)
        return reply.status

    assert ask("POST /logout", session.authorization) == 200
    assert ask(f"DELETE /admin/users/{bob.id}", service_role) in (200, 204)
    assert server.get("/user", headers=session.authorization).status_code == 401
    assert server.get(f"/admin/users/{bob.id}", headers=service_role).status_code == 404
