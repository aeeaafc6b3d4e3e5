import sys

from app import create_app
from auth.context import EXTENSION
from auth.settings import SettingsError, served
from auth.settings.state import NotRunningError

try:
    app = create_app(served.current)
    app.extensions[EXTENSION].key_ring.watch()
    app.extensions[EXTENSION].passwords.threads.watch()
except (SettingsError, NotRunningError) as error:
    sys.exit(str(error))
