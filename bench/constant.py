"""The limit of Flask and gunicorn: a view that returns a constant as large as the response of GET /user."""

import os

from flask import Flask, Response

app = Flask(__name__)
_BODY = "{" + '"constant": "' + "x" * (int(os.environ.get("CONSTANT_BODY_LENGTH", "900")) - 15) + '"}'


@app.get("/constant")
def constant() -> Response:
    """Return the constant."""
    return Response(_BODY, mimetype="application/json")
