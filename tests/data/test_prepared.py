"""Folders of prepared data: equal whatever interrupts the work and however many processes do it, refused where they
don't fit, and trained on as a run's own data are."""

import gzip
import json
import random
import re
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from tests.ids import write_ids

from headway.data import corpus as corpus_module
from headway.data import prepare as preparing
from headway.data import shards
from headway.data.pair_noise import titled
from headway.data.prepare import prepare, prepare_folder
from headway.data.prepared import find_tokenizer, made_from, read_prepared_for
from headway.data.shards import ParallelIds
from headway.errors import UserError
from headway.recipe.reading import load_recipe, make_recipe
from headway.recipe.recipe import Recipe
from headway.storage.changes import first_change
from headway.training.ranks import SingleProcess
from headway.training.reporter import Reporter
from headway.training.run_directory import refuse_changes
from headway.training.start import start
from headway.training.synthetic import write_synthetic

WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibx", "jay"]
FILTERS = {"words": [1, 6], "max_ratio": 3, "copies": True, "overlap": "pair", "duplicates": ["pair", "source"]}
MAX_LENGTH = 16


class Killed(BaseException):
    """What no handler catches."""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """With the text of two training corpora, one of them in several files, and one to validate on."""
    monkeypatch.setattr(corpus_module, "LINES", 16)
    monkeypatch.setattr(shards, "CHUNKS", 2)
    chooser = random.Random(2)

    def pairs(count: int) -> list[tuple[str, str]]:
        made = [" ".join(chooser.choice(WORDS) for _ in range(chooser.randint(0, 7))) for _ in range(count)]
        return [(one, chooser.choice([" ".join(reversed(one.split())), one, one[:3]])) for one in made]

    valid = [pair for pair in pairs(30) if all(pair)][:9]
    for name, rows in (("a.1", pairs(150)), ("a.2", pairs(90) + valid[:3]), ("valid", valid)):
        for side, suffix in ((0, "de"), (1, "en")):
            text = "".join(f"{row[side]}\n" for row in rows).encode()
            packed = name == "a.2"
            (tmp_path / f"{name}.{suffix}{'.gz' if packed else ''}").write_bytes(
                gzip.compress(text) if packed else text
            )
    rows = [{"source": source, "target": target} for source, target in pairs(120)]
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def recipe_of(folder: Path, *changes: str, filters=FILTERS, tag="") -> Recipe:
    document = {
        "data": {
            "train": [
                {"source": str(folder / "a.*.de*"), "target": str(folder / "a.*.en*"), "tag": tag},
                {"source": str(folder / "b.jsonl"), "weight": 0.5, "tag": tag},
            ],
            "valid": {"source": str(folder / "valid.de"), "target": str(folder / "valid.en"), "tag": tag},
            "filters": filters,
        },
        "tokenizer": {"kind": "word"},
        "model": {"preset": "tiny", "max_length": MAX_LENGTH},
        "training": {"max_steps": 4, "tokens_per_batch": 200, "device": "cpu", "precision": "fp32"},
    }
    return make_recipe(document, changes)


def make(recipe: Recipe, output: Path, processes=1, show=None, tokenizers=None) -> list[str]:
    """What was told."""
    told: list[str] = []
    prepare_folder(
        recipe.preparation(MAX_LENGTH),
        output,
        told.append,
        write_synthetic,
        tokenizers,
        processes=processes,
        show=show,
    )
    return told


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def after(calls: int):
    """Kills when so many chunks were shown."""
    counted = []

    def show(*_):
        counted.append(1)
        if len(counted) > calls:
            raise Killed

    return show


def test_any_number_of_processes_gives_the_same_bytes(folder):
    for processes in (1, 2, 3):
        make(recipe_of(folder), folder / str(processes), processes)
    assert files(folder / "1") == files(folder / "2") == files(folder / "3")
    assert len(list((folder / "1" / "train").glob("0*"))) > 1
    assert not (folder / "1" / "work").exists()


NOISE = ("tokenizer.kind=bpe", "tokenizer.vocab_size=330", "data.noise={share: 0.5, kinds: [upper]}")


