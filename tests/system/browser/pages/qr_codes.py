"""Reads QR codes from the pixels of the screen, like the camera of a phone."""

import base64
from typing import Any

import zxingcpp

from tests.support.browser import Browser

# The brightness of each pixel of a picture, row by row. Chromium decodes what it has encoded.
_PIXELS = """(async () => {
  const bytes = Uint8Array.from(atob("%s"), (each) => each.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], { type: "image/webp" }));
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const { data } = canvas.getImageData(0, 0, picture.width, picture.height);
  const rows = Array.from({ length: data.length / 4 }, (_, at) =>
    String.fromCharCode((data[4 * at] + data[4 * at + 1] + data[4 * at + 2]) / 3));
  return [picture.width, picture.height, btoa(rows.join(""))];
})()"""
# A brighter pixel is white: the picture's compression makes some noise.
_WHITE = 220


def read(page: Browser) -> list[str]:
    """Return the texts of the QR codes in the window. Each must have its margin of four white modules."""
    width, height, pixels = page.run(_PIXELS % page.photograph())
    picture = memoryview(base64.b64decode(pixels)).cast("B", (height, width))
    # Some apps read neither turned codes nor those that are light on dark.
    kind = zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode)
    codes = zxingcpp.read_barcodes(picture, kind, try_rotate=False, try_invert=False)
    for code in codes:
        _assert_margin(picture, code)
    return [code.text for code in codes]


def _assert_margin(picture: Any, code: Any) -> None:
    place = code.position
    left, top, right, bottom = place.top_left.x, place.top_left.y, place.bottom_right.x, place.bottom_right.y
    modules = 17 + 4 * int(code.extra["Version"])
    # Less a pixel for corners that are rounded to whole pixels, on either side.
    margin = int(4 * (right - left) / modules) - 2
    around = [
        picture[y, x]
        for y in range(top - margin, bottom + margin)
        for x in range(left - margin, right + margin)
        if not (left - 2 <= x <= right + 2 and top - 2 <= y <= bottom + 2)
    ]
    assert min(around) > _WHITE, f"{code.text}: no margin of {margin} pixels"
