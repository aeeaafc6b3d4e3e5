"""A provider of captchas, played as the documentation of Turnstile and hCaptcha says.

Its script puts a frame and a field into each of its boxes, and the frame gives the field a token. Its server
verifies each token once.
"""

import itertools
import json
from contextlib import ExitStack
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.support.local_server import Handler, LocalServer
from tests.support.smtp_server import Certificate

# The URL of the script, the class of the boxes, the host of the frames, and the fields of a form.
KINDS = {
    "turnstile": (
        "challenges.cloudflare.com/turnstile/v0/api.js",
        "cf-turnstile",
        "challenges.cloudflare.com",
        ["captcha_token"],
    ),
    "hcaptcha": (
        "js.hcaptcha.com/1/api.js",
        "h-captcha",
        "newassets.hcaptcha.com",
        ["h-captcha-response", "g-recaptcha-response"],
    ),
}
SECRET, SITE_KEY = "their-secret", "a-site-key"
_SCRIPT = """
for (const box of document.getElementsByClassName(%s)) {
  const names = %s, fields = names.map(() => document.createElement("textarea"));
  fields.forEach((field, number) => Object.assign(field, { name: names[number], hidden: true }));
  const frame = Object.assign(document.createElement("iframe"), { hidden: true });
  frame.src = `https://%s/frame?sitekey=${box.dataset.sitekey}`;
  addEventListener("message", ({ data, source }) => {
    if (source === frame.contentWindow) for (const field of fields) field.value = data;
  });
  box.append(...fields, frame);
}
"""


class Provider:
    """The provider. Tests set the `token` of its widget, and a `delay` in milliseconds; `forms` are those it received."""

    def __init__(self, kind: str, tls: Certificate) -> None:
        self.kind, provider = kind, self
        self.script, self._box, self._frames, self.fields = KINDS[kind]
        self._numbers = itertools.count(1)
        self.forget()

        class Widget(Handler):
            def do_GET(self) -> None:
                host, url = self.headers["Host"].partition(":")[0], urlsplit(self.path)
                if host + url.path == provider.script:
                    values = json.dumps(provider._box), json.dumps(provider.fields), provider._frames
                    self.reply(200, {"Content-Type": "text/javascript"}, (_SCRIPT % values).encode())
                elif (host, self.path) == (provider._frames, f"/frame?sitekey={SITE_KEY}"):
                    self.reply(200, {"Content-Type": "text/html"}, provider._frame().encode())
                else:
                    self.reply(404, {})

        class Server(Handler):
            def do_POST(self) -> None:
                form = {name: value for name, (value,) in parse_qs(self.body().decode()).items()}
                provider.forms.append(form)
                body = json.dumps(provider._verify(form)).encode()
                self.reply(200, {"Content-Type": "application/json"}, body)

        self._widget, self._server = LocalServer(Widget, tls), LocalServer(Server)

    def forget(self) -> None:
        self.token, self.delay = "", 0
        self.forms: list[dict[str, str]] = []
        self.tokens: list[str] = []
        self._spent: set[str] = set()

    def __enter__(self) -> Self:
        self._open = ExitStack()
        self._open.enter_context(self._widget)
        self._open.enter_context(self._server)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def siteverify(self) -> str:
        return f"{self._server.url}/siteverify"

    @property
    def flags(self) -> list[str]:
        """Have Chromium find the provider's hosts here, and no others."""
        address = urlsplit(self._widget.url).netloc
        hosts = ", ".join(f"MAP {host} {address}" for host in ("challenges.cloudflare.com", "*.hcaptcha.com"))
        ours = "EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1"
        return [f"--host-resolver-rules={hosts}, MAP * ~NOTFOUND, {ours}", "--ignore-certificate-errors"]

    def _frame(self) -> str:
        token = self.token or f"token-{next(self._numbers)}"
        self.tokens.append(token)
        post = f'parent.postMessage({json.dumps(token)}, "*")'
        return f"<!doctype html><script>setTimeout(() => {post}, {self.delay})</script>"

    def _verify(self, form: dict[str, str]) -> dict[str, Any]:
        token = form["response"]
        codes: list[str] = []
        if form["secret"] != SECRET:
            codes = ["invalid-input-secret"]
        elif token not in self.tokens or token == "wrong":
            codes = ["invalid-input-response"]
        elif token in self._spent:
            codes = ["timeout-or-duplicate"]
        self._spent.add(token)
        return {"success": not codes, "error-codes": codes, "hostname": "127.0.0.1"}
