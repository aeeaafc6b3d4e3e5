"""Clients of all pages, with HTTP only or in Chromium, for the tour of tests/support/page_tour.py."""

import html
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from auth.web.cookies import OFFERED
from tests.support.browser import Browser
from tests.support.links import Outbox
from tests.support.pages import Visitor
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Person, register

Check = Callable[[str], None]


class PageClient:
    """One user at the pages, with the actions of the mail, the API and the clock around them."""

    inbox: str  # the path of the printed link

    def __init__(
        self,
        origin: str,
        application: str,
        client: Any,
        service_role: Any,
        outbox: Outbox,
        rows: Rows,
        deliver: Callable[[], Any],
    ):
        self.origin, self.application = origin, application
        self.client, self.service_role, self.outbox, self.rows = client, service_role, outbox, rows
        self.deliver = deliver
        self.check: Check = lambda name: None
        self.language = "en"

    def shows(self, name: str, sentence: str) -> None:
        """Check the page, which shows the sentence, in English."""
        if self.language == "en":
            assert sentence in self.text, f"{name}: {self.text}"
        self.check(name)

    def person(self, email: str = "alice@example.com") -> Person:
        return register(self.client, self.service_role, email)

    def sign_in(self, email: str = "alice@example.com", *, is_offered: bool = False) -> None:
        self.forget(is_offered=is_offered)
        self.visit("/sign-in")
        self.press("sign-in", email=email, password=PASSWORD)

    def remove(self, kind: str, sentence: str) -> None:
        """Remove the first thing of a kind, by the link and the page that says what follows."""
        self.visit(self.link_to(f"account/remove?kind={kind}"))
        self.shows(f"remove, {kind}", sentence)
        self.press("account/remove")

    def link_to(self, path: str) -> str:
        """Return path and query of the first link of the page whose URL contains this."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        raise NotImplementedError

    def forget(self, *, is_offered: bool = False) -> None:
        """Use a new browser. Unless `is_offered`, it has answered the offer of a passkey, and is asked no more."""
        raise NotImplementedError

    def visit(self, path: str) -> None:
        raise NotImplementedError

    def press(self, action: str, /, **fields: str) -> None:
        """Fill in and submit the first form with an action that ends so."""
        raise NotImplementedError


class HttpPageClient(PageClient):
    """Sends forms as they are in the pages, like a browser without JavaScript."""

    def __init__(self, app: Any, *around: Any) -> None:
        super().__init__("http://localhost:8000", "https://app.example.com/signed-in", *around)
        self.app, self.visitor = app, Visitor(app)
        self.forget()

    @property
    def text(self) -> str:
        markup = re.sub(r"<[^>]*>", "", self.visitor.page.text)
        return " ".join(html.unescape(markup).split())

    def forget(self, *, is_offered: bool = False) -> None:
        self.visitor.cookies = [each for each in self.visitor.cookies if "language" in each.name]
        if not is_offered:
            self.visitor.plant(OFFERED, "1")

    def speak(self, language: str) -> None:
        self.language = language
        self.visit("/sign-in")
        self.press("preferences", language=language)

    def link_to(self, path: str) -> str:
        return self.visitor.link_to(path).removeprefix(self.origin)

    def visit(self, path: str) -> None:
        self.visitor.visit(path)

    def press(self, action: str, /, **fields: str) -> None:
        self.visitor.press(action, **fields)


class ChromiumPageClient(PageClient):
    """Clicks on the buttons. Turns off the browser's checks of fields, to see the service's pages."""

    def __init__(self, page: Browser, origin: str, *around: Any) -> None:
        super().__init__(origin, f"{origin.replace('localhost', '127.0.0.1')}/health", *around)
        self.page = page
        self.forget()

    def shows(self, name: str, sentence: str) -> None:
        # A page may send the browser to the next one.
        with suppress(AssertionError):
            self.page.wait(lambda: self.language != "en" or sentence in self.text)
        super().shows(name, sentence)

    @property
    def text(self) -> str:
        return " ".join(self.page.run("document.body.textContent").split())

    def forget(self, *, is_offered: bool = False) -> None:
        self.page.forget()
        if not is_offered:
            self.page.set_cookie(self.origin, OFFERED, "1")

    def link_to(self, path: str) -> str:
        return self.page.run(f"document.querySelector('a[href*=\"{path}\"]').href").removeprefix(self.origin)

    def visit(self, path: str) -> None:
        if "#" in path:  # a page that differs only in its fragment is not loaded again
            self.page.open("about:blank")
        self.page.open(self.origin + path)

    def press(self, action: str, /, **fields: str) -> None:
        is_found = self.page.run(_FILL_IN.format(action=json.dumps(action), fields=json.dumps(fields)))
        assert is_found, f"no form leads to {action}: {self.page.text}"
        self.page.click_on("window.pressed")
        # Wait, too, until a page that redirects has sent the browser to another website.
        self.page.wait(
            lambda: self.page.run("!('pressed' in window || document.querySelector('[http-equiv=refresh]'))")
        )


_FILL_IN = """((action, fields) => {{
  const leads = (target) => target && new URL(target, location).pathname.endsWith("/" + action);
  const buttons = (form) => [...form.elements].filter((each) => each.type === "submit");
  const target = (button) => button.getAttribute("formaction") || button.form.getAttribute("action");
  const form = [...document.forms].find((each) => buttons(each).some((button) => leads(target(button))));
  if (!form) return false;
  form.noValidate = true;
  let button = buttons(form).find((each) => leads(target(each)));
  if (button.closest("details")) button.closest("details").open = true;
  for (const [name, value] of Object.entries(fields)) {{
    const field = form.querySelector(`[name="${{name}}"]`);
    if (field.localName === "button") button = form.querySelector(`[name="${{name}}"][value="${{value}}"]`);
    else if (field.type === "checkbox") field.checked = true;
    else field.value = value;
  }}
  // Without an authenticator, a passkey is asked for on a page of its own.
  if (form.dataset.challenge) form.dataset.challenge = "nowhere";
  window.pressed = button;
  return true;
}})({action}, {fields})"""
