"""The hook before-user-created, which may refuse a new user, or a new address of a user."""

from collections.abc import Mapping
from typing import Any

from auth.extensions.hooks import turns
from auth.extensions.hooks.turns import Hook, HookFailed, HookRefused
from auth.web.asked import Asked


def ask(
    hook: Hook,
    asked: Asked,
    id: str,
    *,
    email: str | None,
    phone: str | None,
    data: Mapping[str, object],
    provider: str | None,
) -> None:
    """Ask the hook about a user. Refuse if it refuses or fails."""
    about = event_of(asked, hook, id, email=email, phone=phone, data=data, provider=provider)
    try:
        turns.call(asked, hook, about)
    except (HookRefused, HookFailed) as error:
        raise turns.refusal(asked, error) from error


def event_of(
    asked: Asked,
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
    metadata = turns.metadata(asked, hook)
    user = {
        "id": id,
        "aud": asked.settings.jwt_audience,
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
