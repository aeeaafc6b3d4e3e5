"""The client of the Python SDK: `sdk.py URL PORT [DOCUMENT]`. It prints and does what client.py does."""

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

url, port, *document = sys.argv[1:]


class Storage:
    client = tokens = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client: Any) -> None:
        self.client = client


async def show(authorization_url: str) -> None:
    print(authorization_url, flush=True)


async def redirected() -> AuthorizationCodeResult:
    """Answer the redirect of the browser, and return its parameters."""
    path: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nSigned in")
        await writer.drain()
        writer.close()
        if not path.done():
            path.set_result(head.decode().split(" ")[1])

    async with await asyncio.start_server(answer, "localhost", int(port)):
        parameters = dict(parse_qsl(urlsplit(await path).query))
    return AuthorizationCodeResult(**{name: parameters.get(name) for name in ("code", "state", "iss")})


async def main() -> None:
    metadata = OAuthClientMetadata(
        client_name="Reader",
        redirect_uris=[f"http://localhost:{port}/callback"],
        token_endpoint_auth_method="none",
        grant_types=["authorization_code", "refresh_token"],
        scope="openid email offline_access",
    )
    oauth = OAuthClientProvider(
        server_url=url,
        client_metadata=metadata,
        storage=Storage(),
        redirect_handler=show,
        callback_handler=redirected,
        client_metadata_url=document[0] if document else None,
    )
    seen = []
    async with (
        httpx2.AsyncClient(auth=oauth, timeout=300) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        for _ in range(2):
            answer = await client.call_tool("claims")
            token = oauth.context.current_tokens.access_token
            seen.append({"claims": answer.structured_content, "token": token})
            # As if it had expired.
            oauth.context.token_expiry_time = 1
        print(json.dumps(seen), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await client.call_tool("claims")


asyncio.run(main())
