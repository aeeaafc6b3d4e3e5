"""gunicorn for the constant answer: the settings of the service, without its hooks."""

import runpy

_service = runpy.run_path("gunicorn.conf.py")
globals().update(
    {_name: _value for _name, _value in _service.items() if isinstance(_value, str | int) and _name[0] != "_"}
)
