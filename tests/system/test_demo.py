"""The demo, as README.md shows it: it must learn its task."""

import base64
import re
import shlex

from headway.cli.demo import _to_try
from tests.system.running import run_headway


def test_its_commands_quote_a_folder_with_spaces(tmp_path):
    run = tmp_path / "two words" / "run"
    lines = _to_try(run, tmp_path / "two words" / "test.en", tmp_path / "two words" / "test.ko").splitlines()
    assert [shlex.split(line).count(str(run)) for line in lines] == [1, 1, 1, 0]
    assert shlex.split(lines[2])[-3:] == [str(run.parent / "test.en"), "--reference", str(run.parent / "test.ko")]


def test_demo_reaches_99_percent_on_unseen_dates(tmp_path):
    outcome = run_headway("demo", cwd=tmp_path, timeout=1200)
    assert outcome.code == 0, outcome.err
    accuracy = re.search(r"([\d.]+)%", outcome.out)
    assert accuracy
    assert float(accuracy.group(1)) >= 99.0
    error = re.search(r"alignment error rate of ([\d.]+)%", outcome.out)
    assert error
    assert float(error.group(1)) <= 5.0
    assert "Try next" in outcome.out
    assert "█" in outcome.out
    page = (tmp_path / "headway-demo" / "page.html").read_text(encoding="utf-8")
    assert "headway-demo/page.html" in outcome.out
    model = base64.b64decode(page.partition('id="model">')[2].partition("</script>")[0])
    assert b'"domain":"dates and times"' in model  # tests/system/test_web.py opens such a page
    assert b'"head_importance":{"fields"' in model
    run = tmp_path / "headway-demo" / "run"
    translated = run_headway("translate", run, input_="Sunday, October 3, 1999, 7:30 PM\n")
    assert translated.out == "1999년 10월 3일 일요일 오후 7:30\n"
    again = run_headway("demo", cwd=tmp_path)
    assert again.code == 0
    assert accuracy.group(0) in again.out
