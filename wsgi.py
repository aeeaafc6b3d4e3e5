import sys

from app import create_app
from auth.core.settings import SettingsError, served
from auth.core.settings.state import NotRunningError
from auth.web import edge
from auth.web.context import EXTENSION

try:
    app = served.application or create_app()
    parts = app.extensions[EXTENSION]
    parts.key_ring.use(served.current or parts.settings)
    parts.key_ring.watch()
    parts.db.pool.watch()
    edge.count_requests(app)
except (SettingsError, NotRunningError) as error:
    sys.exit(str(error))
