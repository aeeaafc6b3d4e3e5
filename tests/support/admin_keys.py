"""Administrative keys of the tests."""

from dataclasses import dataclass
from typing import Any

from auth.flows.admin import admin_keys
from auth.web.asked import Asked
from auth.web.context import Latchkey

NO_ORIGIN = dict.fromkeys(("ip", "network", "user_agent"))


@dataclass(frozen=True)
class AdminKey:
    id: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


def make_admin_key(parts: Latchkey, *scopes: str, name: str = "billing", **options: Any) -> AdminKey:
    """Create a key as `latchkey keys create` does."""
    lifetime: int | None = options.get("lifetime")
    return AdminKey(
        *admin_keys.create(Asked(parts, NO_ORIGIN, "service_role"), name, scopes or ("users:read",), lifetime)
    )
