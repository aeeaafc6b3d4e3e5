"""What forks inherit from the gunicorn master: the settings, the inbox key, the application, the `Delivery`.

A replaced worker gets the same keys as its siblings, even if the files have changed since.
"""

import mmap
from typing import Any

from auth.core.settings import Settings

# None in other processes, which load their own settings.
current: Settings | None = None
# The Flask application of these settings, with the keys of the start or the last reload.
application: Any = None
# The `Delivery` of these settings, or None if this node neither delivers nor serves metrics.
delivery: Any = None
# Opens the development inbox. New at each start, and kept at a reload; empty in other processes.
inbox_key = ""
# 1 while the delivery process ends again and again. The master writes it, in memory that its forks share.
delivery_fails = mmap.mmap(-1, 1)
