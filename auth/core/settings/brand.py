"""The brand in pages and emails: its colour, name, logo and links."""

import functools
import re
from pathlib import Path

import structlog

from auth.core.settings.values import urls
from auth.core.settings.values.validators import https_url, matching

DEFAULT_COLOR = "#2f5bd7"
# The luminance with the same contrast to black and to white, 4.58:1. A gamma of 2.2 instead of sRGB's curve
# leaves 4.52:1.
_MIDDLE = 0.179
LOGO_TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
_LARGEST_LOGO = 256 * 1024
# The host is used in the Content-Security-Policy, the name in the headers of emails.
_HOST = re.compile(r"[a-z0-9.-]+(:\d+)?", re.IGNORECASE)
_LINE = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"


def palette(color: str) -> dict[str, str]:
    """Return the colour of buttons and, black or white, that of their text."""
    red, green, blue = ((int(color[place : place + 2], 16) / 255) ** 2.2 for place in (1, 3, 5))
    is_light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > _MIDDLE
    return {"accent": color, "on_accent": "#000000" if is_light else "#ffffff"}


check_color = matching("#[0-9a-fA-F]{6}", "must be a colour such as #2f5bd7")


check_name = matching(_LINE + "{0,60}", "must be at most 60 characters, without line breaks")
check_company = matching(_LINE + "{0,200}", "must be at most 200 characters, without line breaks")


_PAGE = "must be an https URL such as https://example.com/terms, in ASCII and without quotes"
_SUPPORT = "must be an https URL, or mailto: and one address, such as mailto:help@example.com"


def check_page(value: str, problem: str = _PAGE) -> None:
    """Accept the URL of a page that ours link to, which may end in a fragment."""
    matching(r"""(?!.*["'<>\\`])[!-~]+""", problem)(value)
    https_url(urls.http_url(value.partition("#")[0], problem))


def check_support(value: str) -> None:
    if value.startswith("mailto:"):
        # `%`, `?` and commas could add recipients.
        matching(r"(?a)mailto:[\w.+-]+@[\w-]+(\.[\w-]+)*", _SUPPORT)(value)
    else:
        check_page(value, _SUPPORT)


def check_logo(value: str) -> None:
    problem = "must be an https URL whose host is in ASCII, or the path of an SVG, PNG, JPEG or WebP file"
    if value.startswith("https://"):
        if not (
            _HOST.fullmatch(urls.split_http_url(value, problem).netloc) and re.fullmatch("[!-~]+", value)
        ):
            raise ValueError(problem)
    elif "://" in value or Path(value).suffix.lower() not in LOGO_TYPES:
        raise ValueError(problem)


def read_logo(setting: str, logo: str) -> bytes | None:
    """Return the file of a setting's logo, or None if it has none. Raises `ValueError`."""
    if logo.startswith("https://"):
        return None
    try:
        content = Path(logo).read_bytes()
    except OSError as error:
        raise ValueError(
            f"{setting}: {logo} cannot be read: {error.strerror}. Correct the path, or let this user read it."
        ) from None
    if len(content) > _LARGEST_LOGO:
        raise ValueError(f"{setting}: {logo} is larger than 256 KiB. Use a smaller file.")
    return content


@functools.cache
def logo_file(setting: str, logo: str) -> bytes | None:
    """Return the cached file of the logo, so that workers can start and serve without the file."""
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
