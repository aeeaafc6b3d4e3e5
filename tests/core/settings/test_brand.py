"""AUTH_BRAND_*: colours that can be read, and logos that are images."""

import struct
from itertools import product

import pytest

from auth.core.settings import brand
from auth.core.settings.logo_size import is_wide

# The parts of red, green and blue in a luminance.
WEIGHTS = (0.2126, 0.7152, 0.0722)


def test_text_of_buttons_has_a_contrast_of_four_and_a_half_with_every_color():
    """The formula is that of WCAG 2.2. No color between these has less."""
    shares = [channel / 255 for channel in range(0, 256, 8)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    for channels in product(range(32), repeat=3):
        luminance = sum(linear[each] * part for each, part in zip(channels, WEIGHTS, strict=True))
        color = "#" + "".join(f"{8 * each:02x}" for each in channels)
        contrasts = {"#000000": (luminance + 0.05) / 0.05, "#ffffff": 1.05 / (luminance + 0.05)}
        assert contrasts[brand.palette(color)["on_accent"]] >= 4.5, color


def test_logo_must_be_a_small_image_or_an_https_url(tmp_path):
    large, small = tmp_path / "large.png", tmp_path / "logo.svg"
    large.write_bytes(b"x" * 300_000)
    small.write_text("<svg/>")
    for value in ("/srv/logo.html", "http://example.com/logo.png"):
        with pytest.raises(ValueError, match="must be"):
            brand.check_logo(value)
    for value, reason in ((large, "larger than 256 KiB"), (tmp_path / "none.png", "No such file")):
        brand.check_logo(str(value))
        with pytest.raises(ValueError, match=f"AUTH_BRAND_LOGO: .*{reason}"):
            brand.read_logo("AUTH_BRAND_LOGO", str(value))
    assert brand.read_logo("AUTH_BRAND_LOGO", str(small)) == b"<svg/>"
    brand.check_logo("https://example.com:8443/logo.png")


@pytest.mark.parametrize(
    ("check", "values", "problem"),
    [
        (brand.check_color, ["blue", "#fff", "#2f5bd7; }", "2f5bd7"], "must be a colour"),
        (brand.check_name, ["A\r\nBcc: all@example.com", "Acme\n", "Ac\u2028me", "x" * 61], "at most 60"),
        (brand.check_company, ["Acme\n", "x" * 201], "at most 200"),
        (
            brand.check_logo,
            [f"https://{host}/a.png" for host in ("a;script-src", "a,*", "*", "a'b")],
            "host is in ASCII",
        ),
    ],
    ids=["colour of a style sheet", "name in headers of mails", "company", "host in the policy"],
)
def test_value_that_would_add_to_its_surroundings_is_refused(check, values, problem):
    for value in values:
        with pytest.raises(ValueError, match=problem):
            check(value)


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 300, 100)
WEBP = b"RIFF\0\0\0\0WEBP"
SIZES = {
    "wide.png": (PNG, True),
    "twice.png": (PNG[:16] + struct.pack(">II", 200, 100), False),
    "cut.png": (PNG[:20], True),
    "square.jpg": (b"\xff\xd8\xff\xe0\0\x04??\xff\xc4\0\x03?\xff\xc2\0\x11\x08\0\x40\0\x40", False),
    "wide.jpg": (b"\xff\xd8\xff\xe0\0\x04??\xff\xc0\0\x11\x08\0\x10\0\x40", True),
    "endless.jpg": (b"\xff\xd8\xff\xe0\0\x04??", True),
    "lossy.webp": (WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 64 | 0x4000, 64), False),
    "lossless.webp": (WEBP + b"VP8L" + bytes(5) + struct.pack("<I", 63 | 63 << 14), False),
    "extended.webp": (WEBP + b"VP8X" + bytes(8) + b"\xff\0\0\x3f\0\0", True),
    "logo.svg": (b"<svg/>", True),
}


@pytest.mark.parametrize("name", SIZES)
def test_logo_is_wide_beyond_twice_its_height_or_if_its_size_is_unknown(tmp_path, name):
    content, expected = SIZES[name]
    (tmp_path / name).write_bytes(content)
    assert is_wide(str(tmp_path / name)) is expected


def test_logo_file_is_served_without_scripts(make_app, tmp_path):
    (tmp_path / "logo.svg").write_text("<svg/>")
    client = make_app(AUTH_BRAND_LOGO=str(tmp_path / "logo.svg"), AUTH_BRAND_NAME="Acme <1>").test_client()
    response = client.get("/brand/logo")
    assert (response.mimetype, response.data) == ("image/svg+xml", b"<svg/>")
    assert "sandbox" in response.headers["Content-Security-Policy"]
    page = client.get("/")
    assert '<img src="/brand/logo" alt="">' in page.text
    assert "Acme &lt;1&gt;" in page.text
    assert "img-src 'self';" in page.headers["Content-Security-Policy"]


def test_icon_is_the_logo_unless_it_is_wide_else_the_initial(make_app, tmp_path):
    icons = []
    for name in ("wide.png", "twice.png"):
        (tmp_path / name).write_bytes(SIZES[name][0])
        settings = {"AUTH_BRAND_NAME": "<acme", "AUTH_BRAND_LOGO": str(tmp_path / name)}
        icons.append(make_app(**settings).test_client().get("/brand/icon"))
        assert "sandbox" in icons[-1].headers["Content-Security-Policy"]
    assert b">&lt;</text>" in icons[0].data
    assert icons[1].data == SIZES["twice.png"][0]
