import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import supabase
from supabase import ClientOptions

from tests.support.python_clients import HTTPX, Blocking


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(params=["sync", "async"])
def connect(request: Any, server: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """Create a client of a server, by default the running one."""
    made: list[Any] = []

    def make(key: str = "an-anon-key-that-is-ignored", of: Any = server, **options: Any) -> Any:
        url = f"http://127.0.0.1:{of.port}"
        if request.param == "sync":
            http = httpx.Client(**HTTPX)
            plain = ClientOptions(auto_refresh_token=False, httpx_client=http, **options)
            client: Any = supabase.create_client(url, key, plain)
        else:
            asynchronous = httpx.AsyncClient(**HTTPX)
            chosen = supabase.AsyncClientOptions(
                auto_refresh_token=False, httpx_client=asynchronous, **options
            )
            client = Blocking(loop.run_until_complete(supabase.acreate_client(url, key, chosen)), loop)
        made.append(client.auth)
        return client

    yield make
    for auth in made:
        auth.close()
