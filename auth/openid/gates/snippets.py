"""What the proxy in front of a gate is told: the files of deploy/gates, with a gate's host and addresses."""

from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

_FOLDER = Path(__file__).parents[3] / "deploy" / "gates"
FILES = {"nginx": "nginx.conf", "caddy": "Caddyfile", "traefik": "traefik.yml"}
TOOL = "127.0.0.1:9090"
_HOST, _SERVICE = "docs.example.com", "127.0.0.1:8000"


def snippet(proxy: str, gate_origin: str, *, tool: str, service: str) -> str:
    """Return the configuration of a proxy; `tool` and `service` are the addresses that it connects to."""
    text = (_FOLDER / FILES[proxy]).read_text().replace(_SERVICE, service).replace(TOOL, tool)
    parts = urlsplit(gate_origin)
    # What nginx compares with Host, which has the port.
    text = text.replace(f"!= {_HOST}", f"!= {parts.netloc}")
    if proxy == "caddy":
        return text.replace(
            f"\n{_HOST} {{", f"\n{gate_origin if parts.scheme == 'http' else parts.netloc} {{"
        )
    if proxy == "traefik":
        text = text.replace(" docs", f" {parts.netloc.replace('.', '-').replace(':', '-')}")
        text = text.replace("[docs", f"[{parts.netloc.replace('.', '-').replace(':', '-')}")
    return text.replace(_HOST, parts.hostname or "")


def running() -> list[str]:
    """Return the proxies that run on this machine, else all."""
    names = set()
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it has ended
            names.add(path.read_text().strip())
    return [proxy for proxy in FILES if proxy in names] or [*FILES]
