"""About ten times each deadline of the service below ten seconds, for tests on a busy machine; messages of strangers
are due at once.
"""

import os
import re
from typing import Any

from auth.core import health
from auth.core.net import text_records
from auth.core.passwords import hashing, leaked_ranges
from auth.core.providers import client
from auth.flows.messages import outgoing
from auth.web import limits
from sql import acts, pool

BRIEF_ID_TOKEN_LIFETIME = 15  # seconds
SERVICE_TIMEOUTS, LONGEST_DELAY = pool._TIMEOUTS, outgoing._LONGEST_DELAY
PATIENCE: tuple[tuple[Any, str, Any], ...] = (
    (pool, "DEADLINE", 24.0),
    (pool, "CHECKOUT_DEADLINE", 20.0),
    (pool, "_TIMEOUTS", re.sub(r"(\d+)s", r"\g<1>0s", SERVICE_TIMEOUTS)),
    (acts, "_BEGIN", acts._BEGIN.replace("'3s'", "'30s'")),
    (health, "_TIMEOUT", 10.0),
    (limits, "_REDIS_TIMEOUT", 5.0),
    (text_records, "_DEADLINE", 30.0),
    (client, "_PATIENCE", 10.0),
    (client, "_DEADLINE", 80.0),
    (hashing, "PATIENCE", 50.0),
    (leaked_ranges, "_TIMEOUT", 10.0),
    (outgoing, "_LONGEST_DELAY", 0.0),
)
if os.environ.get("TEST_EXTENSIONS") != "none":
    from auth.extensions.captcha import siteverify
    from auth.extensions.console import bulk, users
    from auth.extensions.hooks import http_hooks, turns
    from auth.extensions.openid import documents

    PATIENCE += (
        (bulk, "_SECONDS", 100.0),
        (documents, "_SECONDS", 30),
        (http_hooks.ask, "__defaults__", (20.0,)),
        (siteverify, "_TIMEOUT", 50.0),
        (turns, "_PATIENCE", 19.0),
        (users, "_COUNTING", 3.0),
        (users, "_LISTING", 10.0),
    )
