"""gunicorn's master, as its hooks see it, with what they keep there."""

from collections.abc import Callable, Mapping
from types import FrameType
from typing import Protocol

from gunicorn.config import Config

from auth.ops.processes.delivery_process import DeliveryProcess
from auth.ops.processes.embedded_postgres import EmbeddedPostgres


class StartedWorker(Protocol):
    # A part of the names of its files for metrics.
    slot: int


class Master(Protocol):
    cfg: Config
    num_workers: int
    timeout: int
    WORKERS: Mapping[int, StartedWorker]
    # Others that have the same listening sockets: systemd, and the masters before and after a USR2, or 0.
    systemd: bool
    master_pid: int
    reexec_pid: int
    # The main loop calls these.
    handle_term: Callable[[], None]
    handle_hup: Callable[[], None]
    manage_workers: Callable[[], None]
    murder_workers: Callable[[], None]

    delivery: DeliveryProcess
    embedded_postgres: EmbeddedPostgres | None
    # The descriptor that locks the state directory of a service with another Postgres.
    state_lock: int
    # Whether a HUP may mean that the terminal was closed.
    ends_with_terminal: bool
    # When the heartbeats were last looked at, and from when on they count: times of `time.monotonic`.
    looked_at: float
    judges_from: float

    def signal(self, number: int, frame: FrameType | None, /) -> None: ...
