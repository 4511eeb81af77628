"""From text files to ids: what is told of them, and what is refused."""

import gzip
import json
import os
from pathlib import Path

import pytest

from headway.data.prepare import prepare
from headway.errors import UserError
from headway.recipe.reading import make_recipe
from headway.training.synthetic import write_synthetic

PAIRS = [(f"satz {i} hier", f"sentence {i} here") for i in range(40)]
LANGUAGES = {"source_language": "de", "target_language": "en"}


def write(folder, name, pairs):
    """The two sides as files; the paths, as the sections of a recipe have them."""
    sides = {"source": folder / f"{name}.src", "target": folder / f"{name}.tgt"}
    for place, file in enumerate(sides.values()):
        file.write_text("".join(f"{pair[place]}\n" for pair in pairs), newline="")
    return {side: str(file) for side, file in sides.items()}


def prepared(folder, train, valid, on_notice=lambda line: None):
    """The notices of preparing the data, whose longest sentence is of 32 pieces."""
    notices = []

    def notice(line):
        notices.append(line)
        on_notice(line)

    recipe = make_recipe({"data": {"train": train, "valid": valid, **LANGUAGES}, "training": {"max_steps": 1}})
    data = prepare(recipe.preparation(32), folder / "data", notice, write_synthetic)
    return notices, data


def warnings(folder, train, valid):
    return [line for line in prepared(folder, train, valid)[0] if line.startswith("warning")]


def test_good_data_raises_no_warning(tmp_path):
    assert warnings(tmp_path, write(tmp_path, "train", PAIRS[:30]), write(tmp_path, "valid", PAIRS[29:])) == []


def test_training_text_that_is_validated_on_is_told_under_any_name(tmp_path):
    train = write(tmp_path, "train", PAIRS)
    shuffled = write(tmp_path, "other", [*reversed(PAIRS[5:]), ("", "")])
    zipped = {side: f"{file}.gz" for side, file in train.items()}
    for side, file in zipped.items():
        with gzip.open(file, "wb") as stream, open(train[side], "rb") as original:
            stream.write(b"\xef\xbb\xbf" + original.read().replace(b"\n", b"\r\n"))
    link = {}
    for side, file in train.items():
        link[side] = str(tmp_path / f"link.{side}")
        Path(link[side]).symlink_to(file)
    for number, valid in enumerate((train, shuffled, zipped, link)):
        [warning] = warnings(tmp_path / str(number), train, valid)
        assert "every validation pair is a training pair too" in warning
    several = [write(tmp_path, "more", [("a b c", "x y z")]), train]
    assert len(warnings(tmp_path / "several", several, zipped)) == 1


def test_one_text_on_both_sides_is_told_under_any_name(tmp_path):
    train = write(tmp_path, "train", [(source, source) for source, _ in PAIRS])
    [warning] = warnings(tmp_path, train, write(tmp_path, "valid", PAIRS[:3]))
    assert "source and target of the training text are the same" in warning
    assert "train.src" in warning


def test_a_line_without_end_is_dropped_named_and_not_learned_from(tmp_path):
    endless = "Q" * (32 * 64 + 1)
    train = write(tmp_path, "train", [*PAIRS, (endless, "x"), ("x", endless)])
    notices, data = prepared(tmp_path, train, write(tmp_path, "valid", [*PAIRS[:3], ("x", endless)]))
    assert [line for line in notices if "too long" in line] == [
        f"train: 40 pairs, 2 dropped because they are too long (first: {train['source']}:41, {train['source']}:42)",
        f"valid: 3 pairs, 1 dropped because they are too long (first: {tmp_path}/valid.src:4)",
    ]
    assert not any("Q" in piece for piece in data.source_tokenizer.vocabulary)
    assert len(data.valid_texts) == 3
    only = write(tmp_path, "only", [(endless, "x")])
    with pytest.raises(UserError, match=r"only\.src: holds no pair with text on both sides, of at most 2,048 char"):
        prepared(tmp_path / "other", only, train)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_refused_because_it_can_be_read_once(tmp_path):
    train = write(tmp_path, "train", PAIRS)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe: is a pipe or device"):
        prepared(tmp_path, {**train, "target": str(tmp_path / "pipe")}, train)