def test_noise_is_in_the_sources_of_training_alone(folder):
    """Each version of a source is its text or that text in capitals, as often as the recipe says, and the tag that it
    begins with stays. Targets and validation are as ever. The number of processes is no difference."""
    make(recipe_of(folder, *NOISE[:2], tag="en"), folder / "usual")
    for processes in (1, 2):
        make(recipe_of(folder, *NOISE, tag="en"), folder / str(processes), processes)
    assert files(folder / "1") == files(folder / "2")
    usual, noisy = (ParallelIds(folder / one / "train") for one in ("usual", "1"))
    of_usual, tokenizer = (find_tokenizer(folder / one, "source") for one in ("usual", "1"))
    assert (noisy.versions, len(noisy), noisy.sizes) == (8, 8 * len(usual), usual.sizes)
    found = Counter()
    for pair in range(len(usual)):
        source = of_usual.decode(usual.source[pair].tolist()[1:])
        target = of_usual.decode(usual.target[pair].tolist())
        for number in range(8):
            ids = noisy.source[8 * pair + number].tolist()
            assert tokenizer.decode(noisy.target[8 * pair + number].tolist()) == target
            assert len(ids) < MAX_LENGTH
            assert ids[0] == usual.source[pair][0], "the tag"
            text = tokenizer.decode(ids[1:])
            assert text in (source, source.upper())
            found[text] += 1
    capitals = sum(count for text, count in found.items() if text.isupper())
    assert 0.25 < capitals / sum(found.values()) < 0.6  # less than a half: some have no letters, or are too long
    valid, of_noisy = (ParallelIds(folder / one / "valid") for one in ("usual", "1"))
    for pair in range(len(valid)):
        source, target = valid.source[pair].tolist()[1:], valid.target[pair].tolist()
        assert tokenizer.decode(of_noisy.source[pair].tolist()[1:]) == of_usual.decode(source)
        assert tokenizer.decode(of_noisy.target[pair].tolist()) == of_usual.decode(target)
    reports = [json.loads((folder / name / "report.json").read_text()) for name in ("1", "usual")]
    assert reports[0] == reports[1]


def test_noise_of_both_sides_is_in_both(folder):
    """A source in capitals has its target in capitals, a changed source a changed target. The tag stays, and the number
    of processes is no difference."""
    noise = ("tokenizer.kind=bpe", "tokenizer.vocab_size=400", "data.noise.pairs={title: 0.3, tags: 0.1, copy: 0.1}")
    for processes in (1, 2):
        make(recipe_of(folder, *noise, tag="en"), folder / str(processes), processes)
    assert files(folder / "1") == files(folder / "2")
    sides = ParallelIds(folder / "1" / "train").source, ParallelIds(folder / "1" / "train").target
    tokenizers = [find_tokenizer(folder / "1", side) for side in ("source", "target")]
    found = Counter()
    for first in range(0, len(sides[0]), 8):
        rows = [[side[first + number].tolist() for side in sides] for number in range(8)]
        assert {source[0] for source, _ in rows} == {sides[0][0][0]}, "the tag"
        pairs = [(tokenizers[0].decode(source[1:]), tokenizers[1].decode(target)) for source, target in rows]
        usual = Counter(pairs).most_common(1)[0][0]
        for pair in pairs:
            kind = "usual" if pair == usual else "title" if pair == (titled(usual[0]), titled(usual[1])) else "other"
            assert kind != "other" or (pair[0] != usual[0] and pair[1] != usual[1])
            found[kind] += 1
    assert 0.18 < found["title"] / found.total() < 0.35  # some are too long with capitals
    assert 0.1 < found["other"] / found.total() < 0.25


def test_the_vocabulary_has_tokens_for_noise(folder):
    """Text in capitals has nearly as few tokens as text without noise; from clean text they are single letters."""
    words = " ".join(WORDS)
    tokens = {}
    for name, changes in (("usual", NOISE[:2]), ("noise", NOISE)):
        make(recipe_of(folder, *changes, "tokenizer.vocab_size=380"), folder / name)
        tokenizer = find_tokenizer(folder / name, "source")
        tokens[name] = [len(tokenizer.encode(text)) for text in (words, words.upper())]
    assert tokens["usual"][1] >= 3 * len(WORDS)
    assert tokens["noise"][1] < 2 * len(WORDS)
    assert tokens["noise"][0] < 2 * len(WORDS)


