"""The service's gunicorn configuration, with more patience, and ID tokens that expire within a test."""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of("tests/support/long_timeouts.conf.py"))

from auth.core import constants  # noqa: E402
from tests.support.timeouts import BRIEF_ID_TOKEN_LIFETIME  # noqa: E402

constants.ID_TOKEN_LIFETIME = BRIEF_ID_TOKEN_LIFETIME
