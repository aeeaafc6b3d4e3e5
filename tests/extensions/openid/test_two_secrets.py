"""Replacing a client's secret: the old one ends at once, or is accepted for a day more."""

from datetime import datetime

import pytest

from auth.delivery import janitor
from tests.support.answers import A_CLIENT_SECRET, A_TIMESTAMP, DAY, assert_ok, oauth_client
from tests.support.commands import run_command
from tests.support.elapsed import assert_left
from tests.support.openid import REDIRECT_URI, Client, granted_code, tokens_of

ALL_GRANTS = ["authorization_code", "refresh_token", "client_credentials"]
METHODS = ("client_secret_basic", "client_secret_post")
# Each as the HTTP status of a request with the right and with a wrong secret.
RIGHT = {"code": 200, "refresh": 200, "client_credentials": 200, "introspect": 200, "revoke": 200}
WRONG = dict.fromkeys(RIGHT, 401)


@pytest.fixture(params=METHODS)
def made(request, client, service_role) -> Client:
    body = {
        "redirect_uris": [REDIRECT_URI],
        "grant_types": ALL_GRANTS,
        "token_endpoint_auth_method": request.param,
    }
    answer = client.post("/admin/oauth/clients", json=body, headers=service_role)
    return Client(answer.json["client_id"], answer.json["client_secret"], request.param)


@pytest.fixture
def rotate(client, service_role):
    """Replace the secret of a client, and return the client with the new one, and its object."""

    def rotate(made, **body):
        path = f"/admin/oauth/clients/{made.id}/regenerate_secret"
        answer = client.post(path, json=body, headers=service_role)
        assert answer.status_code == 200, answer.text
        return Client(made.id, answer.json["client_secret"], made.method), answer.json

    return rotate


@pytest.fixture
def end(client, service_role):
    def end(made):
        answer = client.delete(f"/admin/oauth/clients/{made.id}/previous_secret", headers=service_role)
        assert (answer.status_code, answer.data) == (204, b"")

    return end


@pytest.fixture
def statuses(client, database, alice):
    """Return the status of each route that takes a secret, for a client that was given real tokens."""

    def statuses(known, current):
        tokens = tokens_of(client, database, current, alice)
        given = {"token": tokens["access_token"]}
        answers = {
            "code": known.redeem(client, granted_code(database, current, alice.open_session())),
            "refresh": known.refresh(client, tokens["refresh_token"]),
            "client_credentials": known.post(client, "/oauth/token", grant_type="client_credentials"),
            "introspect": known.post(client, "/introspect", **given),
            "revoke": known.post(client, "/oauth/revoke", **given),
        }
        return {name: answer.status_code for name, answer in answers.items()}

    return statuses


def pass_a_day(database):
    database.run(
        "UPDATE oauth_clients SET previous_secret_expires_at = previous_secret_expires_at - interval '1 day'"
    )


