"""Latchkey: registers users, signs them in and issues tokens."""

import sys
from typing import Any, cast

__version__ = "0.7.1"

# structlog imports rich if it is installed, which Flask-Limiter's commands require: 12 MiB of the service.
cast("Any", sys.modules).setdefault("rich", None)
