"""Text in one language: it is translated once, by the model that the recipe names, and trained on as pairs are."""

import os
import shutil
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from tests.data.test_prepare import PAIRS, write
from tests.storage.test_model_directory import stored

from headway.data import lines
from headway.data.prepare import prepare, prepare_folder
from headway.errors import UserError
from headway.recipe.reading import make_recipe
from headway.storage import load_model, save_model
from headway.training import synthetic
from headway.training.ranks import SingleProcess
from headway.training.start import inherited_flops, start
from headway.training.synthetic import check_synthetic, write_synthetic
from headway.translator import Translator

TEXT = ["the cat sat", "", "a dog ran after the mat", "the dog", "mat " * 30]


@pytest.fixture
def reverse(tmp_path):
    torch.manual_seed(1)
    save_model(tmp_path / "reverse", replace(stored(), source_language="tgt", target_language="src"))
    return tmp_path / "reverse"


@pytest.fixture
def document(tmp_path, reverse):
    (tmp_path / "mono.tgt").write_text("".join(f"{line}\n" for line in TEXT))
    mono = {"source": str(tmp_path / "mono.src"), "target": str(tmp_path / "mono.tgt"), "reverse": str(reverse)}
    return {
        "data": {
            "train": write(tmp_path, "train", PAIRS[:30]),
            "monolingual": mono,
            "valid": write(tmp_path, "valid", PAIRS[30:]),
            "source_language": "src",
            "target_language": "tgt",
        },
        "tokenizer": {"vocab_size": 300},
        "training": {"max_steps": 1},
    }


def prepared(document, folder, *changes, notice=lambda line: None):
    return prepare(make_recipe(document, changes).preparation(64), folder, notice, write_synthetic)


def all_bytes(folder):
    return {
        file.relative_to(folder): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name not in ("prepared.json", "report.json")  # with the corpora as they are named
    }


def test_its_pairs_are_those_of_the_text_and_its_translation(tmp_path, document, reverse):
    notices = []
    data = prepared(document, tmp_path / "data", notice=notices.append)
    translations = Translator(load_model(reverse)).translate(TEXT)
    wanted = [one.text for one in translations]
    cut = sum(one.stopped == "max_length" for one in translations)
    assert cut
    assert f"{tmp_path / 'mono.tgt'}: {cut} translations are missing or were cut off" in notices
    assert (tmp_path / "mono.src").read_text() == "".join(f"{text}\n" for text in wanted)
    mono = document["data"].pop("monolingual")
    del mono["reverse"]
    document["data"]["train"] = [document["data"]["train"], mono]
    prepared(document, tmp_path / "plain")
    assert all_bytes(tmp_path / "data") == all_bytes(tmp_path / "plain")
    assert data.train.sizes[1] == sum(bool(text.strip()) for text in wanted) > 0


def test_a_teacher_translates_the_source(tmp_path, document):
    torch.manual_seed(2)
    save_model(tmp_path / "teacher", replace(stored(), source_language="src", target_language="tgt"))
    del document["data"]["monolingual"]
    (tmp_path / "text.src").write_text("".join(f"{line}\n" for line in TEXT))
    taught = {"source": str(tmp_path / "text.src"), "target": str(tmp_path / "taught.tgt")}
    document["data"]["distilled"] = {**taught, "teacher": str(tmp_path / "teacher")}
    prepared(document, tmp_path / "data")
    wanted = [one.text for one in Translator(load_model(tmp_path / "teacher")).translate(TEXT)]
    assert (tmp_path / "taught.tgt").read_text() == "".join(f"{text}\n" for text in wanted)
    del document["data"]["distilled"]
    document["data"]["train"] = [document["data"]["train"], taught]
    prepared(document, tmp_path / "plain")
    assert all_bytes(tmp_path / "data") == all_bytes(tmp_path / "plain")


def test_a_student_needs_no_other_pairs(tmp_path, document):
    save_model(tmp_path / "teacher", replace(stored(), source_language="src", target_language="tgt"))
    del document["data"]["monolingual"]
    train = document["data"].pop("train")
    for changes in ([], ["data.distilled=null"]):
        with pytest.raises(UserError, match="train is missing"):
            make_recipe(document, changes)
    taught = {"source": train["source"], "target": str(tmp_path / "taught.tgt"), "teacher": str(tmp_path / "teacher")}
    document["data"]["distilled"] = taught
    assert prepared(document, tmp_path / "data").train.sizes == [30]


