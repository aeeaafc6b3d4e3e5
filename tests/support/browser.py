"""A real browser for the tests: headless Chromium, controlled by the DevTools protocol over a pair of pipes.

The pipes need no port, driver or package: each message is JSON terminated by NUL.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from select import select
from typing import Any, Self

import pytest

from tests.support.processes import wait_until

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Switch off everything except the pages of the test. Chromium's sandbox does not work for root or in most
# containers, and the only pages that it opens are ours.
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-proxy-server",
    "--remote-debugging-pipe",
    # Clicks and keys before the first frame of a page, which a busy machine draws late, would be dropped.
    "--allow-pre-commit-input",
    # Do not wait for the DNS: pages of providers name style sheets on other hosts.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1, EXCLUDE ::1",
]
# Seconds for an answer of the browser, and for a page. A busy machine may stop for several, and a page that waits
# for a link asks again after up to twenty.
_TIMEOUT = 60.0
_PATIENCE = 90.0


def find() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


_MOUSE = "Input.dispatchMouseEvent"
_PLACE = "((box) => [box.x + box.width / 2, box.y + box.height / 2])(aim.getBoundingClientRect())"
# The function by which a page tells that it was clicked.
_TELL = "tellClick"
# After this number of looks, fifty a second, a click counts as dropped.
_LOOKS = 100


class Browser:
    """One tab. Clicks and keys are real input events, so a covered or disabled element cannot be clicked."""

    def __init__(self, program: str, profile: Path, *flags: str) -> None:
        read_by_us, self._written_by_it = os.pipe()
        self._read_by_it, written_by_us = os.pipe()
        self._command = [program, *_FLAGS, *flags, f"--user-data-dir={profile}", "about:blank"]
        self._environment = {"HOME": str(profile), "PATH": os.environ["PATH"]}
        self._in, self._out = read_by_us, written_by_us
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._complaints: list[str] = []
        self._is_touched = False
        self._has_script = True
        # The last press, and the last that became a click.
        self._pressed = self._clicked = 0
        # The ids of all documents so far.
        self._documents: set[str] = set()

    def __enter__(self) -> Self:
        # Chromium speaks the protocol on the descriptors 3 and 4.
        script = f'exec 3<&{self._read_by_it} 4>&{self._written_by_it}; exec "$@"'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "chromium", *self._command],
            pass_fds=(self._read_by_it, self._written_by_it),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(self._read_by_it)
        os.close(self._written_by_it)
        try:
            pages = wait_until(
                lambda: [
                    target
                    for target in self._call("Target.getTargets")["targetInfos"]
                    if target["type"] == "page"
                ],
                _PATIENCE,
            )
            self._attach(pages[0]["targetId"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Kill all its processes at once: there is nothing to save.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def close_tab(self) -> None:
        """Close the tab with everything that it emulates, and continue in a new one."""
        closed, self._session = self._target, None
        self._is_touched, self._has_script = False, True
        self._attach(self._call("Target.createTarget", url="about:blank")["targetId"])
        self._call("Target.closeTarget", targetId=closed)

    def open(self, url: str) -> None:
        """Open a URL, as if typed into the address bar."""
        answer = self._call("Page.navigate", url=url)
        assert not answer.get("errorText"), answer
        # The answer comes while the previous document is still there. Without an id, it stays.
        self.wait(lambda: self.url and answer.get("loaderId", "") in {"", *self._documents})

    def reload(self) -> None:
        self._call("Page.reload")

    def go(self, steps: int) -> None:
        """Go back or forward, as by the browser's buttons."""
        history = self._call("Page.getNavigationHistory")
        entry = history["entries"][history["currentIndex"] + steps]
        self._call("Page.navigateToHistoryEntry", entryId=entry["id"])

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression. The page's CSP does not apply to the protocol.

        A page that is being left may not answer; then the next page evaluates the expression. So an expression must
        not leave the page: click, or use `go`.
        """
        evaluate = partial(
            self._call, "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        answer = wait_until(lambda: _or_none(evaluate), _PATIENCE)
        if "exceptionDetails" in answer:
            raise BrowserError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    @contextmanager
    def on_each_page(self, script: str) -> Iterator[None]:
        """Run a script on each page before the page's own scripts."""
        added = self._call("Page.addScriptToEvaluateOnNewDocument", source=script)
        yield
        # On a page that is being left, Chromium does not know the script.
        self.open("about:blank")
        self._call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])

    def click(self, text: str) -> tuple[float, float]:
        """Click on the visible button or link with this text, and return where."""
        label = """(each) => [...each.querySelectorAll("span[aria-hidden]")].reduce(
          (text, mark) => text.replace(mark.innerText, ""), each.innerText
        ).trim().replace(/\\s+/g, " ")"""
        return self.click_on(
            f"""[...document.querySelectorAll("button, a")].find((each) => ({label})(each) === {json.dumps(text)})"""
        )

    def click_on(self, find: str) -> tuple[float, float]:
        """Click on the element that an expression finds, and return where.

        If the browser has dropped the click, click again. A page that moves the element from under it fails.
        """
        for _ in range(3):
            place = self._press_on(find)
            self._release(place)
            if self._was_clicked():
                return place
            assert tuple(self.run(_PLACE)) == place, f"it moved under the click: {self.run('aim.outerHTML')}"
        raise AssertionError(f"three clicks came to nothing: {self.run('aim.outerHTML')}")

    def _press_on(self, find: str) -> tuple[float, float]:
        """Press the mouse on the element that an expression finds, and return where.

        The press focuses the element. One that did not is repeated: `autofocus`, for example, scrolls the page
        after it has loaded.
        """

        def press() -> tuple[float, float] | None:
            self._pressed += 1
            x, y = self.run(
                f"""(() => {{
                  window.aim = {find};
                  window.isClicked = false;
                  addEventListener("click", (event) => {{
                    if (!aim.contains(event.target)) return;
                    isClicked = true;
                    setTimeout({_TELL}, 0, "{self._pressed}");  // the click submits a form first
                  }}, true);
                  aim.scrollIntoView({{block: "center", behavior: "instant"}});
                  return {_PLACE};
                }})()"""
            )
            if self._is_touched:
                return x, y
            self._call(_MOUSE, **_button("mousePressed", (x, y)))
            return (x, y) if self.run("document.activeElement === aim") else None

        return self.wait(press)

    def _release(self, place: tuple[float, float]) -> None:
        """Release the mouse. Does not wait, because the navigation that a click starts delays the answer."""
        if self._is_touched:  # a finger that stays for half a second presses long, and clicks nothing
            self._send(_MOUSE, **_button("mousePressed", place))
        self._send(_MOUSE, **_button("mouseReleased", place))

    def _was_clicked(self) -> bool:
        """Return whether the page was clicked, or left, within many looks: a busy machine may stop for seconds."""
        if not self._has_script:  # nor listeners
            return True
        looks = count(1)

        def is_told() -> bool:
            return self._clicked == self._pressed

        def look() -> str | None:
            # Chromium does not answer about a page that is being left, which may take as long as the service does.
            parameters = {"expression": "window.aim ? isClicked : null", "returnByValue": True}
            answer = _or_none(lambda: self._call("Runtime.evaluate", unless=is_told, **parameters))
            if is_told() or (answer and answer["result"]["value"] is None):
                return "clicked"
            return "missed" if answer and not answer["result"]["value"] and next(looks) == _LOOKS else None

        return wait_until(look, _PATIENCE) == "clicked"

    def hit(self, place: tuple[float, float]) -> None:
        """Click again on a page that is being left, which runs nothing."""
        self._send(_MOUSE, **_button("mousePressed", place))
        self._send(_MOUSE, **_button("mouseReleased", place))

    def type(self, text: str) -> None:
        """Type into the focused field; `autofocus` takes effect after the page has loaded."""
        self.wait(lambda: self.run("document.activeElement.matches('input')"))
        self._call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key: `Tab`, `Enter`, `/`."""
        code, text = {"Tab": (9, ""), "Enter": (13, "\r"), "/": (191, "/")}[key]
        self._call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, text=text
        )
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Wait until the condition is true on a page whose script has run, and return its value.

        A page that is being left counts as false.
        """
        return wait_until(lambda: _or_none(lambda: self._if_complete(condition())), _PATIENCE)

    def wait_for(self, text: str) -> None:
        """Wait until the page contains a text; on a timeout, fail with what it shows instead."""
        try:
            self.wait(lambda: text in self.text)
        except AssertionError as timeout:
            raise AssertionError(f"no {text!r} on {self.url}: {self.text}") from timeout

    def accessibility_tree(self) -> list[dict[str, Any]]:
        """Return the nodes of the page for screen readers, the root first."""
        return self._call("Accessibility.getFullAXTree")["nodes"]

    def photograph(self) -> str:
        """Return a picture of the window in base64."""
        return self._call("Page.captureScreenshot", format="webp", quality=80)["data"]

    def download_to(self, folder: Path) -> None:
        """Save downloads in a folder."""
        self._call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def complaints(self) -> list[str]:
        """Return the messages on the console since the last call: errors, and violations of CSP."""
        self._call("Target.getTargets")
        complaints, self._complaints = self._complaints, []
        # Chromium reports this if a test typed into another field first.
        return [each for each in complaints if not each.startswith("Autofocus processing was blocked")]

    @property
    def url(self) -> str:
        return self.run("location.href")

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return self.run("document.body.innerText")

    def speak(self, *languages: str) -> None:
        """Set the preferred languages."""
        self._call(
            "Emulation.setUserAgentOverride",
            userAgent=self.run("navigator.userAgent"),
            acceptLanguage=",".join(languages),
        )

    def be_on_a_phone(self) -> None:
        """Emulate Chrome on Android, in English, with a touch screen of 375 by 740 pixels."""
        agent = self.run("navigator.userAgent").replace("X11; Linux x86_64", "Linux; Android 15; Pixel 9")
        self._call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="en")
        self._call("Emulation.setTouchEmulationEnabled", enabled=True)
        self._call("Emulation.setEmitTouchEventsForMouse", enabled=True, configuration="mobile")
        self._is_touched = True
        self.resize(375, 740, mobile=True)

    def resize(
        self, width: int, height: int, *, zoom: float = 1, dark: bool = False, mobile: bool = False
    ) -> None:
        """Set the size of the window in CSS pixels, and the zoom."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=int(width / zoom),
            height=int(height / zoom),
            deviceScaleFactor=zoom,
            mobile=mobile,
        )
        self._call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def forget(self) -> None:
        """Leave the page, whose requests could still set cookies, and delete all cookies."""
        self.open("about:blank")
        self._call("Network.clearBrowserCookies")

    def start_anew(self) -> None:
        """Forget, and undo what an earlier test emulated: speak English, run scripts, have the window's own size."""
        self.without_script(False)
        self.forget()
        self.speak("en")
        self._call("Emulation.clearDeviceMetricsOverride")
        self._call("Emulation.setEmulatedMedia", features=[])
        self.complaints()

    def without_script(self, disabled: bool = True) -> None:
        """Disable JavaScript on pages."""
        self._has_script = not disabled
        self._call("Emulation.setScriptExecutionDisabled", value=disabled)

    def add_authenticator(
        self, *, is_key: bool = False, verifies: bool = True, is_synced: bool = False
    ) -> str:
        """Add an authenticator whose user agrees at once, even if the email field offers a passkey by itself.

        It is built into the device, or a security key, which keeps no passkeys and has no PIN. One that does not
        verify its user has no PIN either. One that is synced says that its passkeys are on other devices, too.
        """
        self._call("WebAuthn.enable")
        transport = "usb" if is_key else "internal"
        traits = {"protocol": "ctap2", "transport": transport, "automaticPresenceSimulation": True}
        abilities = dict.fromkeys(("hasUserVerification", "isUserVerified"), not is_key and verifies)
        abilities["hasResidentKey"] = not is_key
        abilities |= dict.fromkeys(("defaultBackupEligibility", "defaultBackupState"), is_synced)
        return self._call("WebAuthn.addVirtualAuthenticator", options=traits | abilities)["authenticatorId"]

    def kept_credentials(self, authenticator: str) -> list[dict[str, Any]]:
        """Return the passkeys in an authenticator."""
        return self._call("WebAuthn.getCredentials", authenticatorId=authenticator)["credentials"]

    def keep_credential(self, authenticator: str, credential: dict[str, Any]) -> None:
        """Put a passkey of another authenticator into this one, as a password manager does on each device."""
        self._call("WebAuthn.addCredential", authenticatorId=authenticator, credential=credential)

    def touch(self, authenticator: str, agrees: bool) -> None:
        """Set whether the authenticator's user agrees at once."""
        self._call("WebAuthn.setAutomaticPresenceSimulation", authenticatorId=authenticator, enabled=agrees)

    def clear(self, authenticator: str) -> None:
        """Remove the authenticator's passkeys and keys."""
        self._call("WebAuthn.clearCredentials", authenticatorId=authenticator)

    def remove_authenticator(self, authenticator: str) -> None:
        self._call("WebAuthn.removeVirtualAuthenticator", authenticatorId=authenticator)
        self._call("WebAuthn.disable")

    def set_cookie(self, url: str, name: str, value: str) -> None:
        self._call("Network.setCookie", url=url, name=name, value=value)

    def cookies(self, url: str) -> set[str]:
        """Return the names of the cookies that a URL gets."""
        return {each["name"] for each in self._call("Network.getCookies", urls=[url])["cookies"]}

    def cookie_header(self, url: str) -> str:
        """Return what the browser would send to a URL as `Cookie`."""
        cookies = self._call("Network.getCookies", urls=[url])["cookies"]
        return "; ".join(f"{each['name']}={each['value']}" for each in cookies)

    def _attach(self, target: str) -> None:
        answer = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._target, self._session = target, answer["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Runtime.addBinding", name=_TELL)

    def _if_complete(self, value: Any) -> Any:
        return value if value and self.run("document.readyState") == "complete" else None

    def _send(self, method: str, **parameters: Any) -> None:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | (
            {"sessionId": self._session} if self._session else {}
        )
        with suppress(BrokenPipeError):
            os.write(self._out, json.dumps(message).encode() + b"\0")

    def _call(self, method: str, *, unless: Callable[[], bool] = lambda: False, **parameters: Any) -> Any:
        """Return the browser's answer, or None once `unless` is true."""
        self._send(method, **parameters)
        deadline = time.monotonic() + _TIMEOUT
        while (answer := self._receive(deadline)).get("id") != self._number:
            self._note(answer)
            if unless():
                return None
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _receive(self, deadline: float) -> Any:
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._in], [], [], max(0, deadline - time.monotonic()))
            received = os.read(self._in, 65536) if ready else b""
            if not received:
                raise BrowserError("it does not answer")
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: Any) -> None:
        if event.get("method") == "Page.frameNavigated":
            self._documents.add(event["params"]["frame"]["loaderId"])
        if event.get("method") == "Runtime.bindingCalled":
            self._clicked = int(event["params"]["payload"])
        if event.get("method") == "Log.entryAdded":
            self._complaints.append(event["params"]["entry"]["text"])
        if event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
            self._complaints.append(str(event["params"]["args"]))
        if event.get("method") == "Runtime.exceptionThrown":
            self._complaints.append(event["params"]["exceptionDetails"]["text"])


