"""A service with metrics, and clients of both ports."""

from typing import Any, Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes import children_of, free_port, serves, wait_until


class Metered:
    """A service with metrics, inside the context; `client` sends requests, and `text` reads the metrics."""

    def __init__(self, serve: Any, command: list[str] | None = None, **changes: Any) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._serving = serve(command, AUTH_METRICS_BIND=self.address, **changes)
        self.service = self._serving.service
        self.directory = self.service.state_dir / f"metrics-{self.service.port}"

    def __enter__(self) -> Self:
        _, self.client = self._serving.__enter__()
        self._http = httpx.Client(base_url=f"http://{self.address}", timeout=30)
        wait_until(lambda: self.text())
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._serving.__exit__()

    def ask_for_tokens(self, grant: str, **body: str) -> Any:
        return self.client.post(f"/token?grant_type={grant}", json=body)

    def text(self, path: str = "/metrics") -> str:
        """Return the metrics, or nothing where they are not served."""
        try:
            response = self._http.get(path)
        except httpx.TransportError:
            return ""
        return response.text if response.status_code == 200 else ""

    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples().get((name, frozenset(labels.items())))

    def requests(self) -> float:
        return sum(value for (name, _), value in self.samples().items() if name == "latchkey_requests_total")

    def workers(self) -> set[int]:
        return {pid for pid in children_of(self.service.process.pid) if serves(pid)}