class TestOverlap:
    def test_both_secrets_work_at_every_route_for_a_day(self, made, rotate, statuses, database):
        new, shown = rotate(made, overlap=True)
        ends = datetime.fromisoformat(shown["previous_secret_expires_at"])
        assert_left((ends - database.now()).total_seconds(), of=DAY)
        assert (statuses(made, new), statuses(new, new)) == (RIGHT, RIGHT)
        other_method = next(method for method in METHODS if method != made.method)
        assert statuses(Client(made.id, made.secret, other_method), new) == WRONG
        pass_a_day(database)
        assert (statuses(made, new), statuses(new, new)) == (WRONG, RIGHT)

    def test_without_it_the_old_secret_ends_at_once(self, made, rotate, statuses):
        for body in ({}, {"overlap": False}):
            new, shown = rotate(made, **body)
            assert "previous_secret_expires_at" not in shown
            assert (statuses(made, new), statuses(new, new)) == (WRONG, RIGHT)

    def test_next_rotation_ends_the_oldest_or_both(self, made, rotate, statuses):
        second, _ = rotate(made, overlap=True)
        third, _ = rotate(second, overlap=True)
        assert [statuses(each, third) for each in (made, second, third)] == [WRONG, RIGHT, RIGHT]
        fourth, _ = rotate(third)
        assert [statuses(each, fourth) for each in (made, second, third)] == [WRONG, WRONG, WRONG]

    def test_old_secret_is_ended_early_and_that_is_recorded_once(self, made, rotate, end, statuses, database):
        new, _ = rotate(made, overlap=True)
        for _ in range(2):
            end(new)
        assert (statuses(made, new), statuses(new, new)) == (WRONG, RIGHT)
        about = {"client_id": made.id, "client": ""}
        recorded = (
            "SELECT action, details FROM audit_log WHERE action LIKE 'client_secret_%%' ORDER BY at, id"
        )
        assert database.all(recorded) == [
            ("client_secret_replaced", about | {"overlap": True}),
            ("client_secret_ended", about),
        ]

    def test_change_of_the_client_keeps_both_and_its_deletion_neither(
        self, made, rotate, client, service_role, statuses
    ):
        new, shown = rotate(made, overlap=True)
        path = f"/admin/oauth/clients/{made.id}"
        changed = client.put(path, json={"client_name": "Wiki"}, headers=service_role).json
        assert changed["previous_secret_expires_at"] == shown["previous_secret_expires_at"]
        assert statuses(made, new) == RIGHT
        client.delete(path, headers=service_role)
        for known in (made, new):
            answer = known.post(client, "/introspect", token="x")
            assert answer.status_code == 401


class TestShown:
    def test_object_has_the_end_while_the_old_secret_works(
        self, made, rotate, client, service_role, database
    ):
        expected = oauth_client(
            redirect_uris=[REDIRECT_URI], grant_types=ALL_GRANTS, token_endpoint_auth_method=made.method
        )
        _, shown = rotate(made, overlap=True)
        old = {"previous_secret_expires_at": A_TIMESTAMP}
        assert shown == expected | old | {"client_secret": A_CLIENT_SECRET}
        paths = ("/admin/oauth/clients", f"/admin/oauth/clients/{made.id}")
        many, one = (client.get(path, headers=service_role) for path in paths)
        assert many.json["clients"] == [expected | old]
        assert_ok(one, expected | old)
        pass_a_day(database)
        assert_ok(client.get(paths[1], headers=service_role), expected)

    def test_command_says_until_when_and_ends_it(self, app, made, statuses, database):
        def run(*arguments):
            result = run_command(app, "clients", *arguments)
            assert result.exit_code == 0, result.output
            return result

        rotated = run("rotate", made.id, "--overlap")
        ends = f"{database.value('SELECT previous_secret_expires_at FROM oauth_clients'):%Y-%m-%d %H:%M:%S}"
        says = f"The old secret works until {ends} UTC."
        assert (rotated.stdout, rotated.stderr) == (f"{rotated.stdout.strip()}\n", f"{says}\n")
        new = Client(made.id, rotated.stdout.strip(), made.method)
        assert statuses(made, new) == RIGHT
        assert says in run("list").stdout
        assert run("end-old-secret", made.id).stdout == f"{made.id} has no old secret anymore.\n"
        assert statuses(made, new) == WRONG
        assert "old secret" not in run("list").stdout


class TestKept:
    def test_janitor_forgets_ended_secrets_of_clients_and_webhooks(self, made, rotate, parts, database):
        rotate(made, overlap=True)
        database.run(
            "INSERT INTO webhooks (id, url, events, secret, previous_secret, previous_secret_expires_at)"
            " SELECT gen_random_uuid(), 'https://' || ends, '{user.created}', '', 'old', now() + ends"
            " FROM unnest('{-1 minute,1 minute}'::interval[]) AS ends"
        )
        left = (
            "SELECT (SELECT count(previous_secret_hash) FROM oauth_clients) AS of_clients,"
            " count(previous_secret) AS of_webhooks FROM webhooks"
        )
        janitor.keep_house(parts.db, parts.sealer)
        assert database.one(left) == (1, 1)
        pass_a_day(database)
        janitor.keep_house(parts.db, parts.sealer)
        assert database.one(left) == (0, 1)
