"""The README: what it says of the version, the figures and the documents is so."""

import configparser
import re

from auth import __version__
from bench.figures import PAGE
from tests.support.processes import CHECKOUT

README = (CHECKOUT / "README.md").read_text()


def test_readme_names_this_version():
    assert f"| Version | {__version__}, " in README
    assert f"\n## {__version__} " in (CHECKOUT / "CHANGELOG.md").read_text()


def wrong_addresses(url: str) -> dict[str, set[str]]:
    """Return, by document, the addresses that it clones instead of this one, or this one if it lacks it."""
    paths = (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/*.md"))
    pages = {str(path.relative_to(CHECKOUT)): path.read_text() for path in paths}
    addresses = {
        name: set(re.findall(r"git clone (https?:\S+)", text)) - {url} for name, text in pages.items()
    }
    for name in ("README.md", "SECURITY.md", "docs/releasing.md"):
        if url not in pages[name]:
            addresses[name] = {url}
    return {name: urls for name, urls in addresses.items() if urls}


def test_documents_name_the_address_that_the_manifest_names():
    manifest = configparser.ConfigParser()
    manifest.read(CHECKOUT / "setup.cfg")
    assert wrong_addresses(manifest["metadata"]["url"]) == {}
    # The manifest has no address until the repository is public; then these documents need it.
    elsewhere = "https://git.example.com/latchkey"
    assert {"README.md", "SECURITY.md", "docs/releasing.md"} <= wrong_addresses(elsewhere).keys()


def test_readme_says_what_a_machine_carries_as_the_benchmark_measured_it():
    rows = dict(re.findall(r"^\| (.*?) +\| +([\d,.]+)", PAGE.read_text(), re.MULTILINE))
    figures = {name: float(value.replace(",", "")) for name, value in rows.items()}
    claims = [
        f"{figures['log-ins a second']:.0f} log-ins",
        f"{round(figures['GET /user a second, with tokens that no worker has seen'], -2):,.0f} requests a second",
        f"{figures['memory, with Postgres, idle']:.0f} to "
        f"{figures['memory, with Postgres, after 100,000 requests']:.0f} MiB",
    ]
    assert [each for each in claims if each not in README] == []


def test_readme_leads_to_the_index_of_all_guides():
    assert "](docs/README.md)" in README
    index = (CHECKOUT / "docs" / "README.md").read_text()
    guides = {path.name for path in (CHECKOUT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in guides if f"]({name})" not in index} == set()
