"""The service's gunicorn configuration, with a request deadline of three seconds instead of thirty."""

import runpy

globals().update(
    {name: value for name, value in runpy.run_path("gunicorn.conf.py").items() if name[0] != "_"}
)

from auth.ops.processes import gunicorn_worker  # noqa: E402

gunicorn_worker.REQUEST_DEADLINE = 3
