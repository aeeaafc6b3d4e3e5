"""Text at 200 percent (WCAG 1.4.4): on a phone, in every language, nothing is cut off or runs under something else."""

import pytest

from auth.web.html.page import LANGUAGES

pytest_plugins = ["tests.support.browser_fixtures"]

_LARGE = "document.documentElement.style.fontSize = '32px'"
# The most lines that a rule of the password takes, and whether its field is free of the button that shows it.
_LINES = """
Math.max(...[...document.querySelectorAll(".rules li")].map(
  rule => rule.getBoundingClientRect().height / parseFloat(getComputedStyle(rule).lineHeight)))
"""
_FREE = """
[...document.querySelectorAll(".reveal")].every(field => {
  const input = field.querySelector("input"), button = field.querySelector("button");
  return parseFloat(getComputedStyle(input).paddingRight) >= button.getBoundingClientRect().width - 1;
})
"""
_GROWN = """
[...document.querySelectorAll("input:not([type=hidden])")].every(
  field => field.clientHeight >= parseFloat(getComputedStyle(field).lineHeight || 0))
"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("path", ["sign-up", "sign-in"])
def test_page_can_be_read_and_filled_in_at_twice_the_size(page, here, language, path):
    page.speak(language)
    page.resize(375, 740)
    page.open(f"{here}/{path}")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.run(_LARGE)
    if path == "sign-up":
        assert page.run(_LINES) <= 3.1
    assert page.run(_FREE)
    page.run("document.querySelector('.reveal button').click()")
    assert page.run(_FREE)
    assert page.run(_GROWN)
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
