"""Ten times the service's patience with Postgres, Redis, name servers, providers and searches, for tests on a busy
machine. And messages of strangers that are due at once.
"""

import os
import re
from typing import Any

from auth.core import health
from auth.core.net import text_records
from auth.core.providers import client
from auth.flows.messages import outgoing
from auth.web import limits
from sql import pool

BRIEF_ID_TOKEN_LIFETIME = 15  # seconds
SERVICE_TIMEOUTS, LONGEST_DELAY = pool._TIMEOUTS, outgoing._LONGEST_DELAY
PATIENCE: tuple[tuple[Any, str, Any], ...] = (
    (pool, "DEADLINE", 24.0),
    (pool, "CHECKOUT_DEADLINE", 20.0),
    (pool, "_TIMEOUTS", re.sub(r"(\d+)s", r"\g<1>0s", SERVICE_TIMEOUTS)),
    (health, "_TIMEOUT", 10.0),
    (limits, "_REDIS_TIMEOUT", 5.0),
    (text_records, "_DEADLINE", 30.0),
    (client, "_PATIENCE", 10.0),
    (client, "_DEADLINE", 80.0),
    (outgoing, "_LONGEST_DELAY", 0.0),
)
if os.environ.get("TEST_EXTENSIONS") != "none":
    from auth.extensions.console import users

    PATIENCE += ((users, "_LISTING", 10.0), (users, "_COUNTING", 3.0))
