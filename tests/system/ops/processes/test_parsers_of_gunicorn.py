"""Which parser of HTTP gunicorn uses."""

from tests.ops.processes.test_gunicorn_errors import SETTINGS
from tests.support.raw_http import exchange


def test_parser_that_happens_to_be_installed_is_not_used(serve, tmp_path):
    (tmp_path / "gunicorn_h1c.py").write_text("LimitRequestLine = LimitRequestHeaders = ValueError")
    with serve(AUTH_WORKERS="1", PYTHONPATH=str(tmp_path)) as (service, _):
        assert [reply.status for reply in exchange(service.port, SETTINGS)] == [200]
