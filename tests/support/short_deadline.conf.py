"""The service's gunicorn configuration, with a request deadline of three seconds instead of thirty."""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of())

from auth.ops.processes import gunicorn_worker  # noqa: E402

gunicorn_worker.REQUEST_DEADLINE = 3