class BrowserError(Exception):
    """An error reported by the browser or a page."""


@contextmanager
def opened(profile: Path, *flags: str) -> Iterator[Browser]:
    """Open a tab of Chromium, or skip the test. Later flags replace earlier ones."""
    program = find()
    if program is None:
        pytest.skip("NOT TESTED: pages in a browser. It needs Chromium: apt-get install chromium")
    tab = Browser(program, profile, *flags)
    try:
        tab.__enter__()
    except BrowserError as error:
        pytest.skip(f"NOT TESTED: pages in a browser. {program} does not start: {error}")
    yield tab
    tab.__exit__()


def _button(type: str, place: tuple[float, float]) -> dict[str, Any]:
    return {"type": type, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}


def fill(page: Browser, **fields: str) -> None:
    """Type into the fields of a page, as soon as it has them."""
    for name, value in fields.items():
        field = f"document.querySelector('[name={name}]:not([type=hidden])')"
        page.wait(partial(page.run, f"!!{field}"))
        page.run(f"{field}.value = {value!r}")


def open_menu(page: Browser, name: str) -> None:
    """Open the menu of the row that is about this name or address, as soon as the page has it."""
    menu = (
        f"[...document.querySelectorAll('.menu summary')].find((each) => each.textContent.includes({name!r}))"
    )
    page.wait(partial(page.run, f"!!{menu}"))
    page.click_on(menu)


def choose(page: Browser, value: str) -> None:
    """Click on the radio button with this value, as soon as the page has it."""
    page.wait(partial(page.run, f"!!document.querySelector('[type=radio][value=\"{value}\"]')"))
    page.click_on(f"document.querySelector('[type=radio][value=\"{value}\"]')")


def _or_none(condition: Callable[[], Any]) -> Any:
    try:
        return condition()
    except BrowserError:
        return None
