import os

from flask import Flask, request
from standardwebhooks import Webhook, WebhookVerificationError

app = Flask(__name__)
webhook = Webhook(os.environ["HOOK_SECRET"].removeprefix("v1,"))


@app.before_request
def verify():
    webhook.verify(request.get_data(), dict(request.headers))


@app.errorhandler(WebhookVerificationError)
def refuse(error):
    return {"message": str(error)}, 401


@app.post("/before-user-created")
def before_user_created():
    if request.json["user"]["email"].endswith("@example.com"):
        return {}
    return {"error": {"http_code": 403, "message": "Sign up with your address at example.com."}}


@app.post("/custom-access-token")
def custom_access_token():
    claims = request.json["claims"]
    return {"claims": {**claims, "department": claims["app_metadata"].get("department")}}


@app.post("/send-email")
def send_email():
    user, email = request.json["user"], request.json["email_data"]
    app.logger.warning("To %s: %s", user["email"], email["subject"])
    return {}
