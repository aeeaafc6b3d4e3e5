"""gunicorn for the constant answer: as the service sets it, but for what starts and ends with it."""

import runpy

globals().update({_name: _value for _name, _value in runpy.run_path("gunicorn.conf.py").items() if isinstance(_value, str | int) and _name[0] != "_"})
