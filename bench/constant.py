"""The limit of what Flask and gunicorn can do: nothing but a constant answer, as large as that of GET /user."""

import os

from flask import Flask, Response

app = Flask(__name__)
_BODY = "{" + '"constant": "' + "x" * (int(os.environ.get("CONSTANT_BODY_LENGTH", "900")) - 15) + '"}'


@app.get("/constant")
def constant() -> Response:
    """Answer."""
    return Response(_BODY, mimetype="application/json")