def test_the_same_text_on_both_sides_is_a_mistake_unless_noise_is_corrected(folder):
    text = {"source": str(folder / "a.1.de"), "target": str(folder / "a.1.de")}
    valid = {"source": str(folder / "valid.de"), "target": str(folder / "valid.en")}
    recipe = {
        **recipe_of(folder).model_dump(mode="json"),
        "data": {"train": text, "valid": valid, "source_language": "de", "target_language": "de"},
    }
    warning = f"warning: source and target of the training text are the same ({folder / 'a.1.de'})"
    assert warning in make(make_recipe(recipe, NOISE[:2]), folder / "plain")
    assert warning not in make(make_recipe(recipe, NOISE), folder / "noise")


def test_other_noise_is_another_folder(folder):
    make(recipe_of(folder, *NOISE), folder / "out")
    read_prepared_for(recipe_of(folder, *NOISE).preparation(MAX_LENGTH), folder / "out", None, None)
    for change in ("data.noise.share=0.4", "data.noise.kinds=lower", "data.noise=null"):
        with pytest.raises(UserError, match="noise"):
            read_prepared_for(recipe_of(folder, *NOISE, change).preparation(MAX_LENGTH), folder / "out", None, None)


@pytest.mark.usefixtures("held_files_stay")
@pytest.mark.parametrize("noise", [(), NOISE], ids=["", "noise"])
@pytest.mark.parametrize("processes", [1, 2])
def test_work_that_was_killed_goes_on_to_the_same_bytes(processes, noise, folder):
    """Again and again, a little further each time, each time with another number of processes."""
    make(recipe_of(folder, *noise), folder / "whole")
    for step in (3, 5, 9) if processes == 1 else (5,):
        kills = 0
        output = folder / f"killed {step}"
        while True:
            show = after(step if processes == 1 or kills % 2 else step + 3)
            try:
                told = make(recipe_of(folder, *noise), output, processes if kills % 2 else 1, show)
            except Killed:
                kills += 1
                assert kills < 200
                continue
            break
        assert kills >= {3: 4, 5: 3, 9: 1}[step] // processes
        assert any(line.startswith("going on after ") for line in told)
        assert files(output) == files(folder / "whole")


@pytest.mark.parametrize("place", ["shard", "record", "description", "manifest"])
def test_what_a_kill_leaves_half_written_is_no_harm(place, folder, monkeypatch):
    make(recipe_of(folder), folder / "whole")
    output = folder / "killed"
    if place in ("description", "manifest"):
        name = {"description": "write_json", "manifest": "write_manifest"}[place]

        def killed(path, *rest):
            if place == "manifest" or path.name == "report.json":
                raise Killed
            return real(path, *rest)

        real = getattr(preparing, name)
        with monkeypatch.context() as patched:
            patched.setattr(preparing, name, killed)
            with pytest.raises(Killed):
                make(recipe_of(folder), output)
    else:
        with pytest.raises(Killed):
            make(recipe_of(folder), output, show=after(8))
        if place == "shard":  # half of the next
            (output / "train" / "00004.partial").mkdir()
            (output / "train" / "00004.partial" / "source.ids").write_bytes(b"ab")
        else:  # a shard that isn't recorded yet
            shutil.copytree(output / "train" / "00003", output / "train" / "00004")
        told = make(recipe_of(folder), output)
        assert "going on after 128 pairs" in told
    make(recipe_of(folder), output)
    assert files(output) == files(folder / "whole")


def test_validation_is_what_has_text_on_both_sides(folder):
    """As ids also what isn't too long; of each corpus something must be left."""
    (folder / "more.tsv").write_text(f"ant bee\tcat\n\tdog\nelk\t \n{'fox ' * MAX_LENGTH}\tgnu\nhen\tibx jay\n")
    more = f"data.valid=[{{source: {folder / 'valid.de'}, target: {folder / 'valid.en'}}}, {{source: more.tsv}}]"
    recipe = recipe_of(folder, more.replace("more.tsv", str(folder / "more.tsv")))
    told = make(recipe, folder / "out")
    sides = [(folder / f"valid.{side}").read_text().splitlines() for side in ("de", "en")]
    rows = [tuple(line.split("\t")) for line in (folder / "more.tsv").read_text().splitlines()]
    texts = [pair for pair in (*zip(*sides, strict=True), *rows) if all(map(str.strip, pair))]
    assert json.loads((folder / "out" / "valid.json").read_text()) == [list(pair) for pair in texts]
    ids, tokenizer = ParallelIds(folder / "out" / "valid"), find_tokenizer(folder / "out", "source")
    wanted = [pair for pair in texts if len(pair[0].split()) < MAX_LENGTH]
    assert ids.sizes == [9, 2]
    assert [[side[i].tolist() for side in (ids.source, ids.target)] for i in range(11)] == [
        [tokenizer.encode(text) for text in pair] for pair in wanted
    ]
    dropped = f"2 dropped because a side is blank, 1 dropped because they are too long (first: {folder / 'more.tsv'}:4)"
    assert f"valid: 11 pairs, {dropped}" in told
    (folder / "more.tsv").write_text(f"\tdog\n{'fox ' * MAX_LENGTH}\tgnu\n")
    told = r"more\.tsv: holds no usable pair \(1 blank, 1 longer than model.* training\.tokens_per_batch=\d+\); raise"
    with pytest.raises(UserError, match=told):
        make(recipe, folder / "other")


