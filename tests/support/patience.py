"""Ten times the service's patience with Postgres, for tests on a busy machine."""

import re
from typing import Any

from sql import pool

SERVICE_TIMEOUTS = pool._TIMEOUTS
PATIENCE: dict[str, Any] = {
    "DEADLINE": 24.0,
    "CHECKOUT_DEADLINE": 20.0,
    "_TIMEOUTS": re.sub(r"(\d+)s", r"\g<1>0s", SERVICE_TIMEOUTS),
}
