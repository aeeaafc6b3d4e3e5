"""The path of the README, as one story: start here."""


def test_user_signs_up_signs_in_changes_the_password_and_signs_out(client, outbox):
    dave = {"email": "dave@example.com", "password": "Correct-Horse-1"}
    assert client.post("/signup", json=dave).status_code == 201
    assert client.post("/token?grant_type=password", json=dave).json["error_code"] == "email_not_confirmed"

    code = outbox.last("dave@example.com").code
    confirmed = client.post("/verify", json={"type": "signup", "email": dave["email"], "token": code})
    assert confirmed.json["user"]["email_confirmed_at"]

    session = client.post("/token?grant_type=password", json=dave).json
    body = {"refresh_token": session["refresh_token"]}
    session = client.post("/token?grant_type=refresh_token", json=body).json
    caller = {"Authorization": f"Bearer {session['access_token']}"}
    assert client.get("/user", headers=caller).json["email"] == "dave@example.com"

    changed = client.put("/user", json={"password": "Another-Horse-2"}, headers=caller)
    assert changed.status_code == 200
    assert client.post("/token?grant_type=password", json=dave).json["error_code"] == "invalid_credentials"

    assert client.post("/logout", headers=caller).status_code == 200
    assert client.get("/user", headers=caller).json["error_code"] == "session_not_found"
    dave["password"] = "Another-Horse-2"
    assert client.post("/token?grant_type=password", json=dave).json["user"]["email"] == "dave@example.com"
