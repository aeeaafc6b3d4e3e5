"""The official Python clients, with and without asyncio: an adapter, and their errors."""

import asyncio
import inspect
from typing import Any

import httpx
import pytest
from supabase_auth.errors import AuthApiError

# The clients' own options of httpx, with more patience than 5 s for a busy machine. The context, with all
# certificate authorities, takes 30 ms to make.
HTTPX: dict[str, Any] = {"follow_redirects": True, "http2": True, "timeout": 60}
HTTPX |= {"verify": httpx.create_ssl_context()}


class Blocking:
    """An asynchronous client with the interface of the other one."""

    def __init__(self, wrapped: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._wrapped, self._loop = wrapped, loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._wrapped, name)
        if not callable(value):
            return Blocking(value, self._loop)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            return self._loop.run_until_complete(result) if inspect.isawaitable(result) else result

        return call


def refused(status: int, code: str, message: str | None = None) -> Any:
    """Expect an error of the client."""
    return pytest.raises(AuthApiError, check=lambda error: _is(error, status, code, message))


def _is(error: AuthApiError, status: int, code: str, message: str | None) -> bool:
    return (error.status, error.code) == (status, code) and message in (None, error.message)
