"""gunicorn for the constant answer: as many processes and threads as the service has, in gunicorn's own threaded worker.

With `CONSTANT_WORKER=own`, in the service's: which collects requests first, keeps to a core and shares connections out.
"""

import os
import runpy

from auth.shares import Shares

_service = runpy.run_path("gunicorn.conf.py")
# But for what starts and ends with the service.
globals().update({_name: _value for _name, _value in _service.items() if isinstance(_value, str | int) and _name[0] != "_"})

if os.environ.get("CONSTANT_WORKER") == "own":
    pre_fork = _service["pre_fork"]

    def on_starting(server) -> None:
        """Give the processes something to share."""
        server.shares = Shares(_service["workers"])
else:
    worker_class = "gthread"
