"""The service's gunicorn configuration, with more patience."""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of())

from tests.support.timeouts import PATIENCE  # noqa: E402

for _module, _name, _value in PATIENCE:
    setattr(_module, _name, _value)
