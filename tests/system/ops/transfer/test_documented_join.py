"""The commands of docs/moving-in.md that join the files of Auth0."""

import json
import re
import shutil
import subprocess

from tests.ops.transfer.test_products import FILES
from tests.support.processes import CHECKOUT
from tests.support.programs import find_program


def test_documented_join_of_auth0_gives_each_hash_to_its_own_user_only(tmp_path):
    find_program("jq", "jq", "NOTHING IS TESTED OF THE JOIN")
    page = (CHECKOUT / "docs" / "moving-in.md").read_text()
    shutil.copy(FILES / "auth0.ndjson", tmp_path / "users.ndjson")
    shutil.copy(FILES / "auth0-hashes.ndjson", tmp_path / "hashes.ndjson")
    join = "\n".join(re.findall(r"^jq .*$", page, re.MULTILINE))
    subprocess.run(["sh", "-e", "-c", join], cwd=tmp_path, check=True)
    lines = (tmp_path / "auth0.ndjson").read_text().splitlines()
    hashed = [user["email"] for user in map(json.loads, lines) if user.get("passwordHash")]
    assert (len(lines), hashed) == (3, ["alice@example.com"])
