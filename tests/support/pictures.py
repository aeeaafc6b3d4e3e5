"""Pictures of the pages for docs/pages/README.md, each in both themes, on a desktop and on a phone; and that
of the console's overview.
"""

import base64
import re
from pathlib import Path

from tests.support.browser import Browser
from tests.support.tables import Rows

_PAGES = Path(__file__).parents[2] / "docs" / "pages"
# Width, height, dark, and the width in the picture.
_VIEWS = ((1280, 720, False, 640), (320, 640, False, 200), (1280, 720, True, 640), (320, 640, True, 200))
# Its first screen on a desktop is a picture of its own, because the whole page is too high for some documents.
_HIGH_PAGE = "account-with-everything"
# The README shows this one and the overview at a third of its width: both are narrow, and twice as sharp.
_NARROW_PAGE = "sign-in"


class Pictures:
    """Takes pictures of the pages that docs/pages/README.md shows, named after the state in the tour."""

    def __init__(self, page: Browser) -> None:
        self._page = page
        self._shown = set(re.findall(r"\(([a-z-]+)\.webp\)", (_PAGES / "README.md").read_text()))
        self._taken: dict[str, list[str]] = {}

    def take(self, state: str) -> None:
        name = re.sub(r"[^a-z]+", "-", state.lower()).strip("-")
        if name not in self._shown:
            return
        if name == _HIGH_PAGE:
            self._page.resize(1280, 900)
            self._page.run("document.documentElement.style.overflow = 'hidden'")  # without a scroll bar
            self._write("account", self._page.photograph())
            self._page.run("document.documentElement.style.overflow = ''")
        if name == _NARROW_PAGE:
            self._page.resize(960, 1480, zoom=2)
            self._page.run("document.documentElement.style.overflow = 'hidden'")  # without a scroll bar
            self._write(name, self._page.photograph())
            self._page.run("document.documentElement.style.overflow = ''")
            return
        self._taken[name] = []
        self._page.run("document.documentElement.style.overflow = 'hidden'")  # without a scroll bar
        for width, height, dark, _shown_width in _VIEWS:
            self._page.resize(width, height, dark=dark)
            whole = self._page.run("document.documentElement.scrollHeight")
            self._page.resize(width, max(height, whole), dark=dark)
            self._taken[name].append(self._page.photograph())
        self._page.run("document.documentElement.style.overflow = ''")

    def save(self) -> None:
        """Arrange the views of each page, which is left for that, and write a file for each."""
        self._page.open("about:blank")
        for name, views in self._taken.items():
            images = [
                f'<img src="data:image/webp;base64,{view}" width="{width}">'
                for view, (*_, width) in zip(views, _VIEWS, strict=True)
            ]
            self._page.run(
                "document.body.outerHTML = `<body style='align-items: start; background: #888; display: grid;"
                f" gap: 16px; grid-template-columns: 640px 200px; margin: 16px; width: 856px'>{''.join(images)}`"
            )
            self._page.wait(lambda: self._page.run("[...document.images].every((image) => image.complete)"))
            # A window that is higher than the picture would be measured instead.
            self._page.resize(888, 100)
            self._page.resize(888, self._page.run("document.body.scrollHeight + 32"))
            self._write(name, self._page.photograph())

    def _write(self, name: str, picture: str) -> None:
        (_PAGES / f"{name}.webp").write_bytes(base64.b64decode(picture))


# Two months of a service with 300 users: weeks with quiet ends, and growth.
_TWO_MONTHS = """
INSERT INTO users (email, made_by) SELECT n || '@example.com', 'signup' FROM generate_series(1, 300) AS n;
INSERT INTO last_done (task, at) SELECT unnest('{delivery,counts,backup}'::text[]), now() - interval '40 seconds'
    ON CONFLICT (task) DO UPDATE SET at = excluded.at;
DELETE FROM hourly_counts;
INSERT INTO hourly_counts (hour, name, count)
SELECT at, name, (level * (1 - days / 150.0) * CASE WHEN extract(isodow FROM at) > 5 OR days = 0 THEN 0.55 ELSE 1 END
                  * (1 + 0.2 * sin(days * level)))::integer
  FROM generate_series(0, 59) AS days,
       (VALUES ('signed_in', 140), ('user_created', 7), ('sign_in_refused', 16)) AS counted (name, level),
       date_trunc('hour', now() - days * interval '1 day') AS at;
INSERT INTO hourly_counts VALUES (now(), 'verification_refused', 3);
INSERT INTO sessions (id, user_id, method, aal)
SELECT gen_random_uuid(), id, 'password', 'aal1' FROM users WHERE made_by = 'signup' LIMIT 245;
DELETE FROM webhooks;
DELETE FROM outbox;
UPDATE users SET email = 'carol@acme.example' WHERE role = 'admin';
"""


def take_overview(page: Browser, origin: str, rows: Rows) -> None:
    """Take the picture of docs/console.md, as an administrator who is signed in."""
    rows.run(_TWO_MONTHS)
    page.resize(1280, 1974, zoom=2)
    page.open(f"{origin}/console")
    page.run("document.documentElement.style.overflow = 'hidden'")  # without a scroll bar
    picture = base64.b64decode(page.photograph())
    (_PAGES.parent / "console" / "overview.webp").write_bytes(picture)
