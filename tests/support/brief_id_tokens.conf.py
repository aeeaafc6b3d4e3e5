"""The service's gunicorn configuration, with more patience, and ID tokens that expire within a test."""

import runpy

globals().update(
    {
        name: value
        for name, value in runpy.run_path("tests/support/long_timeouts.conf.py").items()
        if name[0] != "_"
    }
)

from auth.core import promises  # noqa: E402
from tests.support.timeouts import BRIEF_ID_TOKEN_LIFETIME  # noqa: E402

promises.ID_TOKEN_LIFETIME = BRIEF_ID_TOKEN_LIFETIME
