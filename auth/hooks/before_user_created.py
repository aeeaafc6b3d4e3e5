"""The hook before-user-created: asked about each user who would be created, except by an administrator.

Nothing is read first, unless an administrator or a provider's identity asks: a taken address is asked about
like a free one, so that neither the answer nor its time tells which it is.
"""

import uuid
from typing import Any

from auth.context import latchkey
from auth.hooks import http
from auth.hooks.http import Hook, HookFailed, HookRefused, call
from auth.web.error_handlers import as_api_error


def is_set() -> Hook | None:
    return latchkey.settings.hook("before_user_created")


def ask(
    *,
    email: str | None = None,
    phone: str | None = None,
    data: dict[str, Any],
    provider: str | None = None,
) -> str:
    """Return the id for a new user, whom the hook admits if it is set. Call it outside any transaction.

    Without an address and a provider the user is anonymous. Raises `ApiError`.
    """
    id = str(uuid.uuid4())
    if hook := is_set():
        try:
            call(hook, event_of(hook, id, email=email, phone=phone, data=data, provider=provider))
        except (HookRefused, HookFailed) as error:
            raise as_api_error(error) from error
    return id


def event_of(
    hook: Hook,
    id: str,
    *,
    email: str | None,
    phone: str | None,
    data: dict[str, Any],
    provider: str | None = None,
) -> dict[str, Any]:
    """Return the request to the hook."""
    provider = provider or ("email" if email else "phone" if phone else None)
    metadata = http.metadata(hook)
    user = {
        "id": id,
        "aud": latchkey.settings.jwt_audience,
        "role": "authenticated",
        "email": email or "",
        "phone": (phone or "").removeprefix("+"),
        "app_metadata": {"provider": provider, "providers": [provider]} if provider else {},
        "user_metadata": data,
        "identities": [],
        "created_at": metadata["time"],
        "updated_at": metadata["time"],
        "is_anonymous": provider is None,
    }
    return {"metadata": metadata, "user": user}
