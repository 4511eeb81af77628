"""Text that is odd, damaged or the wrong file: every line keeps its own partner, or one line says what is wrong and
where."""

import gzip
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
import unicodedata

import pytest

from headway.text.characters import visible
from headway.text.protected import split_protected
from tests.system.conftest import LANGUAGES, QUICK, TINY
from tests.system.running import complaint, run_headway

GOOD = b"ant bee\ncat\n"


def lines(outcome):
    assert outcome.code == 0, outcome.err
    return outcome.out.split("\n")[:-1]


def training(source, target, valid_source=None, valid_target=None):
    valid = ("--valid-source", valid_source or source, "--valid-target", valid_target or target)
    return ("train", "--source", source, "--target", target, *valid, "--out", source.parent / "run", *LANGUAGES)


READERS = {
    "train --source": lambda model, bad, good: training(bad, good, good, good),
    "train --target": lambda model, bad, good: training(good, bad, good, good),
    "train --valid-source": lambda model, bad, good: training(good, good, bad, good),
    "train --valid-target": lambda model, bad, good: training(good, good, good, bad),
    "translate": lambda model, bad, good: ("translate", model, bad),
    "evaluate --source": lambda model, bad, good: ("evaluate", model, "--source", bad, "--reference", good),
    "evaluate --reference": lambda model, bad, good: ("evaluate", model, "--source", good, "--reference", bad),
    "score --source": lambda model, bad, good: ("score", model, "--source", bad, "--target", good),
    "score --target": lambda model, bad, good: ("score", model, "--source", good, "--target", bad),
    "check --source": lambda model, bad, good: ("check", "--source", bad, "--target", good),
    "check --valid-target": lambda model, bad, good: (
        *("check", "--source", good, "--target", good, "--valid-source", good, "--valid-target", bad),
    ),
}
TWO_FILES = [reader for reader in READERS if reader != "translate"]


def refusal(reader, trained, bad):
    good = bad.parent / "good"
    good.write_bytes(GOOD)
    return complaint(*READERS[reader](trained, bad, good))


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_named(reader, trained, tmp_path):
    (tmp_path / "folder").mkdir()
    assert f"{tmp_path}/folder: is a folder" in refusal(reader, trained, tmp_path / "folder")
    assert f"{tmp_path}/absent: no such file" in refusal(reader, trained, tmp_path / "absent")


@pytest.mark.parametrize("reader", READERS)
def test_a_cut_gzip_names_the_last_line_that_was_whole(reader, trained, tmp_path):
    bad = tmp_path / "bad.gz"
    bad.write_bytes(gzip.compress(GOOD)[:-9])
    assert f"{bad}: can't be read after line " in refusal(reader, trained, bad)


@pytest.mark.parametrize("reader", [reader for reader in READERS if not reader.startswith("check")])
def test_bytes_that_are_no_text_are_named(reader, trained, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"ant bee\ncat \xff\n")
    assert f"{bad}, line 2: byte 0xff at column 5 is not UTF-8" in refusal(reader, trained, bad)


