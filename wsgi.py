import os
import sys
from typing import cast

from app import create_app
from auth.core.settings import SettingsError, served
from auth.core.settings.state import METRICS_DIRECTORY, NotRunningError
from auth.web.context import EXTENSION
from auth.web.edge import Edge

try:
    app = served.application or create_app()
    parts = app.extensions[EXTENSION]
    parts.key_ring.use(served.current or parts.settings)
    parts.key_ring.watch()
    parts.db.pool.watch()
    # A reload may turn metrics on, but only a start creates their directory.
    if parts.settings.metrics_bind and METRICS_DIRECTORY in os.environ:
        from auth.ops.processes.request_metrics import RequestMetrics

        cast(Edge, app.wsgi_app).count = RequestMetrics(parts).count
except (SettingsError, NotRunningError) as error:
    sys.exit(str(error))
