import sys

from app import create_app
from auth.settings import SettingsError
from auth.settings.state import NotRunningError

try:
    app = create_app()
except (SettingsError, NotRunningError) as error:
    sys.exit(str(error))
