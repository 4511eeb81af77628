"""What `headway translate` tells of the lines of a long job."""

from tests.translator.test_translator import translator

from headway.cli.translate import SHOWN, Notices
from headway.data.lines import Line
from headway.translator.lines import JobNotice, LineOptions, LineTranslator
from headway.translator.translation import Translation


def test_many_lines_cut_off_hide_no_other_notice(capsys):
    work = LineTranslator(translator(max_length=20), LineOptions(search={"max_length": 1}))
    cut = work.translate([Line(number, "the cat") for number in range(1, 101)]).notices
    assert len(cut) == 100
    too_long = work.translate([Line(101, "the cat " * 30)]).notices
    blank = work.translate([Line(102, "", fault="has no second column")]).notices
    notices = Notices()
    for notice in (*cut, *too_long, *blank, JobNotice("notice: out: continues after line 7")):
        notices(notice)
    notices.end()
    told = capsys.readouterr().err.splitlines()
    assert told[:SHOWN] == [f"headway: {notice.text}" for notice in cut[:SHOWN]]
    assert told[SHOWN:] == [
        f"headway: {too_long[0].text}",
        f"headway: {blank[0].text}",
        "notice: out: continues after line 7",
        "headway: 80 more lines were cut off",
    ]


def test_lines_left_blank_are_counted_apart(capsys):
    work = LineTranslator(translator(), LineOptions())
    notices = Notices()
    for number in range(30):
        for notice in work.translate([Line(number, "", fault="is not JSON")]).notices:
            notices(notice)
    notices.end()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == SHOWN + 1
    assert told[-1] == "headway: 10 more lines were left blank"


def test_lines_without_a_term_of_the_glossary_are_not_said_to_be_blank(capsys, monkeypatch):
    door = translator()
    monkeypatch.setattr(door, "translate", lambda texts, **_: [Translation("cut", 0.0, "eos") for _ in texts])
    work = LineTranslator(door, LineOptions(glossary=(("cat", "mat"),)))
    notices, written = Notices(), work.translate([Line(number, "the cat") for number in range(30)])
    assert written.failed == 0
    for notice in written.notices:
        notices(notice)
    notices.end()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == SHOWN + 1
    assert told[-1] == "headway: 10 more lines lack terms of the glossary"


def test_all_progress_of_a_cluster_is_told(capsys):
    notices, progress = Notices(), [f"{done} of 40 shards, {done}00 of 4,000 lines" for done in range(1, 41)]
    for text in progress:
        notices(JobNotice(text))
    notices.end()
    assert capsys.readouterr().err.splitlines() == progress
