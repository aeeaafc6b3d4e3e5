"""What gunicorn serves; each of its processes also sends what waits in the outbox."""

import os

from app import create_app
from auth.context import EXTENSION

app = create_app()
# The commands of `flask` come by here too, and one of them does nothing but send.
if os.environ.get("FLASK_RUN_FROM_CLI") != "true":
    app.extensions[EXTENSION].deliverer.start()
