"""gunicorn for the constant answer: the worker and the processes that the service has, and nothing that
starts with it.
"""

import runpy

_service = runpy.run_path("gunicorn.conf.py")
globals().update(
    {_name: _value for _name, _value in _service.items() if isinstance(_value, str | int) and _name[0] != "_"}
)
