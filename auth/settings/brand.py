"""The colours of pages and emails: text has a contrast of 4.5:1 (WCAG 2.2, AA) with any accent."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from auth.settings.values import targets
from auth.settings.values.checks import matching

DEFAULT_COLOR = "#2f5bd7"
# In auth/static/page.css, contrast is lower around the cards and under the pointer than on the cards.
_LIGHT, _DARK = "#f0f2f5", "#20232a"
_CONTRAST = 4.5
LOGO_TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
_LARGEST_LOGO = 256 * 1024
# The Content-Security-Policy has the host, and the headers of emails have the name.
_HOST = re.compile(r"[a-z0-9.-]+(:\d+)?", re.IGNORECASE)
_LINE = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"


@dataclass(frozen=True)
class Palette:
    """`accent` is a background with text of `on_accent`; the others are its shades for text."""

    accent: str
    on_accent: str
    on_light: str
    on_dark: str


def palette(color: str) -> Palette:
    on_accent = max(("#ffffff", "#000000"), key=lambda text: _contrast(text, color))
    return Palette(color, on_accent, _readable(color, _LIGHT, "#000000"), _readable(color, _DARK, "#ffffff"))


check_color = matching("#[0-9a-fA-F]{6}", "must be a colour such as #2f5bd7")


check_name = matching(_LINE + "{0,60}", "must be at most 60 characters, without line breaks")
check_company = matching(_LINE + "{0,200}", "must be at most 200 characters, without line breaks")


def check_logo(value: str) -> None:
    if value.startswith("https://"):
        if not _HOST.fullmatch(urlsplit(targets.http_url(value)).netloc):
            raise ValueError("must have a host name in ASCII")
        return
    if "://" in value or Path(value).suffix.lower() not in LOGO_TYPES:
        raise ValueError("must be an https URL, or an SVG, PNG, JPEG or WebP file")


def read_logo(setting: str, logo: str) -> bytes | None:
    """Return the file of a setting's logo, or None if it has none. Raises `ValueError`."""
    if logo.startswith("https://"):
        return None
    try:
        content = Path(logo).read_bytes()
    except OSError as error:
        raise ValueError(f"{setting}: Can't read {logo}: {error.strerror}.") from None
    if len(content) > _LARGEST_LOGO:
        raise ValueError(f"{setting}: {logo} is larger than 256 KiB.")
    return content


@functools.cache
def logo_file(setting: str, logo: str) -> bytes | None:
    """Return the logo's file as first read, so that workers can serve and start without it."""
    try:
        return read_logo(setting, logo)
    except ValueError as error:
        structlog.get_logger().warning("logo_unreadable", reason=str(error))
        return None


def is_svg(logo: str) -> bool:
    return logo.partition("?")[0].lower().endswith(".svg")


def logo_in_mails(logo: str | None, base_url: str) -> str | None:
    """Return the URL of the logo for emails, or None: mail programs do not show SVG."""
    if logo is None or is_svg(logo):
        return None
    return logo if logo.startswith("https://") else f"{base_url}/brand/logo"


def _readable(color: str, surface: str, end: str) -> str:
    """Return a colour, mixed with `end` until it is legible on a surface."""
    shades = (_mixed(color, end, step / 20) for step in range(21))
    return next(shade for shade in shades if _contrast(shade, surface) >= _CONTRAST)


def _mixed(color: str, other: str, share: float) -> str:
    pairs = zip(_channels(color), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _channels(color: str) -> list[int]:
    return [int(color[place : place + 2], 16) for place in (1, 3, 5)]


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    shares = (channel / 255 for channel in _channels(color))
    linear = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