def test_it_is_the_data_that_an_earlier_version_prepared(folder, tmp_path_factory):
    """Which wrote the ids of validation as one shard: a run of it goes on where the same text is prepared again."""
    recipe = recipe_of(folder)
    make(recipe, folder / "prepared")
    earlier = Path(shutil.copytree(folder / "prepared", tmp_path_factory.mktemp("earlier") / "prepared"))
    for name in ("prepared.json", "report.json"):
        (earlier / name).unlink(missing_ok=True)
    shutil.rmtree(earlier / "valid")
    data = read_prepared_for(recipe.preparation(MAX_LENGTH), folder / "prepared", None, None)
    write_ids(earlier / "valid", [data.valid_texts], data.source_tokenizer)
    files = sorted(file for file in earlier.rglob("*") if file.is_file())
    lines = (f"{one.relative_to(earlier).as_posix()} {sha256(one.read_bytes()).hexdigest()}\n" for one in files)
    assert data.fingerprint == sha256("".join(lines).encode()).hexdigest()


def test_the_report_adds_up_and_names_lines_that_were_dropped(folder):
    told = make(recipe_of(folder), folder / "out")
    report = json.loads((folder / "out" / "report.json").read_text())
    assert report["pairs"] == 150 + 90 + 3 + 120
    assert [one["pairs"] for one in report["corpora"]] == [243, 120]
    lines = read_text(folder)
    reasons = Counter()
    for one in report["corpora"]:
        assert one["pairs"] == one["kept"] + sum(dropped["pairs"] for dropped in one["dropped"].values())
        for reason, dropped in one["dropped"].items():
            reasons[reason] += dropped["pairs"]
            assert len(dropped["first"]) == min(3, dropped["pairs"])
            for place in dropped["first"]:
                file, line, shown = re.fullmatch(r"(.+?):(\d+)(?:  (.*))?", place, re.DOTALL).groups()
                pair = lines[file][int(line) - 1]
                assert fits(reason, pair, folder), (reason, place)
                cut = [side[:39] + "…" if len(side) > 40 else side for side in pair]
                assert shown == (None if reason == "blank" else " | ".join(cut))
    assert set(reasons) == {"blank", "words", "max_ratio", "copies", "overlap", "duplicates"}
    assert report["kept"] == len(ParallelIds(folder / "out" / "train")) > 60
    assert sum(ParallelIds(folder / "out" / "train").sizes) == report["kept"]
    for reason, count in reasons.items():
        if reason != "blank":
            place = told.index(f"filter {reason}: {count} pairs dropped, such as")
            named = [one for corpus in report["corpora"] for one in corpus["dropped"].get(reason, {}).get("first", [])]
            assert told[place + 1 : place + 1 + min(3, len(named))] == [f"  {one}" for one in named[:3]]
    assert f"train: {report['kept']} pairs, {reasons['blank']} dropped because a side is blank" in told


