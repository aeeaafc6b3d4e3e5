"""Throttled log lines."""

from structlog.testing import capture_logs

from auth.core.logs import ThrottledLog


def test_throttled_log_counts_the_events_since_its_last_line():
    throttled = ThrottledLog("it_happened")
    throttled.interval = 1
    with capture_logs() as logs:
        for _ in range(6):
            throttled.count()
        throttled._logged_at -= 1
        for _ in range(300):
            throttled.count()
        throttled._logged_at -= 1
        throttled.count()
    assert [(line["event"], line["log_level"], line["times"]) for line in logs] == [
        ("it_happened", "warning", times) for times in (1, 6, 300)
    ]
