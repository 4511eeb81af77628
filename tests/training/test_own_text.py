"""Judging and measuring the text of a run without a recipe."""

from __future__ import annotations

import random
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import headway
from headway.cli.train import _of_text
from headway.data.corpus import CorpusFiles, Pair
from headway.data.splitting import split_corpus
from headway.errors import UserError
from headway.recipe.choosing import ENDLESS
from headway.recipe.reading import is_run, make_recipe
from headway.recipe.recipe import Recipe
from headway.storage.atomic import write_json
from headway.training import own_text
from headway.training.own_text import (
    TEXT,
    RunRequest,
    choose_for,
    judge_sides,
    measure,
    refuse_other_text,
    with_languages,
)
from headway.training.ranks import SingleProcess
from headway.training.run_directory import REQUEST, has_request
from headway.training.start import start

GERMAN = ["Ein Hund läuft über die grüne Wiese.", "Zwei Männer stehen auf einer Leiter und putzen Fenster."]
ENGLISH = ["A dog runs across the green meadow.", "Two men are standing on a ladder and cleaning windows."]
KOREAN = ["개가 푸른 풀밭을 달린다.", "두 남자가 사다리에 서서 창문을 닦는다."]


def recipe_for(source: Path, target: Path, *overrides: str) -> Recipe:
    sides = {"source": str(source), "target": str(target)}
    return make_recipe({"data": {"train": sides, "valid": sides}}, [*overrides, ENDLESS], "command line")


def judged(folder: Path, sources: list[str], targets: list[str], *overrides: str) -> list[str]:
    """What is told of the text in two files, named `a.en` and `a.ko` or by the overrides."""
    request = RunRequest(["a.en"], ["a.ko"], [], [], None, None, [], 1.0, fast=False)
    recipe = recipe_for(folder / "a.en", folder / "a.ko", "data.filters.script=true", *overrides)
    told: list[str] = []
    pairs = [Pair(*sides, Path("a.en"), line) for line, sides in enumerate(zip(sources, targets, strict=True))]
    judge_sides(pairs, recipe.data, request, told.append)
    return told


def test_sides_that_are_exchanged_are_refused_with_both_scripts_and_remedies(tmp_path: Path) -> None:
    told = (
        r"a\.en: the filter script drops 20 of 21 pairs that were judged, 1 are left: source and target are mostly "
        r"HANGUL and LATIN, not LATIN and HANGUL; exchange the sides; "
        r"to keep such pairs: data\.filters\.script=false"
    )
    with pytest.raises(UserError, match=told):
        judged(tmp_path, [*KOREAN * 10, "1"], [*ENGLISH * 10, "1"])
    assert judged(tmp_path, ENGLISH, KOREAN) == []
    dirty = judged(tmp_path, [*ENGLISH, *KOREAN * 4], [*KOREAN, *ENGLISH * 4])  # of which some is left
    kept = judged(tmp_path, KOREAN, ENGLISH, "data.filters.script=false")
    assert all(line.startswith("warning: ") for line in (*dirty, *kept))


def test_a_side_in_another_script_is_named(tmp_path: Path) -> None:
    told = "are left: source and target are mostly LATIN and LATIN, not LATIN and HANGUL; set data"
    with pytest.raises(UserError, match=told):
        judged(tmp_path, ENGLISH, GERMAN)


def test_another_filter_is_named_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"the filter words drops 2 of 2 .* left; to keep .*: data\.filters\.words=null"
    ):
        judged(tmp_path, ENGLISH, KOREAN, "data.filters.words=[100, 200]")


def test_languages_of_one_script_are_told_apart_by_lingua(tmp_path: Path) -> None:
    pytest.importorskip("lingua")
    languages = "data.source_language=en", "data.target_language=de"
    [told] = judged(tmp_path, GERMAN, ENGLISH, *languages)
    assert told == "warning: source and target look like German and English; if so, exchange the sides"
    assert judged(tmp_path, ENGLISH, GERMAN, *languages) == []


def test_languages_that_no_name_tells_are_told_by_the_text(tmp_path: Path) -> None:
    pytest.importorskip("lingua")
    sides = {"german": GERMAN, "korean.ko": KOREAN, "english": ENGLISH, "numbers": ["1 2", "3 4"]}
    for name, lines in sides.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def found(source: str, target: str, *overrides: str) -> list[str]:
        files = [str(tmp_path / source)], [str(tmp_path / target)]
        told: list[str] = []
        request = RunRequest(*files, [], [], None, None, [*overrides], 1.0, fast=False)
        keys = with_languages(request, told.append).overrides
        added = " ".join(keys[len(overrides) :])
        assert told == [f"{added}: recognized from the text, because the file names don't tell"]
        return keys

    both = ["data.source_language=de", "data.target_language=en"]
    assert found("german", "english") == both
    assert found("german", "english", both[0]) == both
    assert found("english", "korean.ko") == ["data.source_language=en"]
    for source, target in (("german", "numbers"), ("english", "english")):
        with pytest.raises(UserError, match=r"the file names don't name two languages; set data\."):
            found(source, target)
    named = RunRequest(["a.de"], ["a.en"], [], [], None, None, [], 1.0, fast=False)
    assert with_languages(named, pytest.fail) is named


