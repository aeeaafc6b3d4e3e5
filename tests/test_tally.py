"""What a flood is counted by in the log."""

from structlog.testing import capture_logs

from auth.tally import Tally, tell_all


def test_a_tally_tells_how_often_since_it_last_told():
    tally = Tally("it_happened")
    with capture_logs() as logs:
        for _ in range(6):
            tally.count()
        tally._logged_at -= 1
        tally.count()
        for _ in range(300):
            tally.count()
        tally._logged_at -= 1
        tell_all()
        tell_all()
    assert [(line["event"], line["log_level"], line["times"]) for line in logs] == [("it_happened", "warning", times) for times in (1, 6, 300)]
