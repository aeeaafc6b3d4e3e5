"""Replacing a client's secret: the old one ends at once, or is accepted for a day more."""

from datetime import datetime

import pytest

from auth.delivery import janitor
from tests.support.answers import A_CLIENT_SECRET, A_TIMESTAMP, DAY, assert_ok, oauth_client
from tests.support.commands import run_command
from tests.support.elapsed import assert_left
from tests.support.openid import REDIRECT_URI, Client


@pytest.fixture
def made(client, service_role) -> Client:
    answer = client.post("/admin/oauth/clients", json={"redirect_uris": [REDIRECT_URI]}, headers=service_role)
    return Client(answer.json["client_id"], answer.json["client_secret"])


@pytest.fixture
def rotate(client, service_role):
    """Replace the secret of a client, and return the client with the new one, and its object."""

    def rotate(made, **body):
        path = f"/admin/oauth/clients/{made.id}/regenerate_secret"
        answer = client.post(path, json=body, headers=service_role)
        assert answer.status_code == 200, answer.text
        return Client(made.id, answer.json["client_secret"]), answer.json

    return rotate


@pytest.fixture
def works(client):
    """Whether the service accepts each secret. All routes ask the same function."""
    return lambda *clients: [
        each.post(client, "/introspect", token="x").status_code == 200 for each in clients
    ]


def pass_a_day(database):
    database.run(
        "UPDATE oauth_clients SET previous_secret_expires_at = previous_secret_expires_at - interval '1 day'"
    )


class TestOverlap:
    def test_both_secrets_work_for_a_day(self, made, rotate, works, database):
        new, shown = rotate(made, overlap=True)
        ends = datetime.fromisoformat(shown["previous_secret_expires_at"])
        assert_left((ends - database.now()).total_seconds(), of=DAY)
        assert works(made, new) == [True, True]
        pass_a_day(database)
        assert works(made, new) == [False, True]

    def test_without_it_the_old_secret_ends_at_once(self, made, rotate, works):
        new, shown = rotate(made)
        assert ("previous_secret_expires_at" in shown, works(made, new)) == (False, [False, True])

    def test_next_rotation_ends_the_oldest_or_both(self, made, rotate, works):
        second, _ = rotate(made, overlap=True)
        third, _ = rotate(second, overlap=True)
        assert works(made, second, third) == [False, True, True]
        fourth, _ = rotate(third)
        assert works(made, second, third, fourth) == [False, False, False, True]

    def test_old_secret_is_ended_early_and_that_is_recorded_once(
        self, made, rotate, client, service_role, works, database
    ):
        new, _ = rotate(made, overlap=True)
        for _ in range(2):
            path = f"/admin/oauth/clients/{made.id}/previous_secret"
            assert client.delete(path, headers=service_role).status_code == 204
        assert works(made, new) == [False, True]
        acts = database.all("SELECT action FROM audit_log WHERE action LIKE 'client_secret_%%' ORDER BY at")
        assert acts == [("client_secret_replaced",), ("client_secret_ended",)]


class TestShown:
    def test_object_has_the_end_while_the_old_secret_works(
        self, made, rotate, client, service_role, database
    ):
        expected = oauth_client(redirect_uris=[REDIRECT_URI])
        _, shown = rotate(made, overlap=True)
        old = {"previous_secret_expires_at": A_TIMESTAMP}
        assert shown == expected | old | {"client_secret": A_CLIENT_SECRET}
        paths = ("/admin/oauth/clients", f"/admin/oauth/clients/{made.id}")
        many, one = (client.get(path, headers=service_role) for path in paths)
        assert many.json["clients"] == [expected | old]
        assert_ok(one, expected | old)
        pass_a_day(database)
        assert_ok(client.get(paths[1], headers=service_role), expected)

    def test_command_says_until_when_and_ends_it(self, app, made, works, database):
        def run(*arguments):
            result = run_command(app, "clients", *arguments)
            assert result.exit_code == 0, result.output
            return result

        rotated = run("rotate", made.id, "--overlap")
        ends = f"{database.value('SELECT previous_secret_expires_at FROM oauth_clients'):%Y-%m-%d %H:%M:%S}"
        says = f"The old secret works until {ends} UTC."
        assert (rotated.stdout, rotated.stderr) == (f"{rotated.stdout.strip()}\n", f"{says}\n")
        new = Client(made.id, rotated.stdout.strip())
        assert works(made, new) == [True, True]
        assert says in run("list").stdout
        assert run("end-old-secret", made.id).stdout == f"{made.id} has no old secret anymore.\n"
        assert works(made, new) == [False, True]
        assert "old secret" not in run("list").stdout


def test_janitor_forgets_secrets_of_clients_that_have_ended(made, rotate, parts, database):
    rotate(made, overlap=True)
    left = "SELECT count(previous_secret_hash) FROM oauth_clients"
    janitor.keep_house(parts.settings, parts.db, parts.sealer)
    assert database.value(left) == 1
    pass_a_day(database)
    janitor.keep_house(parts.settings, parts.db, parts.sealer)
    assert database.value(left) == 0