def test_it_is_translated_once(tmp_path, document, monkeypatch):
    prepared(document, tmp_path / "first")
    monkeypatch.setattr(synthetic.LineTranslator, "translate", None)  # would fail
    os.utime(tmp_path / "mono.src", (1, 1))  # as in a copy of the folder
    prepared(document, tmp_path / "second")
    assert all_bytes(tmp_path / "first") == all_bytes(tmp_path / "second")


@pytest.mark.parametrize("sample", [False, True])
def test_a_stopped_translation_continues(tmp_path, document, monkeypatch, sample):
    document["data"]["monolingual"]["sample"] = sample
    options = make_recipe(document).preparation(64)
    prepared(document, tmp_path / "whole")
    wanted = (tmp_path / "mono.src").read_bytes()
    for file in tmp_path.glob("mono.src*"):
        file.unlink()
    monkeypatch.setattr(lines, "CHARACTERS_AT_ONCE", 20)
    calls, notices = [], []

    def stop_at_the_second(self, lines):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return translate(self, lines)

    translate = synthetic.LineTranslator.translate
    with monkeypatch.context() as patch:
        patch.setattr(synthetic.LineTranslator, "translate", stop_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            prepare_folder(options, tmp_path / "cut", notices.append, write_synthetic, None, processes=1)
    assert not (tmp_path / "mono.src").exists()
    assert "lines are done; the same command continues" in notices[-1]
    prepare_folder(options, tmp_path / "cut", notices.append, write_synthetic, None, processes=1)
    assert any("continues after line" in line for line in notices)
    assert (tmp_path / "mono.src").read_bytes() == wanted
    assert all_bytes(tmp_path / "cut") == all_bytes(tmp_path / "whole")


def test_a_kill_after_the_rename_is_no_harm(tmp_path, document, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(synthetic.Job, "_end", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepared(document, tmp_path / "data")
    assert (tmp_path / "mono.src").exists()
    prepared(document, tmp_path / "data")
    assert sorted(file.name for file in tmp_path.glob("mono.src*")) == ["mono.src", "mono.src.done.json"]


@pytest.mark.parametrize("change", ["another model in its place", "another name"])
def test_data_prepared_with_another_models_translations_are_refused(tmp_path, document, reverse, change):
    """Also where the folder has all else that the recipe asks for; not where the model is gone."""
    document["data"]["prepared"] = str(tmp_path / "data")
    recipe = make_recipe(document)
    prepare_folder(recipe.preparation(64), tmp_path / "data", print, write_synthetic, None, processes=1)
    check_synthetic(recipe.data, tmp_path)
    torch.manual_seed(5)
    other = reverse if change == "another model in its place" else tmp_path / "other" / "reverse"
    shutil.rmtree(reverse)
    check_synthetic(recipe.data, tmp_path)
    save_model(other, replace(stored(), source_language="tgt", target_language="src"))
    document["data"]["monolingual"]["reverse"] = str(other)
    changed = make_recipe(document)
    with pytest.raises(UserError, match="already exists, and isn't the translation"):
        check_synthetic(changed.data, tmp_path / "data")
    with pytest.raises(UserError, match="already exists, and isn't the translation"):
        start(changed, tmp_path / "run", lambda line: None, SingleProcess())


def test_samples_are_others(tmp_path, document):
    prepared(document, tmp_path / "searched")
    searched = (tmp_path / "mono.src").read_text()
    document["data"]["monolingual"]["source"] = str(tmp_path / "sampled.src")
    document["data"]["monolingual"]["sample"] = True
    prepared(document, tmp_path / "sampled")
    assert (tmp_path / "sampled.src").read_text() != searched


def test_the_work_of_other_models_counts_once(tmp_path, document, reverse):
    for name, work in (("known", 5.0), ("start", 3.0)):
        save_model(tmp_path / name, replace(load_model(reverse), training_flops=work))
    shutil.copytree(tmp_path / "known", tmp_path / "copy")
    mono = document["data"]["monolingual"]
    document["data"]["monolingual"] = [{**mono, "reverse": str(tmp_path / "known")}] * 2
    recipe = make_recipe(document)

    def from_model(name):
        training = recipe.training.model_copy(update={"init_from": tmp_path / name})
        return inherited_flops(recipe.model_copy(update={"training": training}))

    assert inherited_flops(recipe) == 5.0
    assert from_model("start") == 8.0
    assert from_model("copy") == 5.0
    taught = {"source": mono["target"], "target": mono["source"], "teacher": str(tmp_path / "known")}
    document["data"]["distilled"] = [taught, {**taught, "teacher": str(reverse)}]
    assert inherited_flops(make_recipe(document)) is None
    del document["data"]["distilled"], document["data"]["monolingual"]
    assert inherited_flops(make_recipe(document)) == 0.0
    document["data"]["monolingual"] = [mono, {**mono, "reverse": str(tmp_path / "gone")}]
    assert inherited_flops(make_recipe(document)) is None


def test_an_epoch_has_it_by_its_weight(document):
    document["data"]["monolingual"]["weight"] = 0.5
    shares = make_recipe(document).data.shares_of([30, 10])
    assert [(share.size, share.weight) for share in shares] == [(30, 1.0), (10, 0.5)]


def test_what_can_not_be_is_told_in_a_line(tmp_path, document, reverse):
    mono = document["data"]["monolingual"]

    def refused(**changes):
        return refused_data(monolingual={**mono, **changes})

    def refused_data(**data):
        changed = {**document, "data": {**document["data"], **data}}
        with pytest.raises(UserError) as error:
            prepared(changed, tmp_path / "data")
        assert not (tmp_path / "data").exists()
        assert "\n" not in str(error.value)
        return str(error.value)

    save_model(tmp_path / "forward", replace(load_model(reverse), source_language="src", target_language="tgt"))
    assert "needs a model from tgt to src" in refused(reverse=str(tmp_path / "forward"))
    taught = {"source": mono["target"], "target": mono["source"], "teacher": str(reverse)}
    assert "distilled.teacher needs a model from src to tgt" in refused_data(monolingual=[], distilled=taught)
    assert "no such" in refused(reverse=str(tmp_path / "none"))
    assert "none.tgt: no such file" in refused(target=str(tmp_path / "none.tgt"))
    (tmp_path / "mono.src").write_text("something of the user's\n")
    assert f"{tmp_path / 'mono.src'}: already exists" in refused()
    assert (tmp_path / "mono.src").read_text() == "something of the user's\n"
    (tmp_path / "mono.src").unlink()
    prepared(document, tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "good")
    assert "already exists" in refused(sample=True)
    text = (tmp_path / "mono.tgt").read_text()
    (tmp_path / "mono.tgt").write_text(text.replace("cat", "dog"))
    assert "already exists" in refused()
    (tmp_path / "mono.tgt").write_text(text)
    assert "is a pattern" in refused_recipe(document, target="mono.*")
    assert "monolingual.reverse is missing" in refused_recipe(document, reverse=None)
    with pytest.raises(UserError, match=r"data.monolingual.reverse: must be a path"):
        make_recipe(document, ["data.monolingual.reverse=null"])


def test_all_files_are_looked_at_before_any_is_translated(tmp_path, document, monkeypatch):
    monkeypatch.setattr(synthetic.LineTranslator, "translate", None)  # would fail
    data, mono = document["data"], document["data"]["monolingual"]
    (tmp_path / "empty").write_text("")
    (tmp_path / "made").write_text("something of the user's\n")
    second = {**mono, "source": str(tmp_path / "second.src")}
    for name, changed, problem in (
        ("valid", {**data["valid"], "target": str(tmp_path / "none")}, "none: no such file"),
        ("held_out", {**data["valid"], "source": str(tmp_path / "none")}, "none: no such file"),
        ("monolingual", [mono, {**second, "target": str(tmp_path / "none")}], "none: no such file"),
        ("monolingual", [mono, {**second, "target": str(tmp_path / "empty")}], "empty: is empty"),
        ("monolingual", [mono, {**second, "reverse": str(tmp_path / "none")}], "none: no such"),
        ("monolingual", [mono, {**second, "source": str(tmp_path / "made")}], "made: already exists"),
    ):
        with pytest.raises(UserError, match=problem):
            prepared({**document, "data": {**data, name: changed}}, tmp_path / "data")


def refused_recipe(document, **changes):
    mono = {**document["data"]["monolingual"], **changes}
    mono = {key: value for key, value in mono.items() if value is not None}
    with pytest.raises(UserError) as error:
        make_recipe({**document, "data": {**document["data"], "monolingual": mono}})
    return str(error.value)
