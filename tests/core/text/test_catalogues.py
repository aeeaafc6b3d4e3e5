"""The texts of pages and messages: complete in each language, with the same placeholders, without markup."""

import re
from collections.abc import Mapping

import pytest
from jinja2 import Environment
from jinja2.meta import find_undeclared_variables

from auth.core.text.catalogues import built_in
from tests.support.cases import cases

LANGUAGES = ["de", "en", "es", "fr", "zh"]
# Strings that may be the same in two languages.
SAME = {
    *("version", "name", "label", "passkey", "which", "console", "system", "application", "of_day"),
    *("invitations", "domain", "domains", "step_domain", "added_list", "plain", "wrong_title"),
}

each_subject = pytest.mark.parametrize("subject", ["pages", "messages"])
each_language = cases("language", LANGUAGES)


def placeholders(texts: Mapping[str, str]) -> dict[str, set[str]]:
    environment = Environment(autoescape=True)
    return {name: find_undeclared_variables(environment.parse(text)) for name, text in texts.items()}


@each_subject
def test_five_languages_exist(subject):
    assert sorted(built_in(subject)) == LANGUAGES


@each_subject
@each_language
def test_catalogue_has_every_string_with_the_same_placeholders(subject, language):
    translation, english = placeholders(built_in(subject)[language]), placeholders(built_in(subject)["en"])
    missing = [
        f"auth/core/text/{subject}/{language}.toml lacks {name}"
        for name in english.keys() - translation.keys()
    ]
    assert sorted(missing) == []
    assert translation == english


@each_subject
@each_language
def test_no_string_is_empty_or_markup(subject, language):
    for name, text in built_in(subject)[language].items():
        assert text, name
        assert not re.search(r"[<>&\n]|^\s|\s$", text), name


@each_subject
@each_language
def test_every_string_is_translated(subject, language):
    english, texts = built_in(subject)["en"].items(), built_in(subject)[language]
    untranslated = {name.rpartition(".")[2] for name, text in english if texts.get(name) == text}
    assert language == "en" or untranslated <= SAME


@each_subject
def test_no_line_of_a_french_text_begins_with_its_punctuation(subject):
    for name, text in built_in(subject)["fr"].items():
        # GSM-7 has no narrow space that does not break.
        assert name.startswith("sms.") or not re.search(r" [:?!;»]|« ", text), name


@each_language
def test_mail_of_a_sign_up_names_the_button_of_the_page(language):
    pages, messages = built_in("pages")[language], built_in("messages")[language]
    assert pages["common.decline"] in pages["signup.warning"]
    assert pages["common.decline"] in messages["email.signup.closing"].replace("\u00a0", " ")


@each_language
def test_every_notice_with_a_link_has_the_sentence_that_undoes_it(language):
    texts = built_in("messages")[language]
    sentences = [name for name in texts if name.startswith("sms.") and name.endswith(".undo")]
    assert len(sentences) == 16
    for name in sentences:
        assert re.search(r"""{{ say\(["']undo["']\) }}$""", texts[name.replace(".undo", ".text")])
        mail = name.replace("sms.", "email.")
        assert {mail.replace(".undo", f".{part}") for part in ("action", "button", "closing")} <= texts.keys()


@each_language
def test_string_without_a_brace_is_the_html_that_it_renders(language):
    """Pages do not render such strings."""
    texts = [text for text in built_in("pages")[language].values() if "{" not in text]
    assert Environment(autoescape=True).from_string("\n".join(texts)).render() == "\n".join(texts)