@pytest.mark.parametrize("reader", ["train --target", "translate", "evaluate --source"])
@pytest.mark.parametrize("data", [b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_overlong_and_impossible_utf8_is_named(reader, data, trained, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"ant bee\n" + data + b"\n")
    assert f"{bad}, line 2: byte 0x{data[0]:02x} at column 1" in refusal(reader, trained, bad)


def test_bad_bytes_on_standard_input_and_in_translations_to_compare(trained, tmp_path):
    assert "standard input, line 2: byte 0xff" in complaint("translate", trained, input_=b"ant bee\n\xff\n")
    (tmp_path / "good").write_bytes(GOOD)
    (tmp_path / "bad").write_bytes(b"\xc0\xaf\ncat\n")
    files = ("--source", tmp_path / "good", "--reference", tmp_path / "good", "--compare", tmp_path / "bad")
    assert f"{tmp_path}/bad, line 1: byte 0xc0" in complaint("evaluate", trained, *files)


def test_check_finds_bad_bytes_instead(tmp_path):
    (tmp_path / "bad").write_bytes(b"ant bee\ncat \xff\nnul \x00\n")
    (tmp_path / "good").write_bytes(b"one\ntwo\nthree\n")
    found = run_headway("check", "--source", tmp_path / "bad", "--target", tmp_path / "good", "--json")
    places = {finding["name"]: finding["places"] for finding in json.loads(found.out)["findings"]}
    assert places == {"not UTF-8": [f"{tmp_path}/bad:2"], "invisible characters": [f"{tmp_path}/bad:3"]}


@pytest.mark.parametrize("reader", TWO_FILES)
@pytest.mark.parametrize(("data", "count"), [(b"", 0), (b"ant\nbee\n\n", 3)])
def test_uneven_files_name_both_counts(reader, data, count, trained, tmp_path):
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(data)
    message = refusal(reader, trained, bad)
    assert f"{bad} has {count} lines" in message or f"{bad} has {count}:" in message
    assert f"{good} has 2 lines" in message or f"{good} has 2:" in message


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", b"ant\tant\ncat\n", "line 2: has no TAB"),
        ("a.tsv", b"ant\tant\ncat\tcat\tdog\n", "line 2: has 3 columns"),
        ("a.tsv", b"ant\tant\ncat\t\xff\n", "line 2: byte 0xff"),
        ("a.jsonl", b'{"source": "a", "target": "b"}\n{"source": "a"}\n', "line 2: is not an object"),
        ("a.jsonl", b'{"source": "a", "target": "b"}\n{"source": "a", "target": "b", "target": "c"}\n', "line 2: has"),
        ("a.jsonl", b'{"source": "a", "target": "b"}\n{"source": "a"\n', "line 2: is not JSON"),
        ("a.jsonl", b'{"source": "a", "target": "\\ud800"}\n', "line 1: holds half of a surrogate pair"),
    ],
)
@pytest.mark.parametrize("command", ["train", "score"])
def test_files_of_both_sides_name_the_line(command, name, data, message, trained, tmp_path):
    bad = tmp_path / name
    bad.write_bytes(data)
    arguments = ("score", trained, "--source", bad)
    if command == "train":
        arguments = ("train", "--source", bad, "--valid-source", bad, "--out", tmp_path / "run", *LANGUAGES)
    assert f"{bad}, {message}" in complaint(*arguments)


@pytest.mark.skipif(os.name == "nt", reason="no such permissions here")
@pytest.mark.parametrize("reader", ["train --target", "translate", "evaluate --reference", "score --source"])
def test_a_file_that_may_not_be_read_is_named(reader, trained, tmp_path):
    command = [sys.executable, "-m", "headway"]
    if os.geteuid() == 0:  # who may read everything
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv to give up what root may do")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(GOOD)
    good.write_bytes(GOOD)
    bad.chmod(0)
    command += map(str, READERS[reader](trained, bad, good))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("headway: ")
    assert str(bad) in message
    assert "Permission denied" in message or "is not readable" in message


def test_line_ends_alone_are_no_difference(trained, tmp_path):
    (tmp_path / "source").write_bytes(b"\xef\xbb\xbfant bee\r\ncat")
    (tmp_path / "target").write_bytes(b"bee ant\ncat\n")
    files = ("--source", tmp_path / "source", "--reference", tmp_path / "target")
    found = json.loads(run_headway("evaluate", trained, *files, "--json").out)
    assert (found["lines"], found["chrf"]) == (2, pytest.approx(100))


def test_blank_and_empty_files(trained, tmp_path):
    (tmp_path / "blank").write_bytes("\n \n\u2028\n\x1c\n".encode())
    (tmp_path / "empty").touch()
    assert lines(run_headway("translate", trained, tmp_path / "blank")) == [""] * 4
    for name, count, reason in (("blank", 4, "holds no pair with text"), ("empty", 0, "is empty")):
        files = ("--source", tmp_path / name, "--target", tmp_path / name)
        assert lines(run_headway("score", trained, *files)) == ["0.0000"] * count
        assert reason in complaint(*training(tmp_path / name, tmp_path / name))
    assert f"{tmp_path}/empty: is empty" in complaint("check", *files)
    assert "4  both blank" in run_headway("check", "--source", tmp_path / "blank", "--target", tmp_path / "blank").out


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_a_single_pair_is_enough(kind, tmp_path):
    (tmp_path / "a.tsv").write_text("ein Hund\ta dog\n")
    files = ("--source", tmp_path / "a.tsv", "--valid-source", tmp_path / "a.tsv", "--out", tmp_path / "run")
    outcome = run_headway("train", *files, *LANGUAGES, *TINY, f"tokenizer.kind={kind}", "training.max_steps=2")
    assert outcome.code == 0, outcome.err
    assert "train: 1 pairs" in outcome.err
    assert len(lines(run_headway("translate", tmp_path / "run", input_="ein Hund\nein Hund\n"))) == 2


