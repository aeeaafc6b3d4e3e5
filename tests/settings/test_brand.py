"""AUTH_BRAND_*: colours that can be read, and logos that are images."""

import pytest

from auth.settings import brand
from tests.support.answers import assert_error


@pytest.mark.parametrize("color", ["#2f5bd7", "#ffff00", "#ffffff", "#000000", "#7f7f7f", "#e11d48"])
def test_every_text_of_a_palette_has_a_contrast_of_four_and_a_half(color):
    colors = brand.palette(color)
    pairs = [(colors.on_accent, colors.accent), (colors.on_light, "#f0f2f5"), (colors.on_dark, "#20232a")]
    assert all(brand._contrast(text, surface) >= 4.5 for text, surface in pairs)


@pytest.mark.parametrize("value", ["blue", "#fff", "#2f5bd7; }", "2f5bd7"])
def test_other_colours_are_refused(value):
    with pytest.raises(ValueError, match="must be a colour"):
        brand.check_color(value)


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
            brand.read_logo(str(value))
    assert brand.read_logo(str(small)) == b"<svg/>"
    brand.check_logo("https://example.com:8443/logo.png")


@pytest.mark.parametrize("host", ["example.com;script-src", "example.com,*", "*", "a'b", "example.com;"])
def test_logo_adds_no_directive_or_other_host_to_the_policy(host):
    with pytest.raises(ValueError, match="host name"):
        brand.check_logo(f"https://{host}/logo.png")


@pytest.mark.parametrize("name", ["Acme\r\nBcc: all@example.com", "Acme\n", "Ac\u2028me", "x" * 61])
def test_name_that_does_not_fit_the_header_of_a_mail_is_refused(name):
    with pytest.raises(ValueError, match="at most 60 characters"):
        brand.check_name(name)


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


def test_logo_whose_file_is_deleted_stays_until_the_workers_restart(make_app, tmp_path, capfd):
    file = tmp_path / "logo.png"
    file.write_bytes(b"png")
    settings = {"AUTH_BRAND_LOGO": str(file), "AUTH_BRAND_NAME": "Acme"}
    client = make_app(**settings).test_client()
    file.unlink()
    assert client.get("/brand/logo").data == b"png"
    brand.logo_file.cache_clear()
    client = make_app(**settings).test_client()
    for _ in range(2):
        assert_error(client.get("/brand/logo"), 404, "not_found")
        assert "<img" not in client.get("/").text
    assert capfd.readouterr().err.count("logo_unreadable") == 1


def test_logo_that_cannot_follow_the_theme_stands_on_a_plate(make_app, tmp_path):
    (tmp_path / "logo.png").write_bytes(b"png")
    client = make_app(AUTH_BRAND_LOGO=str(tmp_path / "logo.png")).test_client()
    assert '<img src="/brand/logo" alt="" class="plate">' in client.get("/").text


def test_without_a_logo_there_is_none(client):
    assert_error(client.get("/brand/logo"), 404, "not_found")
    assert "<img" not in client.get("/").text
