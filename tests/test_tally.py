"""What a flood is counted by in the log."""

from structlog.testing import capture_logs

from auth.tally import Tally


def test_a_tally_logs_how_often_its_event_happened_since_the_last_line():
    tally = Tally("it_happened")
    with capture_logs() as logs:
        for _ in range(6):
            tally.count()
        tally._logged_at -= 1
        for _ in range(300):
            tally.count()
        tally._logged_at -= 1
        tally.count()
    assert [(line["event"], line["log_level"], line["times"]) for line in logs] == [
        ("it_happened", "warning", times) for times in (1, 6, 300)
    ]