def read_text(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """The pairs of each file, by plain means."""
    found = {}
    for name, unpack in (("a.1.{}", bytes), ("a.2.{}.gz", gzip.decompress)):
        sides = [unpack((folder / name.format(side)).read_bytes()).decode().split("\n") for side in ("de", "en")]
        found[str(folder / name.format("de"))] = list(zip(*sides, strict=True))
    rows = [json.loads(line) for line in (folder / "b.jsonl").read_text().splitlines()]
    return {**found, str(folder / "b.jsonl"): [(row["source"], row["target"]) for row in rows]}


def fits(reason: str, pair: tuple[str, str], folder: Path) -> bool:
    """Whether the reason can be seen in the pair."""
    source, target = pair
    sizes = sorted(map(len, pair))
    valid = [(folder / f"valid.{side}").read_text().splitlines() for side in ("de", "en")]
    return {
        "blank": not source or not target,
        "words": max(len(source.split()), len(target.split())) > 6,
        "max_ratio": sizes[1] > 20 and sizes[1] > 3 * sizes[0],
        "copies": source == target,
        "overlap": pair in zip(*valid, strict=True),
        "duplicates": sum(source == other for rows in read_text(folder).values() for other, _ in rows) > 1,
    }[reason]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("tokenizer.vocab_size=99", r"begun with another recipe: tokenizer\.vocab_size \(8000 -> 99\)"),
        ("data.filters.copies=false", r"begun with another recipe: data\.filters\.copies \(true -> null\)"),
        ("training.tokens_per_batch=100", r"begun with another recipe: training\.tokens_per_batch \(200 -> 100\)"),
    ],
)
def test_a_folder_that_was_begun_with_another_recipe_is_refused(change, message, folder):
    with pytest.raises(Killed):
        make(recipe_of(folder), folder / "out", show=after(3))
    before = files(folder / "out")
    with pytest.raises(UserError, match=message):
        make(recipe_of(folder, change), folder / "out")
    assert files(folder / "out") == before


def test_a_folder_whose_text_was_changed_is_refused(folder):
    with pytest.raises(Killed):
        make(recipe_of(folder), folder / "out", show=after(3))
    with open(folder / "b.jsonl", "a") as file:
        file.write("\n")
    with pytest.raises(UserError, match=r"b\.jsonl: was changed since .*out was prepared from it"):
        make(recipe_of(folder), folder / "out")


def test_text_that_was_only_touched_is_the_same(folder):
    with pytest.raises(Killed):
        make(recipe_of(folder), folder / "out", show=after(3))
    (folder / "b.jsonl").touch()
    make(recipe_of(folder), folder / "out")
    (folder / "b.jsonl").touch()
    assert make(recipe_of(folder), folder / "out") == [f"{folder / 'out'}: is prepared already"]


def test_a_finished_folder_of_other_text_or_with_damage_is_not_prepared_already(folder):
    out = folder / "out"
    make(recipe_of(folder), out)
    text = (folder / "b.jsonl").read_bytes()
    (folder / "b.jsonl").write_bytes(text.replace(b"ant", b"bee", 1))  # as long as before
    with pytest.raises(UserError, match=r"b\.jsonl: was changed since .*out was prepared from it"):
        make(recipe_of(folder), out)
    (folder / "b.jsonl").write_bytes(text)
    ids = out / "train" / "00000" / "source.ids"
    ids.write_bytes(bytes([ids.read_bytes()[0] ^ 1]) + ids.read_bytes()[1:])
    with pytest.raises(UserError, match=r"source\.ids: isn't as it was prepared"):
        make(recipe_of(folder), out)
    ids.unlink()
    with pytest.raises(UserError, match=r"source\.ids: isn't as it was prepared"):
        make(recipe_of(folder), out)


def test_a_finished_folder_needs_no_text(folder):
    make(recipe_of(folder), folder / "out")
    for file in folder.glob("a.*"):
        file.unlink()
    assert make(recipe_of(folder), folder / "out") == [f"{folder / 'out'}: is prepared already"]


def test_folders_that_are_finished_or_anothers(folder):
    make(recipe_of(folder), folder / "out")
    before = files(folder / "out")
    (folder / "out" / "work").mkdir()  # killed before it could go
    assert make(recipe_of(folder), folder / "out") == [f"{folder / 'out'}: is prepared already"]
    assert files(folder / "out") == before
    assert not (folder / "out" / "work").exists()
    with pytest.raises(UserError, match="begun with another recipe"):
        make(recipe_of(folder, "tokenizer.joint=false"), folder / "out")
    (folder / "other").mkdir()
    (folder / "other" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="other: is not empty and holds no prepared data"):
        make(recipe_of(folder), folder / "other")


