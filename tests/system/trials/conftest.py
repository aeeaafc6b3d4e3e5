"""Fixtures of the trials, which run the service with its own deadlines."""

from tests.system.faults.fixtures import (  # noqa: F401
    _patient_pool,
    deployment,
    files_of_the_release_before,
    service,
    small_disk,
)
from tests.system.guides.conftest import page  # noqa: F401
