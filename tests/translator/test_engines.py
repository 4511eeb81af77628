"""Which engine translates what, and what is said where one is missing."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

from headway.decoding import Sampling, ctranslate2_searcher
from headway.decoding.options import ABILITIES, SearchOptions
from headway.errors import LostModelError, UserError
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, save_model
from headway.text.words import WordTokenizer
from headway.translator import Translator
from headway.translator.glossary import Glossary

DOCS = Path(__file__).parents[2] / "docs"
WORDS = WordTokenizer(["a", "b", "c", "d"])
TEXTS = ["a b", "c", "a d c b", "b b"]
TERM = Glossary.of([("d", "c")])


def stored(**config) -> StoredModel:
    torch.manual_seed(5)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1, **config}
    model = Transformer(ModelConfig(WORDS.vocab_size, WORDS.vocab_size, **sizes)).eval()
    return StoredModel(
        model=model, source_tokenizer=WORDS, target_tokenizer=WORDS, source_language="de", target_language="en"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    save_model(path, stored())
    return path


@pytest.fixture
def auto(folder) -> Translator:
    return Translator.load(folder, device="cpu")


def test_on_cpu_a_stored_model_runs_with_ctranslate2_and_one_in_memory_with_torch(auto, folder):
    assert auto.engine == "ctranslate2"
    assert Translator.load(folder, device="cpu", engine="torch").engine == "torch"
    assert Translator(stored(), device="cpu").engine == "torch"


def test_what_ctranslate2_can_not_express_runs_with_torch(tmp_path, folder):
    save_model(tmp_path / "none", stored(decoder_layers=0))
    assert Translator.load(tmp_path / "none", device="cpu").engine == "torch"
    assert Translator.load(folder, device="cpu", ensemble=[folder]).engine == "torch"


def test_a_term_brings_torch_for_its_text_alone(auto, folder, caplog):
    alone = [one.text for one in auto.translate(TEXTS)]
    by_torch = Translator.load(folder, device="cpu", engine="torch").translate(TEXTS, glossary=TERM)
    calls = []
    search = auto.engines.own.search
    auto.engines.own.search = lambda sources, *rest: calls.append(len(sources)) or search(sources, *rest)
    with_terms = [one.text for one in auto.translate(TEXTS, glossary=TERM)]
    assert calls == [3]
    assert [with_terms[i] for i in (0, 1, 3)] == [alone[i] for i in (0, 1, 3)]
    assert with_terms[2] == by_torch[2].text
    auto.translate(TEXTS, glossary=TERM)
    assert [record.message for record in caplog.records] == [
        "notice: a glossary needs torch, which is slower than CTranslate2"
    ]


def test_samples_are_those_of_torch(auto, folder):
    sample = Sampling(seed=3)
    wanted = Translator.load(folder, device="cpu", engine="torch").translate(TEXTS, sample=sample)
    assert [one.text for one in auto.translate(TEXTS, sample=sample)] == [one.text for one in wanted]


@pytest.mark.parametrize(
    ("options", "what"), [({"glossary": TERM}, "a glossary"), ({"sample": Sampling()}, "sampling")]
)
def test_an_engine_that_was_chosen_refuses_what_it_lacks(folder, options, what):
    chosen = Translator.load(folder, device="cpu", engine="ctranslate2")
    with pytest.raises(UserError, match=f"{what} needs engine torch or auto"):
        chosen.translate(TEXTS, **options)


@pytest.mark.parametrize("engine", ["auto", "torch", "ctranslate2"])
def test_an_ensemble_in_int8_is_refused_with_what_to_do(folder, engine, caplog):
    with pytest.raises(UserError, match=r"precision int8: .* no ensembles; use fp32, bf16, fp16 or auto"):
        Translator.load(folder, device="cpu", precision="int8", engine=engine, ensemble=[folder])
    assert not caplog.records


def test_an_ensemble_of_models_that_begin_differently_is_refused():
    """Each would read the start symbol of the first, which an imported model may not know."""
    with pytest.raises(UserError, match="need the same bos_id, but they have 2 and 0"):
        Translator(stored(), device="cpu", ensemble=[stored(bos_id=0)])


def test_an_ensemble_needs_torch(folder):
    with pytest.raises(UserError, match="an ensemble needs engine torch or auto"):
        Translator.load(folder, device="cpu", engine="ctranslate2", ensemble=[folder])


@pytest.mark.parametrize("options", [{"glossary": TERM}, {"sample": Sampling()}])
def test_where_torch_is_missing_one_line_says_how_to_get_it(auto, monkeypatch, options):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert auto.translate(["a b"])[0].text
    with pytest.raises(UserError, match=r"needs torch, which is not installed: pip install 'headway\[torch\]'"):
        auto.translate(TEXTS, **options)


def test_without_torch_auto_is_the_cpu_even_beside_a_gpu(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("headway.devices.DRIVERS", (os.devnull,))
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    translator = Translator.load(folder)
    assert (translator.device, translator.engine) == ("cpu", "ctranslate2")


def test_a_device_has_a_number(monkeypatch):
    """Of several GPUs, CTranslate2 gets the one that was asked for."""
    import ctranslate2

    asked = []

    class Engine:
        def __init__(self, folder, **options):
            asked.append(options)

        def translate_batch(self, *_, **__):
            return []

    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 2)
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda kind, index: {"float32"} if index else {})
    monkeypatch.setattr(ctranslate2_searcher, "load_ctranslate2", Engine)
    Translator(stored(), device=torch.device("cuda:1"), engine="ctranslate2", precision="fp32")
    assert [(one["device"], one["device_index"]) for one in asked] == [("cuda", 1)]
    assert Translator(stored(), device=torch.device("cpu:0")).device == "cpu"


def test_a_search_is_stopped_from_another_thread(auto):
    auto.engines.stop()
    with pytest.raises(KeyboardInterrupt):
        auto.translate(["a b"])


def test_a_folder_that_was_replaced_after_loading_gives_no_second_model(tmp_path):
    save_model(tmp_path / "model", stored())
    loaded = Translator.load(tmp_path / "model", device="cpu")
    other = stored()
    torch.nn.init.ones_(other.model.output.weight)
    shutil.rmtree(tmp_path / "model")
    save_model(tmp_path / "model", other)
    for what in ("changed", "removed"):
        for needs_weights in (lambda: loaded.align(["a b"], ["b"]), lambda: loaded.stored):
            with pytest.raises(LostModelError, match=f"was {what} after it was verified; load the model again"):
                needs_weights()
        shutil.rmtree(tmp_path / "model", ignore_errors=True)


def test_precision_is_that_of_the_engine(folder, auto):
    assert auto.engines.precision == "fp32"
    assert Translator.load(folder, device="cpu", precision="int8").engines.precision == "int8"
    assert Translator.load(folder, device="cpu", precision="bf16", engine="torch").engines.precision == "bf16"


def test_a_notice_says_why_torch_is_needed(tmp_path, folder, caplog):
    save_model(tmp_path / "none", stored(decoder_layers=0))
    Translator.load(tmp_path / "none", device="cpu")
    Translator.load(folder, device="cpu", ensemble=[folder])
    layers, ensemble = (record.message for record in caplog.records)
    assert "model.decoder_layers is 0) needs torch, which is slower" in layers
    assert "an ensemble needs torch, which is slower" in ensemble


@pytest.mark.parametrize(("name", "wrong"), [("engine", "marian"), ("precision", "fp8")])
def test_unknown_names_are_refused_with_those_known(folder, name, wrong):
    with pytest.raises(UserError, match=f"{name} '{wrong}' is unknown; there are auto"):
        Translator.load(folder, **{name: wrong})


@pytest.mark.parametrize("page", ["engines.md", "engines.ko.md"])
def test_the_page_says_of_each_engine_what_it_can_do(page):
    rows = re.findall(r"^\| (.+) \| (yes|no|됨|안 됨) \| (yes|됨) \|$", (DOCS / page).read_text(encoding="utf-8"), re.M)
    can = {"yes": True, "됨": True, "no": False, "안 됨": False}
    others = [one for name, one in ABILITIES.items() if name not in SearchOptions.model_fields]  # these: docs/reference
    assert [can[ours] for _, ours, _ in rows] == ["ctranslate2" in one.engines for one in others]
    if page == "engines.md":
        assert [what for what, *_ in rows] == [one.what for one in others]
