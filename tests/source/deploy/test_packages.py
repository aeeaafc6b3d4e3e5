"""requirements.lock, which deploy/install demands: the packages of setup.cfg, as constraints.txt pins them."""

import configparser
import hashlib
import re
from collections.abc import Iterator
from importlib.metadata import metadata, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import release_contents
from tests.support.processes import CHECKOUT

LOCK = (CHECKOUT / "requirements.lock").read_text()


def pins(text: str) -> dict[str, Requirement]:
    """Return the lines with a version, by canonical name."""
    lines = re.findall(r"^([^\s#-].*?)(?: \\)?$", text, re.MULTILINE)
    return {canonicalize_name((pin := Requirement(line)).name): pin for line in lines}


LOCKED = pins(LOCK)


def needed(requirement: Requirement, extra: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and extras that a requirement installs with this Python."""
    if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
        return
    name = canonicalize_name(requirement.name)
    for each in requirement.extras or {""}:
        yield name, each


def installation() -> set[str]:
    """Return the names of the packages that setup.cfg needs with this Python."""
    configuration = configparser.ConfigParser()
    configuration.read(CHECKOUT / "setup.cfg")
    lines = configuration["options"]["install_requires"].splitlines()
    queue = [each for line in lines if line for each in needed(Requirement(line))]
    packages = set()
    while queue:
        name, extra = queue.pop()
        if (name, extra) not in packages:
            packages.add((name, extra))
            queue += [each for line in requires(name) or () for each in needed(Requirement(line), extra)]
    return {name for name, _ in packages}


def test_lock_names_all_packages_of_an_installation_and_no_other():
    applicable = {name for name, pin in LOCKED.items() if pin.marker is None or pin.marker.evaluate()}
    assert applicable == installation()


def test_lock_has_the_tested_versions():
    tested_pins = pins((CHECKOUT / "constraints.txt").read_text())
    assert {name: pin.specifier for name, pin in LOCKED.items()} == {
        name: tested_pins[name].specifier for name in LOCKED if name in tested_pins
    }


def test_lock_has_the_hashes_of_each_package():
    entries = re.findall(
        r"^\S+==\S+(?: ; .*?)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", LOCK, re.MULTILINE
    )
    assert len(entries) == len(LOCKED)
    assert LOCK.count("--hash=") == sum(entry.count("--hash=") for entry in entries)


def test_third_parties_lists_each_package_with_the_licence_that_it_declares():
    rows = re.findall(r"^\| (.+) \| (.+) \|$", (CHECKOUT / "THIRD_PARTY.md").read_text(), re.MULTILINE)
    licences = {name: licence for licence, names in rows[2:] for name in names.split(", ")}
    assert sorted(licences) == sorted(LOCKED)
    own_licences = {name: metadata(name).json.get("license_expression") for name in installation()}
    assert {name: licences[name] for name, licence in own_licences.items() if licence} == {
        name: licence for name, licence in own_licences.items() if licence
    }


def test_list_of_a_release_has_version_hashes_and_licence_of_each_package_of_the_lock_and_no_other(tmp_path):
    wheel = tmp_path / "latchkey_auth-1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    bill = release_contents.contents(wheel)
    assert bill["metadata"]["component"]["hashes"][0]["content"] == hashlib.sha256(b"wheel").hexdigest()
    components = {component["name"]: component for component in bill["components"]}
    assert len(components) == len(bill["components"])
    assert {name: f"=={each['version']}" for name, each in components.items()} == {
        name: str(pin.specifier) for name, pin in LOCKED.items()
    }
    for name, component in components.items():
        assert component["purl"] == f"pkg:pypi/{name}@{component['version']}"
        (licence,) = component["licenses"]
        assert licence.get("expression") or licence["license"]["name"]
    hashes = [
        digest["content"]
        for component in bill["components"]
        for files in component["externalReferences"]
        for digest in files["hashes"]
    ]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:(\w+)", LOCK))