def test_files_that_change_between_two_readings_are_told_and_nothing_is_kept(tmp_path):
    train, valid = write(tmp_path, "train", PAIRS), write(tmp_path, "valid", PAIRS[:3])

    def another_line(line):
        if line.startswith("tokenizer: bpe"):
            write(tmp_path, "train", [("a new first line", "and its partner"), *PAIRS])

    with pytest.raises(UserError, match=r"train\.src: was changed while it was read"):
        prepared(tmp_path, train, valid, another_line)
    assert not (tmp_path / "data").exists()
    assert prepared(tmp_path, train, valid)[0][-2] == "train: 41 pairs"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("train/00000/source.ids", lambda file: file.write_bytes(b"")),
        ("train/00000/source.ids", lambda file: os.truncate(file, 3)),
        ("train/00000/source.ids", lambda file: file.unlink()),
        ("valid.json", lambda file: os.truncate(file, 7)),
        ("valid.json", lambda file: file.write_bytes(b"\xff" + file.read_bytes()[1:])),
    ],
)
def test_prepared_data_that_is_damaged_is_one_line_before_it_is_read(tmp_path, name, change):
    files = write(tmp_path, "train", PAIRS), write(tmp_path, "valid", PAIRS[:5])
    _, data = prepared(tmp_path, *files)
    change(tmp_path / "data" / name)
    recipe = make_recipe({"data": {"train": files[0], "valid": files[1], **LANGUAGES}, "training": {"max_steps": 1}})
    with pytest.raises(UserError, match=r"isn't as it was prepared.*delete"):
        prepare(recipe.preparation(32), tmp_path / "data", print, write_synthetic, expected=data.fingerprint)


def test_an_empty_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"valid\.src: is empty"):
        prepared(tmp_path, write(tmp_path, "train", PAIRS), write(tmp_path, "valid", []))
    assert not (tmp_path / "data").exists()


def test_suffixes_count_in_either_case(tmp_path):
    rows = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    (tmp_path / "train.TSV").write_text(rows)
    (tmp_path / "valid.tsv.GZ").write_bytes(gzip.compress(rows.encode()))
    _, data = prepared(tmp_path, *({"source": str(tmp_path / name)} for name in ("train.TSV", "valid.tsv.GZ")))
    assert (len(data.train), len(data.valid)) == (len(PAIRS), len(PAIRS))


@pytest.mark.parametrize(("vocab_size", "told"), [(300, False), (5000, True)])
def test_a_vocabulary_that_the_text_does_not_fill_is_told(tmp_path, vocab_size, told):
    splits = {"train": write(tmp_path, "train", PAIRS[:30]), "valid": write(tmp_path, "valid", PAIRS[30:])}
    notices: list[str] = []
    tokenizer = {"vocab_size": vocab_size}
    recipe = make_recipe({"data": {**splits, **LANGUAGES}, "training": {"max_steps": 1}, "tokenizer": tokenizer})
    size = prepare(
        recipe.preparation(32), tmp_path / "data", notices.append, write_synthetic
    ).source_tokenizer.vocab_size
    assert (size < vocab_size) == told
    assert any("so the vocabulary is smaller" in notice for notice in notices) == told


def test_columns_and_keys_are_told_by_the_recipe_s_languages(tmp_path):
    """Names of columns and keys are no text, and training and validation read the same sides as two plain files."""
    table = "".join(f"{number}\t{target}\t{source}\n" for number, (source, target) in enumerate(PAIRS))
    (tmp_path / "train.tsv").write_text(f"id\ten\tde\n{table}")
    objects = ({"translation": {"en": target, "de": source}} for source, target in PAIRS[:9])
    (tmp_path / "valid.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in objects))
    plain = write(tmp_path, "train", PAIRS), write(tmp_path, "valid", PAIRS[:9])
    both = [{"source": str(tmp_path / name)} for name in ("train.tsv", "valid.jsonl")]
    told, found = [], []
    for number, (train, valid) in enumerate((plain, both)):
        languages = {"source_language": "de", "target_language": "en"}
        recipe = make_recipe({"data": {"train": train, "valid": valid, **languages}, "training": {"max_steps": 1}})
        told.clear()
        data = prepare(recipe.preparation(32), tmp_path / f"data-{number}", told.append, write_synthetic)
        ids = [[side[pair].tolist() for pair in range(40)] for side in (data.train.source, data.train.target)]
        found.append((ids, data.valid_texts))
        assert len(data.train) == len(PAIRS)
    assert found[0] == found[1]
    assert [line for line in told if line.startswith("notice: ")] == [
        f"notice: {tmp_path}/train.tsv: the first row names the columns: `de` is the source and `en` the target",
        f"notice: {tmp_path}/valid.jsonl: `de` is the source and `en` the target",
    ]


def test_held_out_text_is_left_out_in_both_directions(tmp_path):
    train, valid, held_out = (write(tmp_path, str(n), part) for n, part in enumerate((PAIRS, PAIRS[:1], PAIRS[1:9])))
    data = {"train": train, "valid": valid, "held_out": held_out, "filters": {"overlap": "pair"}, **LANGUAGES}
    recipe = make_recipe({"data": {**data, "both_directions": True}, "training": {"max_steps": 1}})
    made = prepare(recipe.preparation(32), tmp_path / "data", lambda _: None, write_synthetic)
    assert made.train.sizes == [len(PAIRS) - 9] * 2
