"""What quotes, `echo` and editors add to a value, at a real start: refused by name, or told in the log and by the doctor."""

import json

import pytest

from auth.ops import CHECKOUT
from tests.support.commands import run_process
from tests.support.environment import secret
from tests.support.processes import Service

NOTICE = "The secret ends with a line break. It is used as it stands until 0.9.0, which refuses it. Replace it by one without."


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"DATABASE_URL": "postgresql://auth@localhost/auth\n"}, "DATABASE_URL: Ends with a line break."),
        ({"AUTH_JWT_ISSUER": "https://auth.example.com\r"}, "AUTH_JWT_ISSUER: Ends with a line break."),
        (
            {"AUTH_BRAND_NAME": '"Acme"'},
            "AUTH_BRAND_NAME: Has quotes around it, which are part of the value here.",
        ),
        ({"AUTH_SMTP_CLIENT_ID": "x" * 5000}, "AUTH_SMTP_CLIENT_ID: Has text beyond 4096 characters."),
    ],
)
def test_service_does_not_start_with_a_text_that_has_more_than_its_value(new_state_dir, variables, line):
    assert Service(new_state_dir, **variables).refuses_to_start() == (1, f"{line} Remove that.\n")


def test_secret_that_was_valid_is_used_and_told_in_the_log_and_by_the_doctor(new_state_dir):
    jwt_secret = secret("signing") + "\n"
    with Service(new_state_dir, AUTH_JWT_SECRET=jwt_secret, AUTH_LOG_FORMAT="json") as service:
        lines = [json.loads(line) for line in service.log().splitlines()]
        told = [line["level"] for line in lines if line["event"] == f"AUTH_JWT_SECRET: {NOTICE}"]
        assert told == ["warning"]
        assert jwt_secret.strip() not in service.text()
        result = run_process(service.environment, "doctor", "--json")
    texts = [json.loads(line)["text"] for line in result.stdout.splitlines()]
    assert any(NOTICE.partition(". ")[0] in text for text in texts)


def test_nul_in_the_dotenv_file_is_refused_by_its_line(new_state_dir, tmp_path):
    (tmp_path / ".env").write_text("AUTH_BRAND_NAME=Acme\nAUTH_JWT_AUDIENCE=a\0b\n")
    environment = {"AUTH_STATE_DIR": str(new_state_dir), "PYTHONPATH": str(CHECKOUT)}
    process = run_process(environment, "keys", "list", cwd=tmp_path)
    assert process.returncode != 0
    assert process.stderr == f"Error: {tmp_path / '.env'}: Line 2 has a NUL byte. Remove it.\n"
