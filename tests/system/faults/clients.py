"""Clients that use every part of the service, and record what its responses promise."""

import contextlib
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.server import at_once
from tests.support.users import PASSWORD, session_of
from tests.system.faults.history import ClientSession, History, Person, State, Unanswered
from tests.system.faults.mail import Post

ADMIN = {"apikey": SERVICE_ROLE_KEY}
# The number of threads that compete for a single-use secret.
RIVALS = 3
_REFRESH = "/token?grant_type=refresh_token"
_SESSION_AND_COUNTER = 32  # characters of base64
_LINK = re.compile(r"^https?://\S+[?&]token=([\w-]+)", re.MULTILINE)


class Client:
    """A sequence of users, one at a time: each signs up, uses several sessions, changes the account, and
    leaves.
    """

    def __init__(self, history: History, post: Post, name: str, seed: int) -> None:
        self._history = history
        self._post = post
        self._name = name
        self._random = random.Random(f"{name} {seed}")
        self._lives = 0

    def live(self) -> bool:
        """Play one user, and return True; False if a change got no answer, which ends the user's life."""
        self._lives += 1
        person = self._history.person(f"{self._name}-{self._lives}@example.com")
        with contextlib.suppress(Unanswered):
            self._random.choice([self._sign_up, self._be_made])(person)
            steps = [self._look, self._change, self._log_in, self._refresh, self._follow_link]
            steps += [self._change_password, self._log_out]
            for _ in range(self._random.randint(2, 12)):
                if person.state.confirmed:
                    self._random.choice(steps)(person)
            if person.state.confirmed:
                self._random.choice([self._look, self._be_banned, self._leave, self._log_out])(person)
            return True
        return False

    # The steps of a life.

    def _sign_up(self, person: Person) -> None:
        number = self._number()
        state_after = State(exists=True, number=number, password=PASSWORD).with_mail("signup")
        body = {"email": person.email, "password": PASSWORD, "data": {"n": number}}
        person.id = self._change_by(person, state_after, "POST", "/signup", expected=201, json=body).json[
            "id"
        ]
        # A late mail leaves the user unconfirmed, but must still arrive.
        text = self._post.wait_for(person.email, 2)
        if text and (match := _LINK.search(text)):
            self._spend(person, "signup", match[1], person.state.but(confirmed=True))

    def _be_made(self, person: Person) -> None:
        number = self._number()
        state_after = State(exists=True, confirmed=True, number=number, password=PASSWORD)
        body = {"email": person.email, "password": PASSWORD, "email_confirm": True}
        body |= {"user_metadata": {"n": number}}
        person.id = self._change_by(person, state_after, "POST", "/admin/users", json=body).json["id"]

    def _look(self, person: Person) -> None:
        for credentials in person.live():
            answer = self._ask("GET", "/user", by=credentials)
            profile = _is_answer(answer) and (answer.status_code, (answer.json or {}).get("user_metadata"))
            if profile and profile != (200, {"n": person.state.number}):
                self._violate(person, f"should see {person.state}", answer)

    def _change(self, person: Person) -> None:
        for credentials in self._any_or_none(person.live()):
            number = self._number()
            after = person.state.but(number=number)
            self._change_by(person, after, "PUT", "/user", by=credentials, json={"data": {"n": number}})

    def _change_password(self, person: Person) -> None:
        for credentials in self._any_or_none(person.live()):
            password = f"Another-Horse-{self._number()}"
            after = person.state.without_sessions(but=credentials.id).with_mail("password_changed")
            after = after.but(password=password)
            self._change_by(person, after, "PUT", "/user", by=credentials, json={"password": password})
            self._check_dead(person)

    def _log_in(self, person: Person) -> None:
        body = {"email": person.email, "password": person.state.password}
        after = person.state.but(untold=1)
        self._hold(person, self._change_by(person, after, "POST", "/token?grant_type=password", json=body))

    def _refresh(self, person: Person) -> None:
        """Refresh in two tabs at once: both answers have tokens of the same session and counter.

        Only their MACs may differ, because the key may be replaced between the answers.
        """
        for credentials in self._any_or_none(person.live()):
            answers = self._rush(_REFRESH, {"refresh_token": credentials.session.refresh_token}, 2)
            successes = [answer for answer in answers if answer is not None and answer.status_code == 200]
            self._judge(person, answers, successes, person.state.refreshed(credentials.id), "refresh")
            if len({answer.json["refresh_token"][:_SESSION_AND_COUNTER] for answer in successes}) != 1:
                self._violate(person, "two refresh tokens for one", successes[0])
            credentials.session = session_of(self._history.client, successes[0])
            credentials.refresh_tokens.append(credentials.session.refresh_token)
            person.state = person.state.refreshed(credentials.id)

    def _follow_link(self, person: Person) -> None:
        answer = self._ask("POST", "/admin/generate_link", json={"type": "magiclink", "email": person.email})
        if _is_answer(answer) and answer.status_code == 200:
            self._spend(person, "magiclink", answer.json["hashed_token"], person.state)
        elif _is_answer(answer):
            self._violate(person, "no link", answer)

    def _spend(self, person: Person, type: str, token: str, state: State) -> None:
        """Spend one link in several threads: one of them succeeds."""
        answers = self._rush("/verify", {"type": type, "token_hash": token}, RIVALS)
        successes = [answer for answer in answers if answer is not None and answer.status_code == 200]
        self._history.note_spent(token, len(successes))
        self._judge(person, answers, successes, state.but(untold=1), f"spend {type}")
        person.state = state
        self._hold(person, successes[0])

    def _log_out(self, person: Person) -> None:
        for credentials in self._any_or_none(person.live()):
            by_user: tuple[str, ClientSession | None] = ("/logout", credentials)
            path, by = self._random.choice([by_user, (f"/admin/users/{person.id}/logout", None)])
            self._change_by(person, person.state.without_sessions(), "POST", path, by=by)
            self._check_dead(person)

    def _be_banned(self, person: Person) -> None:
        after, body = person.state.without_sessions().but(banned=True), {"ban_duration": "permanent"}
        self._change_by(person, after, "PUT", f"/admin/users/{person.id}", json=body)
        self._check_dead(person)

    def _leave(self, person: Person) -> None:
        for credentials in self._any_or_none(person.live()) or [None]:
            path = "/user" if credentials else f"/admin/users/{person.id}"
            self._change_by(person, State(mails=person.state.mails), "DELETE", path, by=credentials)
            self._check_dead(person)

    # Recording.

    def _change_by(
        self, person: Person, after: State, method: str, path: str, expected: int = 200, **options: Any
    ) -> Any:
        answer = self._ask(method, path, **options)
        successes = [answer] if _is_answer(answer) and answer.status_code == expected else []
        self._judge(person, [answer], successes, after, f"{method} {path.partition('/admin/users/')[0]}")
        person.state = after
        return answer

    def _judge(
        self, person: Person, answers: list[Any], successes: list[Any], after: State, request: str
    ) -> None:
        """Raise `Unanswered` unless an answer is a success. If all are refusals, note a violation; without an answer, the
        person is in doubt.
        """
        if successes:
            return
        if all(map(_is_answer, answers)):
            self._violate(person, f"{request} is refused", answers[0])
            raise Unanswered
        person.after, person.unanswered = after, request
        raise Unanswered

    def _hold(self, person: Person, answer: Any) -> None:
        session = session_of(self._history.client, answer)
        person.sessions.append(ClientSession(session, [session.refresh_token]))
        person.state = person.state.with_session(session.id).but(untold=0)

    def _check_dead(self, person: Person) -> None:
        """Check that, right after the answer, no worker accepts a revoked token."""
        for credentials in person.dead():
            body = {"refresh_token": credentials.session.refresh_token}
            for answer in (self._ask("GET", "/user", by=credentials), self._ask("POST", _REFRESH, json=body)):
                if answer is not None and answer.status_code == 200:
                    self._violate(person, "is still signed in", answer)

    def _rush(self, path: str, body: dict[str, str], count: int) -> list[Any]:
        return at_once(count, lambda _: self._ask("POST", path, json=body))

    def _ask(self, method: str, path: str, by: ClientSession | None = None, **options: Any) -> Any:
        """Request as a session, or as an administrator where the path is for administrators."""
        headers = by.session.authorization if by else ADMIN if path.startswith("/admin/") else {}
        return self._history.ask(method, path, headers=headers, **options)

    def _any_or_none(self, choices: list[ClientSession]) -> list[Any]:
        """Return a list of one random choice, or of none if there is none."""
        return [self._random.choice(choices)] if choices else []

    def _number(self) -> int:
        return self._random.randrange(10**9)

    def _violate(self, person: Person, problem: str, answer: Any) -> None:
        self._history.violate(
            f"{person.email}: {problem}: {answer.status_code} {answer.get_data(as_text=True)[:300]}"
        )


def _is_answer(response: Any) -> bool:
    """Return whether a response reveals the outcome of the request."""
    return response is not None and response.status_code != 503


@contextmanager
def load(history: History, post: Post, count: int = 6, seed: int = 1) -> Iterator[Callable[[], None]]:
    """Run `count` clients inside the context, and yield a function that stops them; at the end, wait for their
    requests.
    """
    is_over = threading.Event()

    def run(client: Client) -> None:
        while not is_over.is_set():
            try:
                # While nothing answers, a loop without a pause would only count failures.
                if not client.live():
                    is_over.wait(0.1)
            # An exception must not be mistaken for a missing answer.
            except Exception as error:
                history.violate(f"a client broke: {error!r}")
                raise

    names = [f"c{seed}-{number}" for number in range(count)]
    threads = [
        threading.Thread(target=run, args=(Client(history, post, name, seed),), name=name) for name in names
    ]
    for thread in threads:
        thread.start()
    try:
        yield is_over.set
    finally:
        is_over.set()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads), "a client waits for ever"
