"""Time-based one-time passwords (RFC 6238): six digits, SHA-1, 30 seconds, one step either way."""

import binascii
import io

import pyotp
import segno
from pyotp.exceptions import OTPVerificationError

_WINDOW = 1  # steps


def new_secret() -> str:
    """Return 160 bits in base32."""
    return pyotp.random_base32()


def is_usable(secret: str) -> bool:
    """Whether a secret is base32 of at least 112 bits, as pyotp requires."""
    try:
        return bool(pyotp.TOTP(secret).byte_secret())
    except (binascii.Error, ValueError):
        return False


def uri(secret: str, account: str, issuer: str) -> str:
    """Return the content of the QR code for an authenticator app."""
    # A colon separates issuer and account.
    return pyotp.TOTP(secret, name=account, issuer=issuer.replace(":", " ")).provisioning_uri()


def qr_code(text: str) -> str:
    """Return a QR code as SVG, for a `data:` URL, in which a `#` would begin the fragment."""
    code, svg = segno.make(text, error="m", micro=False), io.BytesIO()
    code.save(svg, kind="svg", scale=4, light="white", xmldecl=False, nl=False, omitsize=True)
    drawn = svg.getvalue().decode().replace("#000", "black").replace("#fff", "white")
    # The size is for pages that set none. Without a viewBox, a page with a smaller size would cut the code
    # off.
    width, height = code.symbol_size(scale=4)
    return drawn.replace(" viewBox", f' width="{width}" height="{height}" viewBox', 1)


def matching_step(secret: str, code: str, moment: float) -> int | None:
    """Return the time step that a code belongs to, or None if it is wrong. `moment` is in Unix seconds."""
    try:
        return pyotp.TOTP(secret).verify_and_get_timecode(code, for_time=moment, valid_window=_WINDOW)
    except OTPVerificationError:
        return None
