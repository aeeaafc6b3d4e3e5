"""The service's gunicorn configuration, with more patience with Postgres."""

import runpy

globals().update(
    {name: value for name, value in runpy.run_path("gunicorn.conf.py").items() if name[0] != "_"}
)

from sql import pool  # noqa: E402
from tests.support.patience import PATIENCE  # noqa: E402

vars(pool).update(PATIENCE)
