"""The state of the master before it forks: each worker gets a copy, and no two may share it."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.processes import CHECKOUT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PROGRAM = """
import gc, json, os, random, runpy, secrets, threading, uuid
def descriptors():
    return {os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")}
before = descriptors()
runpy.run_path("gunicorn.conf.py")
from auth.ops.processes import starting
from auth.core.settings import state
os.environ[state.METRICS_DIRECTORY] = os.environ["AUTH_STATE_DIR"]
from auth.core.settings import load
starting.make_application(load())

import flask, gevent, psycopg2, redis.connection, requests
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client.metrics import MetricWrapperBase
def randoms():
    key = Ed25519PrivateKey.generate().private_bytes_raw().hex()
    return [random.random(), random.SystemRandom().random(), secrets.token_hex(), str(uuid.uuid4()), key]
def child():
    read, write = os.pipe()
    if not os.fork():
        os.write(write, json.dumps(randoms()).encode())
        os._exit(0)
    return json.loads(os.read(read, 10_000))
# gunicorn's worker makes gevent's event loop anew.
opened = [each for each in descriptors() - before if "anon_inode:[event" not in each]
gc.unfreeze()
connections = (psycopg2.extensions.connection, redis.connection.Connection, requests.Session)
made = (*connections, flask.Flask, MetricWrapperBase)
found = [type(each).__name__ for each in gc.get_objects() if issubclass(type(each), made)]
print(json.dumps({
    "native threads": len(os.listdir("/proc/self/task")),
    "threads": threading.active_count(),
    "greenlets": sum(isinstance(each, gevent.Greenlet) for each in gc.get_objects()),
    "descriptors": opened,
    "objects": found,
    "metrics": sorted(os.listdir(os.environ[state.METRICS_DIRECTORY])),
    "randoms": [child(), child(), randoms()],
}))
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory) -> dict:
    """Create the application as the master does, and describe the process."""
    environment = {
        "PATH": os.environ["PATH"],
        "AUTH_STATE_DIR": str(tmp_path_factory.mktemp("state")),
        "AUTH_METRICS_BIND": "127.0.0.1:1",
        "AUTH_RATE_LIMIT_STORAGE": "redis://127.0.0.1:1",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "AUTH_SECRET_KEY": "secret-0123456789-abcdefghijklmnopqrstuvwxyz",
        "AUTH_SERVICE_ROLE_KEY": "service-0123456789-abcdefghijklmnopqrstuvwxyz",
        "AUTH_JWT_SECRET": "signing-0123456789-abcdefghijklmnopqrstuvwxyz",
    }
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=CHECKOUT, env=environment, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


def test_master_has_the_application_without_threads_descriptors_or_connections_before_it_forks(master):
    expected = {
        "native threads": 1,
        "threads": 1,
        "greenlets": 0,
        "descriptors": [],
        "objects": ["Application"],
        "metrics": [],
    }
    assert {name: value for name, value in master.items() if name != "randoms"} == expected


def test_workers_draw_different_random_values(master):
    for values in zip(*master["randoms"], strict=True):
        assert len(set(values)) == 3
