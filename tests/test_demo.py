import pytest

from weft import demo


def test_the_tour_runs_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    shown = capsys.readouterr().out
    assert "reader 'star'      sensors.london.temp, sensors.paris.temp\n" in shown
    assert "messages dropped, reason 'slow'" in shown
    assert shown.endswith("`make help`.\n")