MEMORISED = (
    "training.learning_rate=3e-3",
    "training.warmup_steps=100",
    "training.label_smoothing=0",
    "model.dropout=0",
)


def test_a_blank_line_in_the_middle_shifts_nothing(tmp_path):
    """1,000 pairs that follow no rule, so that a model knows what it was shown and nothing else."""
    chooser = random.Random(5)
    sides = [[f"{side}{i // 32} {side.upper()}{i % 32}" for i in range(1000)] for side in "ab"]
    chooser.shuffle(sides[1])
    sources, targets = sides
    sources[499] = ""
    for name, side in (("source", sources), ("target", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in side))
        (tmp_path / f"valid.{name}").write_text("".join(f"{line}\n" for line in side[900:950]))
    files = training(*(tmp_path / name for name in ("source", "target", "valid.source", "valid.target")))
    limits = ("training.max_steps=450", "training.schedule=cosine", "training.validate_every=450")
    outcome = run_headway(*files, *TINY, *MEMORISED, *limits, "tokenizer.kind=word")
    assert outcome.code == 0, outcome.err
    assert "train: 999 pairs, 1 dropped because a side is blank\n" in outcome.err
    assert "every validation pair is a training pair too" in outcome.err
    found = lines(run_headway("translate", tmp_path / "run", tmp_path / "source", "--beam-size", "1"))
    assert len(found) == 1000
    assert found[499] == ""
    assert found[899] == targets[899]
    assert sum(map(str.__eq__, found, targets)) >= 990


ODD = [
    "U+2028 in\u2028side",
    "U+0085 in\x85side",
    "\x0b and \x0c and \x1c",
    "NUL \x00 byte",
    "mark \ufeff inside",
    "return \r inside",
    "<s> </s> <pad> <unk> <sos> <eos>",
    "<eos>",
    "<pad> <pad> <pad>",
    "<unk> word",
    ">>ko<< tag",
    "|||",
    "안녕하세요 세계",
    "고양이가 앉았다",
    "e\u0301\u0323 and a\u030a\u0301",
    "👩‍👩‍👧 joined 👍🏽",
    "🇰🇷 flag",
    "\u200fשלום\u200e \u202eabc\u202c",
    "مرحبا بالعالم",
    "▁block ▁▂▃",
    "<0x41> byte",
    '"quoted, text"',
    "\\n backslash",
    "zero\u200bwidth",
]


def spelt(text, kind):
    """As it must come out of a model with this kind of tokenizer; no translation has a "\r" in it."""
    return " ".join(unicodedata.normalize("NFC" if kind == "word" else "NFKC", visible(text)).split())


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_odd_text_keeps_its_partner_and_comes_out_as_it_went_in(kind, tmp_path):
    """A model that knows its pairs by heart shows which ones it was given, letter for letter."""
    # what is protected in a source would be in its translation: it is a target alone
    sources = [text if split_protected(text) == [text] else "plain" for text in ODD]
    pairs = [(f"{i} {text}", ODD[i - 7]) for i, text in enumerate(sources)]
    if kind == "word":
        (tmp_path / "odd.jsonl").write_text(
            "".join(f"{json.dumps({'source': source, 'target': target})}\n" for source, target in pairs)
        )
        pairs = [tuple(text.replace("\r", " ") for text in pair) for pair in pairs]
        files = [tmp_path / "odd.jsonl"]
    elif kind == "unigram":
        (tmp_path / "odd.tsv.gz").write_bytes(
            gzip.compress("".join(f"{source}\t{target}\r\n" for source, target in pairs).encode())
        )
        files = [tmp_path / "odd.tsv.gz"]
    else:
        for name, side in zip(("odd.de", "odd.en"), zip(*pairs, strict=True), strict=True):
            (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + "\n".join(side).encode())
        files = [tmp_path / "odd.de", tmp_path / "odd.en"]
    options = [
        item
        for split in ("", "valid-")
        for side, file in zip(("source", "target"), files, strict=False)
        for item in (f"--{split}{side}", file)
    ]
    limits = ("training.max_steps=350", "training.schedule=cosine", "training.validate_every=350")
    run = tmp_path / "run"
    options += [*LANGUAGES, *TINY, *MEMORISED, *limits, f"tokenizer.kind={kind}"]
    outcome = run_headway("train", *options, "--out", run)
    assert outcome.code == 0, outcome.err
    assert f"train: {len(ODD)} pairs\n" in outcome.err
    expected = [spelt(target, kind) for _, target in pairs]
    for form in ("NFC", "NFD"):
        text = "\n".join(unicodedata.normalize(form, source) for source, _ in pairs)
        found = lines(run_headway("translate", run, input_=text))
        assert dict(zip(ODD, found, strict=True)) == dict(zip(ODD, expected, strict=True))
    (tmp_path / "in").write_bytes(b"\xef\xbb\xbf" + "".join(f"{source}\r\n" for source, _ in pairs).encode())
    assert lines(run_headway("translate", run, tmp_path / "in")) == expected
    scores = [float(score) for score in lines(run_headway("score", run, *options[: 2 * len(files)]))]
    assert min(scores) > -3


