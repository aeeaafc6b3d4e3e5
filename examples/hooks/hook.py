import os

from flask import Flask, request
from standardwebhooks import Webhook

app = Flask(__name__)
# It may have several secrets, while one is replaced.
webhooks = [Webhook(secret) for secret in os.environ["HOOK_SECRETS"].split(",")]


@app.before_request
def verify():
    """Let only the service in."""
    failures = []
    for webhook in webhooks:
        try:
            webhook.verify(request.get_data(), dict(request.headers))
        except Exception as failure:
            failures.append(failure)
    if len(failures) == len(webhooks):
        return {"message": str(failures[-1])}, 401
    return None


@app.post("/before-user-created")
def before_user_created():
    if not request.json["user"]["email"].endswith("@example.com"):
        return {"error": {"http_code": 403, "message": "Sign up with your address at example.com."}}
    return {}


@app.post("/custom-access-token")
def custom_access_token():
    claims = request.json["claims"]
    return {"claims": claims | {"department": claims["app_metadata"].get("department", "none")}}


@app.post("/send-email")
def send_email():
    email = request.json["email_data"]
    app.logger.warning("To %s: %s", request.json["user"]["email"], email["subject"])
    return {}
