"""A website whose users sign in on Latchkey's pages: flask --app app run --host localhost --port 3000"""

import base64
import hashlib
import os
import secrets
import time
from typing import Any
from urllib.parse import urlencode

import requests
from flask import Flask, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue

LATCHKEY = os.environ.get("LATCHKEY_URL", "http://localhost:8000")

app = Flask(__name__)
# All processes need the same one.
app.secret_key = os.environ.get("SECRET_KEY") or secrets.token_hex()
# Out of reach of scripts, and not sent with forms of other sites.
app.config.update(SESSION_COOKIE_SAMESITE="Lax", SESSION_COOKIE_SECURE=LATCHKEY.startswith("https:"))
# The tokens and the user of each browser, by the random id in its cookie. The cookie has no room for them: an
# access token contains the user's metadata and can take 24 KiB. A restart forgets this dict, and other
# processes do not see it: use a table of your database, and delete the rows of browsers that stay away.
SESSIONS: dict[str, dict[str, Any]] = {}


def trade(grant_type: str, **proof: str) -> dict[str, Any] | None:
    """Trade a code or a refresh token for tokens and the user. Return None if Latchkey refuses."""
    response = requests.post(f"{LATCHKEY}/token", params={"grant_type": grant_type}, json=proof, timeout=5)
    if response.status_code in (400, 403, 404):
        return None
    response.raise_for_status()
    return response.json()


def current() -> dict[str, Any] | None:
    """Return the tokens and the user, or None. Send `access_token` to your APIs as "Authorization: Bearer …".

    Bans, and sign-outs elsewhere, are noticed when the access token expires.
    """
    key = session.get("id", "")
    known = SESSIONS.get(key)
    if known and known["expires_at"] < time.time() + 60:
        # Two requests may send the same refresh token: within a minute, it returns the same tokens.
        known = trade("refresh_token", refresh_token=known["refresh_token"])
        if known:
            SESSIONS[key] = known
        else:
            forget()
    return known


def forget() -> None:
    SESSIONS.pop(session.pop("id", ""), None)


@app.errorhandler(requests.RequestException)
def unavailable(error: Exception) -> ResponseReturnValue:
    app.logger.error("No answer from %s: %r", LATCHKEY, error)
    return "Please try again in a minute.", 503


# Users also arrive without a code: those who opened the link of a mail in another browser than the one that
# asked for it. Latchkey has signed them in there, and its page then offers to continue.
@app.get("/")
def home() -> ResponseReturnValue:
    known = current()
    return render_template("home.html", user=known and known["user"], latchkey=LATCHKEY)


@app.get("/<any('sign-in', 'sign-up'):page>")
def leave(page: str) -> ResponseReturnValue:
    session["verifier"] = verifier = secrets.token_urlsafe(32)
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    # Behind a proxy, ProxyFix of Werkzeug makes this the public URL.
    query = {"redirect_to": url_for("callback", _external=True), "code_challenge": challenge}
    return redirect(f"{LATCHKEY}/{page}?{urlencode(query)}")


@app.get("/callback")
def callback() -> ResponseReturnValue:
    code, verifier = request.args.get("code"), session.pop("verifier", None)
    # A code from anywhere else does not fit the verifier of this browser. The home page offers to sign in.
    known = trade("pkce", auth_code=code, code_verifier=verifier) if code and verifier else None
    if known:
        forget()
        session["id"] = secrets.token_urlsafe(32)
        SESSIONS[session["id"]] = known
    return redirect(url_for("home"))


@app.post("/sign-out")
def sign_out() -> ResponseReturnValue:
    """End our session, and lead to the page that ends Latchkey's."""
    if known := current():
        bearer = {"Authorization": f"Bearer {known['access_token']}"}
        requests.post(f"{LATCHKEY}/logout", params={"scope": "local"}, headers=bearer, timeout=5)
    forget()
    return redirect(f"{LATCHKEY}/sign-out?{urlencode({'redirect_to': url_for('home', _external=True)})}", 303)