def test_marks_by_the_thousand_and_far_too_long_lines_among_others(trained):
    odd = ["e" + "\u0301" * 5000, "👩‍👩‍👧‍👦" * 1000, "\u202ea" * 3000, "a\u0323" * 2000, "e" + "\u0301\u0323" * 100]
    text = "".join(f"{line}\nant bee\n" for line in odd)
    outcome = run_headway("translate", trained, input_=text)
    found = outcome.out.split("\n")
    assert outcome.code == 2
    assert found[1::2] == ["bee ant"] * len(odd)
    assert [line for line in found[:-1:2] if not line] == [""] * 4
    assert [number for number in range(1, 11) if f"line {number} has " in outcome.err] == [1, 3, 5, 7]


def measured(*arguments, input_=b""):
    """Exit code, output, errors, seconds and MiB of memory at most, of a run."""
    start = time.monotonic()
    code = (
        "import resource, subprocess, sys; done = subprocess.run([sys.executable, '-m', 'headway', *sys.argv[1:]]);"
        "print('MiB', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr);"
        "sys.exit(done.returncode)"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, input=input_, capture_output=True, check=False, timeout=300)
    errors = done.stderr.decode()
    return done.returncode, done.stdout.decode(), errors, time.monotonic() - start, int(errors.split()[-1])


ENDLESS = {"words": "ant bee " * 1_250_000, "one word": "a" * 10_000_000, "marks": "e" + "\u0301\u0323" * 2_500_000}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured in Linux's units")
@pytest.mark.parametrize("what", ENDLESS)
def test_a_line_of_ten_megabytes_takes_little_time_and_memory(what, corpus, trained, tmp_path):
    endless = ENDLESS[what]
    (tmp_path / "good").write_bytes(GOOD)
    _, _, _, seconds, memory = measured("translate", trained, tmp_path / "good")

    def check_cost(outcome, most_seconds, most_memory=400):
        assert outcome[3] < seconds + most_seconds
        assert outcome[4] < memory + most_memory

    outcome = measured("translate", trained, input_=f"ant bee\n{endless}\ncat\n".encode())
    check_cost(outcome, 30)
    assert outcome[:2] == (2, "bee ant\n\ncat\n")
    assert f"line 2 has {len(endless):,} characters, the model reads at most 1023 tokens" in outcome[2]
    (tmp_path / "a.tsv").write_text(f"ant bee\tbee ant\n{endless}\tcat\ncat\t{endless}\ncat\tcat\n")
    outcome = measured("score", trained, "--source", tmp_path / "a.tsv")
    check_cost(outcome, 30)
    assert outcome[0] == 2
    assert [math.isnan(float(score)) for score in outcome[1].split()] == [False, True, True, False]
    outcome = measured("evaluate", trained, "--source", tmp_path / "a.tsv")
    check_cost(outcome, 30)
    assert outcome[:2] == (2, "")
    assert f"{tmp_path}/a.tsv, line 3: has {len(endless):,} characters, too many to be scored" in outcome[2]
    outcome = measured("check", "--source", tmp_path / "a.tsv")
    check_cost(outcome, 30)
    assert "4 pairs" in outcome[1]
    sides = [corpus.file(f"train.{side}").read_text().splitlines()[:500] for side in ("src", "tgt")]
    for name, side in zip(("source", "target"), sides, strict=True):
        side[299:299] = [endless if name == "source" else "cat"]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in side))
    files = training(tmp_path / "source", tmp_path / "target", corpus.file("valid.src"), corpus.file("valid.tgt"))
    outcome = measured(*files, *QUICK, "tokenizer.kind=unigram", "training.max_steps=2", "training.finish=false")
    check_cost(outcome, 60, 650)  # torch is in memory, which translating needs no more
    assert f"train: 500 pairs, 1 dropped because they are too long (first: {tmp_path}/source:300)" in outcome[2]


