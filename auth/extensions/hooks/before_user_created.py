"""The hook before-user-created, which may refuse a new user, or a new address of a user."""

from typing import Any

from auth.extensions import Candidate
from auth.extensions.hooks import turns
from auth.extensions.hooks.turns import Hook, HookFailed, HookRefused
from auth.web.asked import Asked


def ask(hook: Hook, asked: Asked, candidate: Candidate) -> None:
    """Ask the hook about a user. Refuse if it refuses or fails."""
    try:
        turns.call(asked, hook, event_of(asked, hook, candidate))
    except (HookRefused, HookFailed) as error:
        raise turns.refusal(asked, error) from error


def event_of(asked: Asked, hook: Hook, candidate: Candidate) -> dict[str, Any]:
    """Return the request to the hook."""
    email, phone = candidate.email, candidate.phone
    provider = candidate.provider or ("email" if email else "phone" if phone else None)
    metadata = turns.metadata(asked, hook)
    user = {
        "id": candidate.id,
        "aud": asked.settings.jwt_audience,
        "role": "authenticated",
        "email": email or "",
        "phone": (phone or "").removeprefix("+"),
        "app_metadata": {"provider": provider, "providers": [provider]} if provider else {},
        "user_metadata": candidate.data,
        "identities": [],
        "created_at": metadata["time"],
        "updated_at": metadata["time"],
        "is_anonymous": provider is None,
    }
    return {"metadata": metadata, "user": user}