def test_a_filter_that_leaves_nothing_is_told(folder):
    filters = {"characters": [500, 900]}
    with pytest.raises(UserError, match=r"holds no pair with text on both sides.*that data\.filters leaves"):
        make(recipe_of(folder, filters=filters), folder / "out")
    (folder / "b.jsonl").write_text('{"source": "ant", "target": "ant"}\n')
    with pytest.raises(
        UserError, match=r"b\.jsonl: holds no usable pair \(0 blank, .*, 1 dropped by data\.filters\.copies\)"
    ):
        make(recipe_of(folder, filters={"copies": True}), folder / "other")


# Training on a folder.


def opened(recipe: Recipe, run: Path):
    return start(recipe, run, Reporter().line, SingleProcess())


def test_a_run_on_a_folder_is_the_run_on_its_own_data(folder):
    own = opened(recipe_of(folder), folder / "own")
    make(recipe_of(folder), folder / "out", processes=2)
    shared = opened(recipe_of(folder, f"data.prepared={folder / 'out'}"), folder / "shared")
    assert shared.data.fingerprint == own.data.fingerprint
    assert not (folder / "shared" / "data").exists()
    assert files(folder / "own" / "data") == files(folder / "out")
    assert shared.train.corpus.sizes == own.train.corpus.sizes
    assert shared.train.shares == own.train.shares
    assert shared.data.valid_texts == own.data.valid_texts


def read(recipe: Recipe, expected=None, tokenizers=None):
    assert recipe.data.prepared is not None
    return read_prepared_for(recipe.preparation(MAX_LENGTH), recipe.data.prepared, tokenizers, expected)


def test_a_folder_that_does_not_fit_is_one_line(folder):
    out = folder / "out"
    named = f"data.prepared={out}"
    with pytest.raises(UserError, match="out: no such folder; make it with `headway prepare"):
        read(recipe_of(folder, named))
    with pytest.raises(Killed):
        make(recipe_of(folder), out, show=after(3))
    with pytest.raises(UserError, match="out: isn't finished; go on with `headway prepare`"):
        read(recipe_of(folder, named))
    make(recipe_of(folder), out)
    data = read(recipe_of(folder, named, "training.seed=5", "data.temperature=2"))
    for change, key in (
        ("data.filters.copies=false", r"data\.filters"),
        ("tokenizer.joint=false", r"tokenizer\.joint \(true -> false\)"),
        (f"data.valid.source={folder / 'valid.en'}", r"data\.valid"),
    ):
        with pytest.raises(UserError, match=f"was prepared from another recipe: {key}"):
            read(recipe_of(folder, named, change))
    with pytest.raises(UserError, match=r"holds a pair of \d+ tokens, more than training.tokens_per_batch=8"):
        read(recipe_of(folder, named, "training.tokens_per_batch=8"))
    read(recipe_of(folder, named, "training.tokens_per_batch=5000"))
    with pytest.raises(UserError, match="out: isn't the data that the run began with"):
        read(recipe_of(folder, named), expected="0" * 64)
    read(recipe_of(folder, named), data.fingerprint)
    file = out / "train" / "00000" / "target.ids"
    file.write_bytes(bytes([1]) + file.read_bytes()[1:])
    with pytest.raises(UserError, match=r"target\.ids: isn't as it was prepared"):
        read(recipe_of(folder, named), data.fingerprint)


def test_another_vocabulary_than_that_of_the_first_model_is_refused(folder):
    make(recipe_of(folder), folder / "out")
    recipe = recipe_of(folder, f"data.prepared={folder / 'out'}")
    data = read(recipe)
    own = data.source_tokenizer, data.target_tokenizer
    assert read(recipe, tokenizers=own).fingerprint == data.fingerprint
    make(recipe_of(folder), folder / "given", tokenizers=own)
    assert files(folder / "given") == files(folder / "out")
    other = type(own[0])(["ant"])
    with pytest.raises(UserError, match="out: has another vocabulary than"):
        read(recipe, tokenizers=(other, other))