@pytest.mark.parametrize("seed", [1, 2])
def test_the_time_of_a_step_is_that_of_an_epochs_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """On a device where a place takes longer, the longer its row is, and in text with a few very long sentences."""
    chance = random.Random(1)
    lines = [" ".join(chance.choices("abcdefgh", k=chance.choice([6, 8, 10]))) for _ in range(4000)]
    lines[::100] = [" ".join(chance.choices("abcdefgh", k=400)) for _ in lines[::100]]
    for name in ("a.de", "a.en"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    sizes = ("model.preset=tiny", "training.tokens_per_batch=2048", "tokenizer.vocab_size=300", f"training.seed={seed}")
    recipe = recipe_for(tmp_path / "a.de", tmp_path / "a.en", *sizes)
    clock = [0.0]

    def seconds_of(step) -> float:
        return sum(one.places * (100 + one.source_length + one.target_length) for one in step) / 1e6

    def take_step(run, step) -> None:
        clock[0] += seconds_of(step)

    monkeypatch.setattr(own_text, "take_step", take_step)
    monkeypatch.setattr(own_text, "read_steps", lambda *_: None)
    monkeypatch.setattr(own_text, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    measured = measure(recipe, tmp_path / "measuring")
    plan = start(recipe, tmp_path / "run", lambda _: None, SingleProcess()).train.plan
    times = [seconds_of(step) for step in plan.steps(0)]
    assert max(times) > 3 * min(times)
    assert measured.seconds_of_step == pytest.approx(sum(times) / len(times), rel=0.05)


def test_chosen_columns_are_those_of_both_parts_that_are_given(tmp_path: Path) -> None:
    for part, number in (("train", 30), ("valid", 3)):
        rows = [f"place {i}\t{GERMAN[i % 2]} {i}\t{ENGLISH[i % 2]} {i}\n" for i in range(number)]
        (tmp_path / f"{part}.tsv").write_text("".join(rows), "utf-8")
    train, valid = [str(tmp_path / "train.tsv")], [str(tmp_path / "valid.tsv")]
    overrides = ["data.source_language=en", "data.target_language=de", "training.max_steps=1"]
    request = RunRequest(train, [], valid, [], (2, 1), None, overrides, 1.0, fast=False)
    data = choose_for(request, tmp_path / "run", time.monotonic(), lambda _: None).data
    for corpus, number in ((data.train[0], 30), (data.valid[0], 3)):
        pairs = [(pair.source, pair.target) for pair in data.files_of(corpus).pairs()]
        assert pairs == [(f"{ENGLISH[i % 2]} {i}", f"{GERMAN[i % 2]} {i}") for i in range(number)]
    with pytest.raises(UserError, match=r"gone\.tsv: no such file"):
        choose_for(replace(request, valid_source=[str(tmp_path / "gone.tsv")]), tmp_path / "other", 0.0, print)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    """A file with pairs, and another one."""
    for name in ("pairs.tsv", "other.tsv"):
        lines = [f"{GERMAN[i % 2]} {name[0]}{i}\t{ENGLISH[i % 2]} {name[0]}{i}\n" for i in range(60)]
        (tmp_path / name).write_text("".join(lines), "utf-8")
    return str(tmp_path / "pairs.tsv")


@pytest.mark.parametrize("fast", [False, True])
def test_a_teacher_has_a_file_for_each_side(tmp_path: Path, rows: str, fast: bool) -> None:
    languages = ["data.source_language=de", "data.target_language=en"]
    request = RunRequest([rows], [], [str(tmp_path / "other.tsv")], [], None, None, languages, 1.0, fast=fast)
    made = own_text._data(request, tmp_path / "run", lambda _: None)["train"]
    if fast:
        sides = (Path(*made[side]).read_text("utf-8").splitlines()[:2] for side in ("source", "target"))
        assert [*sides] == [[f"{one} p{i}" for i, one in enumerate(side)] for side in (GERMAN, ENGLISH)]
    else:
        assert made == {"source": [rows], "target": []}


LIMITED = ("data.target_language=en", "training.max_steps=1")


def test_a_start_with_another_language_splits_the_text_of_the_run_again(tmp_path: Path, rows: str) -> None:
    """Whether the one before was killed while it chose, or before its first checkpoint."""
    request = RunRequest([rows], [], [], [], None, None, ["data.source_language=nl", *LIMITED], 1.0, fast=False)
    split_corpus(CorpusFiles([Path(rows)], []), tmp_path / "run" / TEXT, ("nl", "en"), tell=lambda _: None)
    write_json(tmp_path / "run" / REQUEST, asdict(request))
    for language in ("de", "sv"):
        request = replace(request, overrides=[f"data.source_language={language}", *LIMITED])
        data = choose_for(request, tmp_path / "run", time.monotonic(), lambda _: None).data
        assert data.train[0].source == [tmp_path / "run" / TEXT / f"train.{language}"]
    told: list[str] = []
    choose_for(request, tmp_path / "run", time.monotonic(), told.append)
    assert f"{tmp_path / 'run' / TEXT}: is split already" in told


def test_the_recipe_of_a_failed_start_goes_before_another_is_chosen(
    tmp_path: Path, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes would take it, and a resumed run after a kill."""
    request = RunRequest([rows], [], [], [], None, None, ["data.source_language=de", *LIMITED], 1.0, fast=False)
    choose_for(request, tmp_path / "run", time.monotonic(), lambda _: None)
    assert is_run(tmp_path / "run")

    def choose(*_, **__) -> None:
        assert has_request(tmp_path / "run")
        assert not is_run(tmp_path / "run")
        raise KeyboardInterrupt

    monkeypatch.setattr(own_text, "choose", choose)
    with pytest.raises(KeyboardInterrupt):
        choose_for(request, tmp_path / "run", time.monotonic(), lambda _: None)


def test_other_processes_wait_for_the_recipe_that_is_being_chosen(
    tmp_path: Path, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = RunRequest([rows], [], [], [], None, None, ["data.source_language=de", *LIMITED], 1.0, fast=False)
    choose_for(request, tmp_path / "run", time.monotonic(), lambda _: None)
    write_json(tmp_path / "run" / REQUEST, {})
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        (tmp_path / "run" / REQUEST).unlink()

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr("headway.cli.train.time", SimpleNamespace(sleep=wait))
    _of_text(request, tmp_path / "run", 0.0, None)
    assert len(waited) == 1


def test_a_run_goes_on_with_its_own_text_alone(tmp_path: Path, rows: str) -> None:
    """Parts that were set apart, and parts that were given."""
    other = str(tmp_path / "other.tsv")
    request = RunRequest([rows], [], [], [], None, None, ["data.source_language=de", *LIMITED], 1.0, fast=False)
    given = replace(request, source=[str(tmp_path / "p*.tsv")], valid_source=[other])
    columns = replace(given, columns=(0, 1))
    for name, begun in (("set apart", request), ("given", given), ("columns", columns)):
        run = tmp_path / name
        recipe = choose_for(begun, run, time.monotonic(), lambda _: None)
        refuse_other_text(begun, run, recipe)
        refuse_other_text(replace(begun, source=[str(tmp_path / "p*.tsv")]), run, recipe)
        if begun is not columns:
            for files in ([other], [rows, str(tmp_path / "more.tsv")]):
                with pytest.raises(UserError, match=f"{name}: was begun with .*; go on with --resume '?{run}'? alone"):
                    refuse_other_text(replace(begun, source=files), run, recipe)
    with pytest.raises(UserError, match=r"was begun with pairs\.tsv"):
        headway.train(source=[Path(other)], resume=tmp_path / "set apart")


def test_a_run_without_a_recipe_has_nothing_to_finish(tmp_path: Path, rows: str) -> None:
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "run" / REQUEST, {})
    with pytest.raises(UserError, match=r"run: its recipe isn't chosen yet; go on without --minutes and --finish"):
        headway.train(resume=tmp_path / "run", minutes=5, finish=True)


def test_filters_that_a_corpus_needs_are_chosen_where_parts_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a tenth of the pairs are untranslated, and one of 60 has Korean where English belongs."""
    rows = [f"{GERMAN[i % 2]} {i}\t{ENGLISH[i % 2]} {i}\n" for i in range(60)]
    rows[5:11] = [f"{GERMAN[i % 2]} {i}\t{GERMAN[i % 2]} {i}\n" for i in range(5, 11)]
    rows[20] = f"{GERMAN[0]}\t개가 달립니다\n"
    (tmp_path / "train.tsv").write_text("".join(rows), "utf-8")
    (tmp_path / "valid.tsv").write_text("".join(rows[:3]), "utf-8")
    monkeypatch.setattr(own_text, "MEASURED_SECONDS", 0.1)
    train, valid = [str(tmp_path / "train.tsv")], [str(tmp_path / "valid.tsv")]
    overrides = ["data.source_language=de", "data.target_language=en", "model.d_model=16", "model.d_ff=16"]
    request = RunRequest(train, [], valid, [], None, None, overrides, 1.0, fast=False)
    told: list[str] = []
    filters = choose_for(request, tmp_path / "run", time.monotonic(), told.append).data.filters
    assert (filters.copies, filters.script, filters.max_ratio) == (True, True, None)
    assert {"data.filters.copies: True, for 10% of the training pairs"} <= {*told}
    by_hand = replace(request, overrides=[*overrides, "data.filters.copies=false"])
    filters = choose_for(by_hand, tmp_path / "by-hand", time.monotonic(), told.append).data.filters
    assert (filters.copies, filters.script) == (False, True)
    limited = replace(request, overrides=[*overrides, "training.max_steps=1"])
    assert not choose_for(limited, tmp_path / "limited", time.monotonic(), told.append).data.filters.copies


def test_a_side_without_letters_has_no_script(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the filter script drops 20 of 20 .* mostly no script and LATIN"):
        judged(tmp_path, ["12 34"] * 20, ["hello there"] * 20, "data.target_language=ko")
