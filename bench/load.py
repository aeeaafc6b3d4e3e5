"""Load from wrk: closed loops, in which each connection sends its next request after the response."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = Path(__file__).with_name("requests.lua")
CONNECTIONS = 32


@dataclass(frozen=True)
class Load:
    """Latencies of responses in milliseconds. `failures` are statuses from 400 on and missing responses."""

    requests: int
    seconds: float
    p50: float
    p95: float
    p99: float
    failures: int

    @property
    def per_second(self) -> float:
        """Responses a second."""
        return self.requests / self.seconds


def require_wrk() -> None:
    """Install wrk with apt-get if it is missing. If that fails, exit with instructions."""
    if shutil.which("wrk"):
        return
    print("Installing wrk …", flush=True)
    try:
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
        subprocess.run(
            ["apt-get", "install", "-y", "--no-install-recommends", "wrk"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        sys.exit(
            "The load generator wrk is missing: apt-get install wrk, brew install wrk, or see github.com/wg/wrk"
        )


def run(
    port: int,
    kind: str,
    path: str,
    lines: Sequence[str] = (),
    *,
    seconds: float,
    connections: int = CONNECTIONS,
    pause: int = 0,
) -> Load:
    """Send requests of a kind (see requests.lua), built from `lines`.

    `pause` is the time between two requests of a connection, in milliseconds.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".lines") as file:
        file.write("\n".join(lines))
        file.flush()
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--timeout",
            "30s",
            "-s",
            str(_SCRIPT),
            f"http://127.0.0.1:{port}",
        ]
        arguments = [kind, path, file.name if lines else "-", str(pause)]
        done = subprocess.run([*command, "--", *arguments], check=True, capture_output=True, text=True)
    return Load(**json.loads(done.stdout.splitlines()[-1]))
