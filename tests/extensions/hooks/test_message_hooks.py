"""The hooks send-email and send-sms: called by the delivery process, with GoTrue's requests."""

import base64
import json

import pytest

from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.deliverers import deliver_due
from tests.support.hooks import verified
from tests.support.links import OTHER_PHONE, PHONE, follow, type_in
from tests.support.outbox import CODE, TOKEN, Outbox
from tests.support.users import DAVE, PASSWORD, session_of, sign_in

SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()


@pytest.fixture
def hooked(make_app, target):
    """An application whose messages are sent by hooks."""
    target.answer = lambda _event: {}
    names = ("EMAIL", "SMS")
    hooks = {f"AUTH_HOOK_SEND_{name}": f"{target.url}/{name.lower()}" for name in names}
    secrets = {f"AUTH_HOOK_SEND_{name}_SECRETS": f"v1,{SECRET}" for name in names}
    return make_app(**hooks, **secrets, AUTH_DEV_INBOX="true", AUTH_SMS_PROVIDER="none")


@pytest.fixture
def parts(hooked):
    return hooked.extensions["latchkey"]


@pytest.fixture
def outbox(parts, database):
    return Outbox(database, parts)


@pytest.fixture
def deliver(parts, target, outbox):
    """Return a function that delivers, and returns what the hooks were sent."""

    def deliver():
        target.requests.clear()
        outbox.let_time_pass(60)
        deliver_due(parts)
        return [verified(posted, SECRET) for posted in target.requests]

    return deliver


def test_email_of_a_sign_up_is_sent_by_the_hook_once_the_response_is_gone(
    hooked, target, deliver, service_role
):
    client = hooked.test_client()
    body = {"email": DAVE, "password": PASSWORD, "data": {"name": "Dave"}}
    client.post("/signup", json=body)
    assert target.requests == []
    (request,) = deliver()
    user, data = request["user"], request["email_data"]
    assert (target.requests[0].path, request["metadata"]["name"]) == ("/email", "send-email")
    assert (user["email"], user["user_metadata"], user["phone"]) == (DAVE, {"name": "Dave"}, "")
    assert (data["email_action_type"], data["redirect_to"]) == ("signup", "http://localhost:8000")
    assert data["subject"] == "Confirm your email address"
    assert data["token"] in data["text"]
    assert data["link"] in data["text"]
    # GoTrue's hooks build the same link.
    assert f"/verify?token={data['token_hash']}&type=signup" in data["link"]
    assert type_in(client, "signup", DAVE, data["token"]).status_code == 200
    assert data["subject"] in client.get("/dev/inbox", headers=service_role).text


def test_sms_is_sent_by_the_hook(hooked, target, deliver):
    client = hooked.test_client()
    client.post("/otp", json={"phone": PHONE})
    (request,) = deliver()
    digits = PHONE.removeprefix("+")
    assert target.requests[0].path == "/sms"
    assert (request["user"]["phone"], request["sms"]["phone"]) == (digits, digits)
    assert request["sms"]["otp"] in request["sms"]["message"]
    assert request["sms"]["channel"] == "sms"
    assert type_in(client, "sms", PHONE, request["sms"]["otp"]).status_code == 200


def test_hook_gets_the_channel_that_the_client_chose(hooked, alice, deliver):
    client, whatsapp = hooked.test_client(), {"channel": "whatsapp"}
    session = session_of(client, sign_in(client, alice.email))
    responses = [client.post("/signup", json={"phone": PHONE, "password": PASSWORD} | whatsapp)]
    responses += [client.post("/resend", json={"type": "sms", "phone": PHONE} | whatsapp)]
    responses += [session.put("/user", json={"phone": OTHER_PHONE} | whatsapp)]
    assert [answer.status_code for answer in responses] == [201, 200, 200]
    assert client.post("/otp", json={"phone": PHONE, "channel": "two words"}).status_code == 400
    assert [request["sms"]["channel"] for request in deliver()] == ["whatsapp"] * 3


def test_user_has_the_address_that_the_message_goes_to(hooked, alice, deliver):
    client, new = hooked.test_client(), "alice@new.example.com"
    session = session_of(client, sign_in(client, alice.email))
    session.put("/user", json={"email": new})
    (request,) = deliver()
    assert (request["user"]["id"], request["user"]["email"]) == (alice.id, new)
    assert request["email_data"]["email_action_type"] == "email_change"
    follow(client, "email_change", request["email_data"]["token_hash"])
    notices = [notice for notice in deliver() if notice["user"]["email"] == alice.email]
    (data,) = [notice["email_data"] for notice in notices]
    assert (data["email_action_type"], data["old_email"]) == ("email_changed_notification", alice.email)
    # A template of GoTrue's would make another link of it than one that undoes the change.
    assert (data["token"], data["token_hash"]) == ("", "")
    assert "type=undo" in data["link"]


@cases(
    ("answer", "outcome"),
    [
        ({}, "sent"),
        ({"error": {"http_code": 400, "message": f"no such mailbox {CODE} {TOKEN}"}}, "failed"),
        ({"error": {"http_code": 429, "message": "slow down"}}, None),
        ({"error": f"{TOKEN} {CODE}"}, None),
        ([TOKEN, CODE], None),
        # Secrets where the reason is cut.
        ({"error": {"http_code": 400, "message": "x" * 260 + TOKEN}}, "failed"),
        ([" " * 960 + TOKEN], None),
    ],
)
def test_answer_decides_whether_the_message_is_retried(target, deliver, outbox, answer, outcome):
    target.answer = lambda _event: answer
    id = outbox.write()
    assert len(deliver()) == 1
    row = outbox.row(id)
    assert row.outcome == outcome
    assert TOKEN[:4] not in (row.last_error or "")
    assert CODE not in (row.last_error or "")
    if outcome == "sent":
        assert row.response == "the hook send-email"
    elif outcome is None:
        first_id = target.requests[0].headers["webhook-id"]
        target.answer = lambda _event: {}
        deliver()
        assert (outbox.outcome(id), target.requests[-1].headers["webhook-id"]) == ("sent", first_id)


def test_command_sends_the_user_a_test_message(hooked, target, service_role):
    body = {"email": DAVE, "phone": PHONE}
    user = hooked.test_client().post("/admin/users", json=body, headers=service_role).json
    for name, member in (("send-email", "email_data"), ("send-sms", "sms")):
        command = run_command(hooked, "hooks", "test", name, "--user", DAVE, "--json")
        result = json.loads(command.output)
        assert (command.exit_code, result["verdict"]) == (0, "accepted")
        assert result["request"] == verified(target.requests[-1], SECRET)
        assert (result["request"]["user"]["id"], result["request"]["metadata"]["name"]) == (user["id"], name)
        assert "Test message from http://localhost:8000" in result["request"][member].values()
    path = "/auth/v1/admin/users"
    only_phone = hooked.test_client().post(path, json={"phone": OTHER_PHONE}, headers=service_role)
    command = run_command(hooked, "hooks", "test", "send-email", "--user", only_phone.json["id"])
    assert (command.exit_code, len(target.requests)) == (3, 2)


def test_mail_test_uses_the_hook(hooked, target):
    result = run_command(hooked, "mail-test", DAVE)
    assert (result.exit_code, result.output) == (0, f"Sent to {DAVE}: the hook send-email\n")
    request = json.loads(target.requests[0].body)
    assert (request["user"]["email"], request["email_data"]["email_action_type"]) == (
        DAVE,
        "test_notification",
    )
