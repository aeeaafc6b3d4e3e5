"""A user whom a stranger may have created, and who was never used, blocks no address."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.answers import assert_error
from tests.support.commands import run_command
from tests.support.links import assert_dead, hand_in, type_in
from tests.support.users import DAVE, PASSWORD, sign_in

PHONE = "+491701234567"
GROUPS = {"groups": ["staff"]}
# The requests with which a stranger creates a user without a proof, with the address.
MAKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sign-up": ("/signup", {"email": DAVE, "password": "Mallorys-Horse-1", "data": {"name": "Mallory"}}),
    "sign-up by phone": ("/signup", {"phone": PHONE, "password": "Mallorys-Horse-1"}),
    "magic link": ("/magiclink", {"email": DAVE, "data": {"name": "Mallory"}}),
    "code": ("/otp", {"phone": PHONE}),
}


class Doors:
    """Acts of an administrator, or of the owner of an address, with it. Each returns the id of its user."""

    def __init__(self, client: Any, service_role: dict[str, str], alice: Any, outbox: Any, app: Any) -> None:
        self.client, self.key, self.alice, self.outbox, self.app = client, service_role, alice, outbox, app

    def _admin(self, path: str, method: str = "POST", **body: Any) -> Any:
        answer = self.client.open(path, method=method, json=body, headers=self.key)
        assert answer.status_code in (200, 201), answer.text
        return answer.json

    def invite(self, kind: str, address: str) -> str:
        user = self._admin("/admin/invite", email=address, options={"data": GROUPS})["user"]
        assert (user["app_metadata"]["groups"], user["user_metadata"]) == (["staff"], {})
        accepted = hand_in(self.client, "invite", self.outbox.last(address).token)
        assert accepted.json["user"]["app_metadata"]["groups"] == ["staff"]
        return user["id"]

    def create(self, kind: str, address: str) -> str:
        body: dict[str, Any] = {
            "email": "dave2@example.com",
            kind: address,
            f"{kind}_confirm": True,
            "password": PASSWORD,
            "app_metadata": GROUPS,
        }
        user = self._admin("/admin/users", **body)
        assert (user["app_metadata"]["groups"], user["user_metadata"]) == (["staff"], {})
        return user["id"]

    def change(self, kind: str, address: str) -> str:
        change: dict[str, Any] = {kind: address, f"{kind}_confirm": True}
        return self._admin(f"/admin/users/{self.alice.id}", "PUT", **change)["id"]

    def import_one(self, kind: str, address: str, tmp_path: Any) -> str:
        record = {kind: address, f"{kind}_verified": True, "app_metadata": GROUPS}
        (tmp_path / "users.jsonl").write_text(json.dumps(record))
        result = run_command(self.app, "users", "import", str(tmp_path / "users.jsonl"))
        assert result.exit_code == 0, result.output
        return ""

    def own_change(self, kind: str, address: str) -> str:
        session = self.alice.sign_in()
        assert session.put("/user", json={kind: address}).status_code == 200
        message = self.outbox.last(address)
        if kind == "email":
            assert hand_in(self.client, "email_change", message.token).status_code == 200
        else:
            assert type_in(self.client, "phone_change", address, message.code).status_code == 200
        return self.alice.id


DOORS: dict[str, Callable[..., str]] = {
    "invitation": Doors.invite,
    "creation": Doors.create,
    "change by an administrator": Doors.change,
    "own change": Doors.own_change,
    "import": Doors.import_one,
}


PAIRS = [
    (maker, door)
    for maker, (_path, body) in MAKERS.items()
    for door in DOORS
    if "email" in body or door != "invitation"
]


@pytest.mark.parametrize(("maker", "door"), PAIRS)
def test_unproved_user_gives_way(client, service_role, alice, outbox, app, database, tmp_path, maker, door):
    path, body = MAKERS[maker]
    kind = "phone" if "phone" in body else "email"
    address = body[kind]
    assert client.post(path, json=body).status_code in (200, 201)
    strangers_id, link = (
        database.value(f"SELECT id FROM users WHERE {kind} = %(a)s", a=address),
        outbox.last(),
    )
    doors = Doors(client, service_role, alice, outbox, app)
    options = {"tmp_path": tmp_path} if door == "import" else {}
    id = DOORS[door](doors, kind, address, **options)
    owner = database.one(f"SELECT id, made_by FROM users WHERE {kind} = %(a)s", a=address)
    assert owner.id == (id or owner.id) != strangers_id
    reason = "SELECT details ->> 'because' FROM audit_log WHERE action = 'user_deleted'"
    assert database.value(reason) == ("proved_by_other" if door == "own change" else "created_again")
    # The stranger's credentials open nothing.
    if kind == "email":
        assert_dead(client, link.kind, link.token)
        assert_error(sign_in(client, DAVE, "Mallorys-Horse-1"), 401, "invalid_credentials")
