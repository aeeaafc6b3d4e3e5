"""The service's gunicorn configuration, with more patience."""

import runpy

globals().update(
    {name: value for name, value in runpy.run_path("gunicorn.conf.py").items() if name[0] != "_"}
)

from tests.support.timeouts import PATIENCE  # noqa: E402

for _module, _name, _value in PATIENCE:
    setattr(_module, _name, _value)
