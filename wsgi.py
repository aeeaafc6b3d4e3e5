"""What gunicorn serves, and the application of the commands of `flask`."""

import sys

from app import create_app
from auth.operations.embedded_postgres import EmbeddedPostgresError
from auth.settings import SettingsError

try:
    app = create_app()
except (SettingsError, EmbeddedPostgresError) as error:
    sys.exit(str(error))
