"""The hook before-user-created, which may refuse a new user, or a new address of a user."""

from collections.abc import Mapping
from typing import Any

from auth.extensions.hooks import turns
from auth.extensions.hooks.turns import Hook, HookFailed, HookRefused
from auth.web.context import latchkey
from auth.web.error_handlers import as_api_error


def ask(
    hook: Hook,
    id: str,
    *,
    email: str | None,
    phone: str | None,
    data: Mapping[str, object],
    provider: str | None,
) -> None:
    """Ask the hook about a user. Refuse if it refuses or fails."""
    try:
        turns.call(hook, event_of(hook, id, email=email, phone=phone, data=data, provider=provider))
    except (HookRefused, HookFailed) as error:
        raise as_api_error(error) from error


def event_of(
    hook: Hook,
    id: str,
    *,
    email: str | None,
    phone: str | None,
    data: Mapping[str, object],
    provider: str | None = None,
) -> dict[str, Any]:
    """Return the request to the hook."""
    provider = provider or ("email" if email else "phone" if phone else None)
    metadata = turns.metadata(hook)
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
