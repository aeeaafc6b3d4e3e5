"""List the packages that a release installs, as CycloneDX: `python -m tests.support.release_contents WHEEL`.

The packages come from requirements.lock, which has those of every Python, and their licences from THIRD_PARTY.md, as
some packages declare none.
"""

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from auth import __version__
from tests.support.processes import CHECKOUT

NAME = "latchkey-auth"
_SCHEMA = "1.6"
_PIN = re.compile(r"^(\S+)==(\S+)(?: ;.*?)?((?: \\\n    --hash=sha256:\w+)+)$", re.MULTILINE)
_LICENCES = re.compile(r"^\| (.+) \| (.+) \|$", re.MULTILINE)


def _hashes(*digests: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": digest} for digest in digests]


def _licences(text: str) -> list[dict[str, Any]]:
    # SPDX has no name for the exceptions of psycopg2.
    return [{"license": {"name": text}} if " with " in text else {"expression": text}]


def contents(wheel: Path) -> dict[str, Any]:
    rows = _LICENCES.findall((CHECKOUT / "THIRD_PARTY.md").read_text())
    licences = {name: licence for licence, names in rows for name in names.split(", ")}
    components = [
        {
            "type": "library",
            "name": name,
            "version": version,
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "purl": f"pkg:pypi/{name}@{version}",
            "licenses": _licences(licences[name]),
            # A machine installs one of these files.
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": f"https://pypi.org/project/{name}/{version}/#files",
                    "hashes": _hashes(*re.findall(r"sha256:(\w+)", digests)),
                }
            ],
        }
        for name, version, digests in _PIN.findall((CHECKOUT / "requirements.lock").read_text())
    ]
    release = {
        "type": "application",
        "name": NAME,
        "version": __version__,
        "bom-ref": NAME,
        "licenses": _licences("MIT"),
        "hashes": _hashes(hashlib.sha256(wheel.read_bytes()).hexdigest()),
    }
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{_SCHEMA}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": _SCHEMA,
        "version": 1,
        "metadata": {"component": release},
        "components": components,
        "dependencies": [{"ref": NAME, "dependsOn": [component["bom-ref"] for component in components]}],
    }


def main(wheel: Path) -> None:
    # The extra `release` installs this package.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = json.dumps(contents(wheel), indent=2) + "\n"
    if problem := JsonStrictValidator(SchemaVersion.from_version(_SCHEMA)).validate_str(text):
        sys.exit(f"not CycloneDX: {problem}")
    wheel.with_name(wheel.name.replace("-py3-none-any.whl", ".cdx.json")).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