def test_input_without_line_ends_is_refused(trained):
    command = f"'{sys.executable}' -m headway translate '{trained}' /dev/zero"
    done = subprocess.run(["bash", "-c", f"ulimit -v 8000000; {command}"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "/dev/zero, line 1: is longer than 67,108,864 bytes" in done.stderr


def test_the_same_text_twice_is_told(corpus, trained, tmp_path):
    copies = {name: tmp_path / name for name in ("train.src", "train.tgt", "valid.src")}
    for name, copy in copies.items():
        copy.write_text("".join(corpus.file(name).read_text().splitlines(keepends=True)[:50]))
    files = training(corpus.file("train.src"), corpus.file("train.tgt"), copies["train.src"], copies["train.tgt"])
    options = (*QUICK, "training.max_steps=1")
    outcome = run_headway(*files[:-3], tmp_path / "one", *LANGUAGES, *options)
    assert "warning: every validation pair is a training pair too, so the scores below mean nothing" in outcome.err
    assert "are the same" not in outcome.err
    files = training(corpus.file("valid.src"), copies["valid.src"], corpus.file("test.src"), corpus.file("test.tgt"))
    outcome = run_headway(*files[:-3], tmp_path / "two", *LANGUAGES, *options)
    assert "warning: source and target of the training text are the same" in outcome.err
    for command, other in (("evaluate", "--reference"), ("score", "--target")):
        outcome = run_headway(command, trained, "--source", corpus.file("valid.src"), other, copies["valid.src"])
        assert outcome.code == 0
        assert "are the same text" in outcome.err
    copied = run_headway("check", "--source", corpus.file("valid.src"), "--target", copies["valid.src"]).out
    assert "50  copied: source and target are the same text" in copied


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_pipes_are_read_once_or_refused(corpus, trained, tmp_path):
    program = f"'{sys.executable}' -m headway"
    source, target = (corpus.file(f"test.{side}") for side in ("src", "tgt"))

    def in_shell(arguments):
        return subprocess.run(
            ["bash", "-c", f"{program} {arguments}"], capture_output=True, text=True, check=False, timeout=300
        )

    plain = run_headway("score", trained, "--source", source, "--target", target).out
    assert in_shell(f"score '{trained}' --source <(cat '{source}') --target <(cat '{target}')").stdout == plain
    plain = run_headway("translate", trained, source).out
    assert in_shell(f"translate '{trained}' <(cat '{source}')").stdout == plain
    valid = f"--valid-source '{source}' --valid-target '{target}' --out '{tmp_path}/run' {' '.join(LANGUAGES)}"
    for arguments, message in (
        (f"train --source <(cat '{source}') --target <(cat '{target}') {valid}", "is a pipe or device"),
        (f"score '{trained}' --source /dev/stdin --target /dev/stdin < <(cat '{source}')", "can't be both sides"),
    ):
        done = in_shell(arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


def test_standard_input_that_can_not_be_read(trained, tmp_path):
    script = f"'{sys.executable}' -m headway translate '{trained}' 0> '{tmp_path}/file'"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "standard input: can't be read after line 0" in done.stderr


def test_a_name_that_no_file_can_have(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    files = "{source: 'a', target: \"b\\0c\"}"
    recipe.write_text(
        f"data: {{train: {files}, valid: {files}, source_language: de, target_language: en}}\n"
        "training: {max_steps: 1}\n"
    )
    (tmp_path / "a").write_bytes(GOOD)
    assert "is no name of a file" in complaint("train", recipe, "--out", tmp_path / "run")
