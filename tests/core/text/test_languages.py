"""Spaces in texts whose language has its own rule for them."""

from auth.core.text.languages import spaced
from tests.support.cases import cases


@cases(
    ("text", "shown"),
    [
        ("登录 Acme", "登录 Acme"),
        ("登录 飞书", "登录飞书"),
        ('登录 <bdi translate="no">飞书</bdi> 的账号', '登录<bdi translate="no">飞书</bdi>的账号'),
        ("此链接已失效。 请重试。", "此链接已失效。请重试。"),
        ("使用 Linux 上的 Firefox。 请重试。", "使用 Linux 上的 Firefox。请重试。"),
    ],
)
def test_chinese_has_no_space_between_its_own_characters(text, shown):
    assert spaced(text, "zh") == shown
    assert spaced(text, "en") == text
