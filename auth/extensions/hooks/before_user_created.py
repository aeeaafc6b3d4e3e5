"""The hook before-user-created, which may refuse a new user, or a new address of a user."""

import uuid
from typing import Any

from auth.core.settings.values.hooks import Hook
from auth.extensions.hooks import http_hooks, turns
from auth.registry import Candidate, HookContext


def ask(hook: Hook, context: HookContext, candidate: Candidate) -> None:
    """Ask the hook about a user. Refuse if it refuses or fails."""
    with turns.asking(context, hook, context.client["network"] or ""):
        http_hooks.ask(hook, f"msg_{uuid.uuid4()}", event_of(context, hook, candidate))


def event_of(context: HookContext, hook: Hook, candidate: Candidate) -> dict[str, Any]:
    """Return the request to the hook."""
    email, phone = candidate.email, candidate.phone
    provider = candidate.provider or ("email" if email else "phone" if phone else None)
    metadata = turns.metadata(context, hook)
    user = {
        "id": candidate.id,
        "aud": context.settings.jwt_audience,
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
