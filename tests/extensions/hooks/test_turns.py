"""Turns of hook calls: one user's requests do not make others wait, and hold no connection."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from auth.extensions.hooks import turns
from auth.web.asked import Asked
from auth.web.context import EXTENSION
from tests.support import api_keys
from tests.support.answers import assert_error
from tests.support.http_target import HttpTarget

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class SlowHook(HttpTarget):
    """Takes 150 ms, and knows how many calls there were at once."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.running = self.most = 0
        self.answer = self.take_time

    def take_time(self, event):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.15)
        with self.lock:
            self.running -= 1
        return {"claims": event["claims"]}


@pytest.fixture
def hook():
    with SlowHook() as hook:
        yield hook


@pytest.fixture
def settings(hook):
    name = "AUTH_HOOK_CUSTOM_ACCESS_TOKEN"
    return {name: hook.url, f"{name}_SECRETS": SECRET, "AUTH_API_KEYS": "true"}


def test_flood_of_one_key_keeps_no_other_user_waiting(make_app, settings, hook, alice, bob, monkeypatch):
    # The flood ends before all of it has had its turn.
    monkeypatch.setattr(turns, "_PATIENCE", 1.9)
    app = make_app(**settings)
    _id, key = api_keys.make_key(alice.sign_in(client=app.test_client()))
    hook.most = 0
    with ThreadPoolExecutor(150) as threads:
        flood = [threads.submit(lambda: api_keys.use(app.test_client(), key).status_code) for _ in range(150)]
        others = [bob.try_to_sign_in(client=app.test_client()).status_code for _ in range(4)]
    statuses = {each.result() for each in flood}
    assert others == [200] * 4
    assert statuses <= {200, 503}
    assert 200 in statuses
    # One call of each user at a time.
    assert hook.most <= 2


def test_key_is_exchanged_as_often_as_a_session_is_refreshed(make_app, settings, alice, hook):
    hook.answer = lambda event: {"claims": event["claims"]}
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_REFRESH": "3 per 5 minutes"}
    client = make_app(**settings, **limits).test_client()
    session = alice.sign_in(client=client)
    (_id, key), (_other, second) = api_keys.make_key(session), api_keys.make_key(session, "Other")
    answers = [api_keys.use(client, key) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[0].headers["X-RateLimit-Remaining"] == "2"
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 300
    assert api_keys.use(client, second).status_code == 200
    # The hook is not called beyond the limit.
    assert len(hook.requests) == 1 + 3 + 1


def test_no_connection_is_held_while_the_hook_answers(make_app, settings, alice, hook):
    app = make_app(**settings)
    lent = []

    def answer(event):
        lent.append(app.extensions[EXTENSION].db.pool.lent)
        return {"claims": event["claims"]}

    hook.answer = answer
    session = alice.sign_in(client=app.test_client())
    _id, key = api_keys.make_key(session)
    session.refreshed()
    api_keys.token_of(app.test_client(), key)
    assert lent == [0] * 3


def test_request_that_waits_too_long_for_its_turn_is_unavailable(
    make_app, settings, alice, bob, hook, monkeypatch
):
    monkeypatch.setattr(turns, "_PATIENCE", 0.2)
    app = make_app(**settings)
    session = alice.sign_in(client=app.test_client())
    calls = len(hook.requests)
    parts = app.extensions[EXTENSION]
    hook_setting = parts.settings.hook("custom_access_token")
    asked = Asked(parts, {"ip": None, "network": None, "user_agent": None}, "service_role")
    with turns.asking(asked, hook_setting, alice.id):
        response = session.refresh()
        assert bob.try_to_sign_in(client=app.test_client()).status_code == 200
    assert_error(response, 503, "service_unavailable")
    assert response.headers["Retry-After"] == "2"
    assert len(hook.requests) == calls + 1
    assert session.refreshed().get("/user").status_code == 200
    # No semaphore is kept after its last turn.
    assert [key for key in turns._semaphores if key[0] == hook_setting] == []
