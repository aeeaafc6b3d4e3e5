"""What gunicorn serves; each of its processes also sends what waits in the outbox. The commands of `flask` come by here too."""

import os
import sys

from app import create_app
from auth.context import EXTENSION
from auth.operations.embedded_postgres import EmbeddedPostgresError
from auth.settings import SettingsError

try:
    app = create_app()
except (SettingsError, EmbeddedPostgresError) as error:
    sys.exit(str(error))
# One of the commands does nothing but send, the others nothing of it.
if os.environ.get("FLASK_RUN_FROM_CLI") != "true":
    app.extensions[EXTENSION].deliverer.start()
