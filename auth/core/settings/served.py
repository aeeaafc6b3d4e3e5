"""What the workers inherit from the gunicorn master, settings, inbox key, application; what it tells them.

A worker that is replaced gets the keys that its siblings have, whatever the files contain by then.
"""

import mmap
from typing import Any

from auth.core.settings import Settings

# None in other processes, which load their own.
current: Settings | None = None
# The Flask application of these settings, with the keys of the start or the last reload.
application: Any = None
# Opens the development inbox. New at each start, and kept at a reload; empty in other processes.
inbox_key = ""
# 1 while the delivery process ends again and again. The master writes it, in memory that its forks share.
delivery_fails = mmap.mmap(-1, 1)