def test_large_data_are_checked_by_their_sizes(folder, monkeypatch):
    make(recipe_of(folder), folder / "out")
    recipe = recipe_of(folder, f"data.prepared={folder / 'out'}")
    whole = read(recipe).fingerprint
    monkeypatch.setattr("headway.data.prepared.READ_AT_MOST", 0)
    summed = []
    real = preparing.read_manifest.__globals__["checksum"]
    monkeypatch.setattr("headway.data.prepared.checksum", lambda file: summed.append(file) or real(file))
    assert read(recipe).fingerprint == whole
    assert not any(file.suffix in (".ids", ".offsets") for file in summed)
    file = folder / "out" / "train" / "00000" / "target.ids"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"target\.ids: isn't as it was prepared"):
        read(recipe)


def test_text_and_folder_may_be_moved_together(folder, tmp_path_factory):
    make(recipe_of(folder), folder / "out")
    moved = tmp_path_factory.mktemp("elsewhere") / "deep"
    shutil.move(folder, moved)
    read(recipe_of(moved, f"data.prepared={moved / 'out'}"))
    for file in moved.glob("*.*"):
        file.unlink()  # the text itself is needed no more
    read(recipe_of(moved, f"data.prepared={moved / 'out'}"))


def test_the_folder_is_found_from_the_recipes_own(folder, monkeypatch, tmp_path_factory):
    document = (
        "data: {train: {source: a.1.de, target: a.1.en}, valid: {source: valid.de, target: valid.en}, prepared: out}"
    )
    (folder / "recipe.yaml").write_text(f"{document}\ntraining: {{max_steps: 1}}\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    assert load_recipe(folder / "recipe.yaml").data.prepared == folder / "out"
    assert load_recipe(folder / "recipe.yaml", ["data.prepared=mine"]).data.prepared == Path("mine").absolute()


def test_what_a_recipe_is_made_from_is_what_decides(folder):
    one = made_from(recipe_of(folder).preparation(MAX_LENGTH))
    for change in ("training.seed=3", "data.temperature=3", "training.max_steps=9", "data.source_language=xx"):
        assert first_change(one, made_from(recipe_of(folder, change).preparation(MAX_LENGTH))) is None
    assert first_change(one, made_from(recipe_of(folder).preparation(99))) == "model.max_length (16 -> 99)"
    script = dict(FILTERS, script=True)
    german, other = (
        made_from(recipe_of(folder, f"data.source_language={code}", filters=script).preparation(MAX_LENGTH))
        for code in ("de", "ru")
    )
    assert first_change(german, other)


def test_a_run_that_was_begun_before_there_were_filters_goes_on(folder):
    recipe = recipe_of(folder, filters={})
    before = recipe.model_dump(mode="json")
    for key in ("filters", "held_out", "temperature", "prepared"):
        del before["data"][key]
    refuse_changes(before, recipe)
    before["tokenizer"] |= {  # retired keys
        "segmentations": 1,
        "segmentation_alpha": 0.1,
        "sample_pairs": 1_000_000,
    }
    refuse_changes(before, recipe)
    for change in ("data.temperature=2", "data.filters.copies=true", "tokenizer.vocab_size=5", "data.prepared=x"):
        with pytest.raises(UserError, match=change.partition("=")[0]):
            refuse_changes(before, recipe_of(folder, change, filters={}))


def test_temperature_evens_out_the_corpora_and_keeps_the_epoch(folder):
    sizes = [800, 100]
    assert [share.weight for share in recipe_of(folder).data.shares_of(sizes)] == [1, 0.5]
    for temperature in (1.5, 5, 100):
        shares = recipe_of(folder, f"data.temperature={temperature}").data.shares_of(sizes)
        drawn = [share.size * share.weight for share in shares]
        assert [share.size for share in shares] == sizes
        assert sum(drawn) == pytest.approx(850)
        assert drawn[0] / drawn[1] == pytest.approx((800 / 50) ** (1 / temperature))
    assert drawn[1] == pytest.approx(425, rel=0.05)


def test_a_small_text_is_prepared_as_a_command_prepares_it(folder):
    """`train` on its own data, by the same code."""
    prepare(recipe_of(folder).preparation(MAX_LENGTH), folder / "own", print, write_synthetic)
    make(recipe_of(folder), folder / "out")
    assert files(folder / "own") == files(folder / "out")


@pytest.mark.parametrize("page", ["data.md", "data.ko.md"])
def test_the_recipe_of_the_page_is_one(page, tmp_path):
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text(text.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    recipe = load_recipe(tmp_path / "recipe.yaml")
    assert len(recipe.data.train) == 3
    assert recipe.data.filters.duplicates == ["pair"]
