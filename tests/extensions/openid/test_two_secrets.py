"""Replacing a client's secret: the old one ends at once, or is accepted for a day more."""

from datetime import datetime

import pytest

from auth.delivery import janitor
from tests.support.answers import A_CLIENT_SECRET, A_TIMESTAMP, DAY, assert_ok, oauth_client
from tests.support.commands import run_command
from tests.support.elapsed import assert_left
from tests.support.openid import REDIRECT_URI, Client


@pytest.fixture
def first(client, service_role) -> Client:
    answer = client.post("/admin/oauth/clients", json={"redirect_uris": [REDIRECT_URI]}, headers=service_role)
    return Client(answer.json["client_id"], answer.json["client_secret"])


@pytest.fixture
def rotate(client, service_role):
    """Replace the secret of a client, and return the client with the new one, and its object."""

    def rotate(first, **body):
        path = f"/admin/oauth/clients/{first.id}/regenerate_secret"
        answer = client.post(path, json=body, headers=service_role)
        assert answer.status_code == 200, answer.text
        return Client(first.id, answer.json["client_secret"]), answer.json

    return rotate


@pytest.fixture
def secrets_work(client):
    """Return whether the service accepts the secret of each client. All routes ask the same function."""
    return lambda *clients: [
        each.post(client, "/introspect", token="x").status_code == 200 for each in clients
    ]


def pass_a_day(database):
    database.run(
        "UPDATE oauth_clients SET previous_secret_expires_at = previous_secret_expires_at - interval '1 day'"
    )


class TestOverlap:
    def test_both_secrets_work_for_a_day(self, first, rotate, secrets_work, database):
        new, answer = rotate(first, overlap=True)
        ends = datetime.fromisoformat(answer["previous_secret_expires_at"])
        assert_left((ends - database.now()).total_seconds(), of=DAY)
        assert secrets_work(first, new) == [True, True]
        pass_a_day(database)
        assert secrets_work(first, new) == [False, True]

    def test_without_an_overlap_the_old_secret_ends_at_once(self, first, rotate, secrets_work):
        new, answer = rotate(first)
        assert ("previous_secret_expires_at" in answer, secrets_work(first, new)) == (False, [False, True])

    def test_next_rotation_ends_the_oldest_or_both(self, first, rotate, secrets_work):
        second, _ = rotate(first, overlap=True)
        third, _ = rotate(second, overlap=True)
        assert secrets_work(first, second, third) == [False, True, True]
        fourth, _ = rotate(third)
        assert secrets_work(first, second, third, fourth) == [False, False, False, True]

    def test_old_secret_is_ended_early_and_that_is_recorded_once(
        self, first, rotate, client, service_role, secrets_work, database
    ):
        new, _ = rotate(first, overlap=True)
        for _ in range(2):
            path = f"/admin/oauth/clients/{first.id}/previous_secret"
            assert client.delete(path, headers=service_role).status_code == 204
        assert secrets_work(first, new) == [False, True]
        rows = database.all("SELECT action FROM audit_log WHERE action LIKE 'client_secret_%%' ORDER BY at")
        assert rows == [("client_secret_replaced",), ("client_secret_ended",)]


class TestShown:
    def test_object_has_the_end_while_the_old_secret_works(
        self, first, rotate, client, service_role, database
    ):
        expected = oauth_client(redirect_uris=[REDIRECT_URI])
        _, answer = rotate(first, overlap=True)
        old = {"previous_secret_expires_at": A_TIMESTAMP}
        assert answer == expected | old | {"client_secret": A_CLIENT_SECRET}
        paths = ("/admin/oauth/clients", f"/admin/oauth/clients/{first.id}")
        listing, response = (client.get(path, headers=service_role) for path in paths)
        assert listing.json["clients"] == [expected | old]
        assert_ok(response, expected | old)
        pass_a_day(database)
        assert_ok(client.get(paths[1], headers=service_role), expected)

    def test_command_says_when_the_old_secret_ends_and_ends_it(self, app, first, secrets_work, database):
        def run(*arguments):
            result = run_command(app, "clients", *arguments)
            assert result.exit_code == 0, result.output
            return result

        rotated = run("rotate", first.id, "--overlap")
        ends = f"{database.value('SELECT previous_secret_expires_at FROM oauth_clients'):%Y-%m-%d %H:%M:%S}"
        sentence = f"The old secret works until {ends} UTC."
        assert (rotated.stdout, rotated.stderr) == (f"{rotated.stdout.strip()}\n", f"{sentence}\n")
        new = Client(first.id, rotated.stdout.strip())
        assert secrets_work(first, new) == [True, True]
        assert sentence in run("list").stdout
        assert run("end-old-secret", first.id).stdout == f"{first.id} has no old secret anymore.\n"
        assert secrets_work(first, new) == [False, True]
        assert "old secret" not in run("list").stdout


def test_janitor_forgets_old_secrets_that_have_ended(first, rotate, parts, database):
    rotate(first, overlap=True)
    count_old_secrets = "SELECT count(previous_secret_hash) FROM oauth_clients"
    janitor.keep_house(parts.settings, parts.db, parts.sealer)
    assert database.value(count_old_secrets) == 1
    pass_a_day(database)
    janitor.keep_house(parts.settings, parts.db, parts.sealer)
    assert database.value(count_old_secrets) == 0
