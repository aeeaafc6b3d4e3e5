import sys

from app import create_app
from auth.core.settings import SettingsError, served
from auth.core.settings.state import NotRunningError
from auth.web.context import EXTENSION

try:
    app = create_app(served.current)
    app.extensions[EXTENSION].key_ring.watch()
    app.extensions[EXTENSION].db.pool.watch()
except (SettingsError, NotRunningError) as error:
    sys.exit(str(error))
