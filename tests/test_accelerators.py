"""Models that aren't on the CPU: what is made for them lives where they live, and the results are those of the CPU.

On torch's `meta` device every tensor says where it is, but has no value; the pretended devices have values, too.
"""

import copy
from collections import Counter
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

from headway.cli import demo
from headway.corpora import dates
from headway.decoding import Sampling, TorchEngine, ctranslate2_searcher, faithful, torch_searcher
from headway.decoding.ctranslate2_model import export_ctranslate2
from headway.insight.analyses import Analyses, Request
from headway.insight.analyses.contrast import AskContrast, contrast
from headway.insight.analyses.contributions import contributions
from headway.insight.analyses.decoder_lens import DecoderLens, cut_encoders, given_by_encoder_layer
from headway.insight.analyses.erasure import erasure
from headway.insight.analyses.faithfulness import faithfulness
from headway.insight.analyses.head_importance import AskHeadImportance, head_importance
from headway.insight.analyses.logit_lens import logit_lens
from headway.insight.analyses.patching import AskPatching, patching
from headway.insight.analyses.reading import Reading, erasures, hidden_without
from headway.insight.editing import edited_model, prefix_logits
from headway.insight.recording import record_pass, recording_copy
from headway.insight.what_if import usual_cases
from headway.interop import onnx
from headway.interop.huggingface import export_huggingface
from headway.model import ModelConfig, Transformer
from headway.page import ShownRecord
from headway.page.export import export_web
from headway.recipe import reading as recipes
from headway.storage import StoredModel, save_model
from headway.training.optim import orthogonalized
from headway.translator import Translator
from headway.translator.engines import Engines
from headway.translator.glossary import Glossary
from tests.pretend_device import Kind, PretendTensor, Products
from tests.properties.models import EOS, random_model
from tests.serving.conftest import Server
from tests.translator.test_confidence import calibrated

KINDS: tuple[Kind, ...] = ("cuda", "mps")
TEXT, OTHER, GIVEN = "the cat sat", "the dog sat", "the dog mat"
TEXTS = [TEXT, "a dog ran after the cat", "", "the mat"]
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 2, "decoder_layers": 1}
CONFIG = ModelConfig(source_vocab_size=12, target_vocab_size=12, **SIZES)
PLAIN = ("contributions", "erasure", "logit_lens", "decoder_lens", "faithfulness")
ANALYSES: list[str | Request] = [
    *PLAIN,
    AskContrast(),
    AskPatching(other=OTHER),
    AskHeadImportance(pairs=[(TEXT, "a dog"), (OTHER, "the mat sat")]),
]
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 3, "n_best": 2, "no_repeat_ngram": 2},
    "prefix": {"prefix": "the", "beam_size": 1},
    "sample": {"sample": Sampling(seed=2), "n_best": 2},
    "few": {"sample": Sampling(top_k=5, seed=1), "n_best": 2},
    "nucleus": {"sample": Sampling(top_p=0.8, seed=1), "n_best": 2},
    "repeats": {"beam_size": 1, "no_repeat_ngram": 2},
    "glossary": {"glossary": Glossary.of([("cat", "mat")])},
    "more": {"alignments": True, "confidence": True},
}
SMALL_DEMO = [
    "tokenizer.vocab_size=330",
    *(f"model.{name}={value}" for name, value in {**SIZES, "max_length": 64}.items()),
    *(f"training.{name}={value}" for name, value in {"max_steps": 2, "tokens_per_batch": 200}.items()),
    *(f"decoding.{name}={value}" for name, value in {"max_length": 6, "beam_size": 2}.items()),
]


@pytest.fixture
def stored() -> StoredModel:
    """A calibrated model whose translations are short, and not all alike."""
    found = calibrated(**SIZES, output_bias=True).stored
    with torch.no_grad():
        found.model.output.weight.mul_(4.0)
        found.model.output.bias[4:260] = -20.0  # single bytes
    return replace(found, decoding={"max_length": 5, "beam_size": 2})


def both(*models: StoredModel) -> list[Translator]:
    """Translators on the device, which `auto` finds, and on the CPU; several models are an ensemble."""
    doors = []
    for device in ("auto", "cpu"):
        first, *ensemble = copy.deepcopy(models)
        doors.append(Translator(first, device=device, precision="fp32", ensemble=ensemble))
    return doors


def meta_model(dtype: torch.dtype) -> Transformer:
    with torch.device("meta"):
        return Transformer(CONFIG).to(dtype).eval()


def on_meta(tensors: Any, dtype: torch.dtype) -> bool:
    return all(one.is_meta and (one.dtype == dtype or not one.is_floating_point()) for one in tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_edits_and_records_live_where_the_model_lives(dtype):
    model = meta_model(dtype)
    ids = torch.zeros(1, 4, dtype=torch.long, device="meta")
    cases = usual_cases(CONFIG, "a b")
    for case in [*cases, [edit for [edit, *rest] in cases if not rest]]:
        edited = edited_model(model, case)
        assert on_meta([*edited.parameters(), *edited.buffers()], dtype), case
        seen: dict[str, torch.Tensor] = {}
        recording_copy(edited, lambda name, tensor, seen=seen: seen.update({name: tensor}))(ids, ids)
        assert on_meta(seen.values(), dtype), case
        assert "logits" in seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_models_cut_short_and_erased_sources_live_where_the_model_lives(dtype):
    model = meta_model(dtype)
    reading = Reading.of(model, [5, 6, 3], [7, 8, 9, 3])
    assert on_meta([hidden_without(model, reading, erasures(reading))], dtype)
    assert on_meta([prefix_logits(model, reading.source[None], reading.read[None])], dtype)
    for cut in cut_encoders(model):
        assert on_meta([*cut.parameters(), *cut.buffers(), cut.encode(reading.source[None])], dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_translations_on_a_device_are_those_of_the_cpu(pretend_device, stored, kind):
    pretend_device(kind)
    there, here = both(stored)
    assert {one.device.type for one in (*there.model.parameters(), *there.model.buffers())} == {kind}
    for name, options in SEARCHES.items():
        for mine, other in zip(there.translate(TEXTS, **options), here.translate(TEXTS, **options), strict=True):
            assert [one.text for one in mine.alternatives] == [one.text for one in other.alternatives], name
            assert (mine.text, mine.word_links) == (other.text, other.word_links), name
            assert [mine.score, mine.confidence] == pytest.approx([other.score, other.confidence], abs=1e-4), name
    assert there.score(TEXTS, TEXTS) == pytest.approx(here.score(TEXTS, TEXTS), abs=1e-4)
    assert there.align(TEXTS, TEXTS) == here.align(TEXTS, TEXTS)
    assert there.choose_aligner(TEXTS, TEXTS) == here.choose_aligner(TEXTS, TEXTS)


@pytest.mark.parametrize("search", [name for name in SEARCHES if name != "more"])
def test_a_step_of_a_search_waits_once(pretend_device, stored, monkeypatch, search):
    """And once more where translations reach the longest length, for the scores of their ends."""
    calls = Counter[str]()

    def counted(name: str) -> Any:
        real = getattr(TorchEngine, name)
        return lambda *given: calls.update([name]) or real(*given)

    for name in ("start", "step"):
        monkeypatch.setattr(TorchEngine, name, counted(name))
    pretend_device("cuda")
    door = Translator(stored, device="auto", precision="fp32")
    door.translate([TEXT])
    PretendTensor.waits.clear()
    calls.clear()
    door.translate([TEXT, OTHER, "the mat", "a cat"], **SEARCHES[search], max_length=9)
    assert 9 < calls["step"] <= PretendTensor.waits.total() <= calls["step"] + calls["start"]


def test_scoring_waits_once_for_all_batches(pretend_device, stored, monkeypatch):
    monkeypatch.setattr(torch_searcher, "SENTENCES_PER_BATCH", 2)
    pretend_device("cuda")
    there, here = both(stored)
    sides = [TEXT, OTHER, "a dog", "the mat"], ["a cat", "the dog sat", "a", "the mat"]
    there.score(*sides)
    PretendTensor.waits.clear()
    found = there.score(*sides)
    assert PretendTensor.waits == {"tolist": 1}
    assert found == pytest.approx(here.score(*sides), abs=1e-4)


def test_a_token_of_a_language_costs_no_wait(pretend_device):
    engine = TorchEngine(random_model(CONFIG, 7).to(pretend_device("cuda")), never=[5])
    source = torch.tensor([[6, EOS]], device="cuda").repeat(2, 1)
    state, tokens = engine.start(source), source.new_tensor([5, 6])
    PretendTensor.waits.clear()
    found = engine.step(state, tokens)
    assert not PretendTensor.waits
    assert found[:, EOS].isneginf().tolist() == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_ensembles_on_a_device_translate_as_on_the_cpu(pretend_device, stored, kind):
    pretend_device(kind)
    other = copy.deepcopy(stored)
    with torch.no_grad():
        other.model.output.weight.neg_()
    for options in (SEARCHES["greedy"], SEARCHES["beam"], SEARCHES["glossary"]):
        there, here = (door.translate(TEXTS, **options) for door in both(stored, other))
        assert [found.text for found in there] == [found.text for found in here]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_page_shows_of_a_device_is_what_it_shows_of_the_cpu(pretend_device, stored, kind):
    """All that `headway inspect --output page.html` asks for: every edit, every analysis, the order of words."""
    pretend_device(kind)

    def shown(door: Translator) -> ShownRecord:
        return door.inspect(TEXT, GIVEN, cases="usual", analyses=ANALYSES, order=True)

    there, here = (shown(door) for door in both(stored))
    assert there.to_page()
    assert {name for name, _ in there.analyses.arrays()} == {name for name, _ in here.analyses.arrays()}
    for name, array in here.arrays.items():
        np.testing.assert_allclose(there.arrays[name], array, atol=1e-4, err_msg=name)
    assert [case.after.text for case in there.cases] == [case.after.text for case in here.cases]
    assert [case.after.score for case in there.cases] == pytest.approx(
        [case.after.score for case in here.cases], abs=1e-3
    )


def test_analyses_of_a_model_in_bf16(pretend_device):
    """The arrays of all are finite, and in float32."""
    model = random_model(CONFIG, 7).bfloat16().to(pretend_device("cuda"))
    source, target = [5, 6, 7, EOS], [8, 9, 10, EOS]
    reading = Reading.of(model, source, target)
    needs = erasure(model, reading)
    found = Analyses(
        contributions=contributions(model, record_pass(model, source, target)),
        erasure=needs,
        contrast=contrast(model, reading, {}),
        logit_lens=logit_lens(model, reading),
        decoder_lens=DecoderLens(given_by_encoder_layer(model, reading), []),
        patching=patching(model, reading, reading.source.new_tensor([11, 10, 9, EOS]), OTHER),
        head_importance=head_importance(model, [source], [target]),
        faithfulness=faithfulness(model, reading, {"erasure": needs.effect}, [4] * len(target)),
    )
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for _, array in found.arrays())


def test_graphs_for_onnx_are_traced_on_the_cpu(pretend_device, stored, tmp_path, monkeypatch):
    stored.model.to(pretend_device("cuda"))
    traced = []

    def converted(graph, *_):
        traced.extend(parameter.device.type for parameter in graph.parameters())
        return SimpleNamespace(SerializeToString=bytes)

    monkeypatch.setattr(onnx, "_converted", converted)
    monkeypatch.setattr(onnx, "_move_weights", lambda *_: None)
    onnx._save_graphs(stored, tmp_path)
    assert set(traced) == {"cpu"}
    assert {parameter.device.type for parameter in stored.model.parameters()} == {"cuda"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("export", [export_ctranslate2, export_huggingface, export_web, save_model])
def test_what_is_written_of_a_model_on_a_device_is_what_is_written_of_the_cpu(
    pretend_device, stored, tmp_path, monkeypatch, export, kind
):
    monkeypatch.setattr(faithful, "LENGTHS", (3,))
    stored = replace(stored, source_language="de", target_language="en")
    there = copy.deepcopy(stored)
    there.model.to(pretend_device(kind))
    written = []
    for number, one in enumerate((stored, there)):
        export(*((tmp_path / str(number), one) if export is save_model else (one, tmp_path / str(number))))
        files = sorted(file for file in (tmp_path / str(number)).rglob("*") if file.is_file())
        written.append({file.relative_to(tmp_path / str(number)): file.read_bytes() for file in files})
    assert written[0] == written[1]
    assert len(written[0]) > 2


def test_muon_on_apples_gpu_asks_for_nothing_deprecated(pretend_device):
    device, matrices = pretend_device("mps"), torch.randn(2, 3, 4)
    found = orthogonalized(matrices.to(device), torch.float32)
    torch.testing.assert_close(found.cpu(), orthogonalized(matrices, torch.float32))


def test_a_served_page_looks_into_a_model_on_a_device(pretend_device, stored):
    pretend_device("cuda")
    server = Server(Translator(replace(stored, source_language="de"), device="auto"))
    fields = {"q": TEXT, "source": "de", "target": "en", "edits": [{"kind": "positions_off"}], "order": True}
    answer = server.post("/inspect", json={**fields, "cases": [[{"kind": "scaling_off"}]], "analyses": PLAIN})
    server.service.close()
    assert answer.status_code == 200, answer.text
    assert answer.json()["cases"]


def test_the_demo_on_apples_gpu(pretend_device, tmp_path, monkeypatch, capsys):
    """All that it shows and writes, of a small model that was trained for two steps on few dates."""
    pretend_device("mps")
    real = recipes.make_recipe

    def small(document, overrides, **named):
        return real(document, [*overrides, *SMALL_DEMO], **named)

    monkeypatch.setattr(recipes, "make_recipe", small)
    monkeypatch.setattr(dates, "dates_corpus", partial(dates.dates_corpus, sizes=(200, 8, 8)))
    monkeypatch.setattr(faithful, "LENGTHS", (3,))
    demo.demo(tmp_path)
    assert "Try next" in capsys.readouterr().out
    assert 'id="model"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_translations_on_the_second_card(pretend_device, stored):
    """Which lacks bf16, unlike the first."""
    device = pretend_device("cuda", 1, bf16=[0])
    here = Translator(copy.deepcopy(stored), device="cpu", precision="fp16")
    there = Translator(stored, device=str(device))
    assert there.engines.precision == "fp16"
    assert {one.device for one in (*there.model.parameters(), *there.model.buffers())} == {device}
    for name, options in SEARCHES.items():
        found, expected = (door.translate(TEXTS, **options) for door in (there, here))
        assert [one.text for one in found] == [one.text for one in expected], name
    assert there.score(TEXTS, TEXTS) == pytest.approx(here.score(TEXTS, TEXTS), abs=1e-4)
    assert there.inspect(TEXT, cases="usual", analyses=ANALYSES, order=True).to_page()


@pytest.mark.parametrize(("bf16", "dtype"), [([0], torch.bfloat16), ([], torch.float16)])
def test_all_products_of_a_search_are_in_the_precision(pretend_device, stored, bf16, dtype):
    pretend_device("cuda", bf16=bf16)
    door = Translator(stored, device="auto")
    with Products() as products:
        door.translate(TEXTS, beam_size=3)
    assert products.dtypes == {dtype}


@pytest.mark.parametrize(("bf16", "told"), [([], 1), ([0], 0)])
def test_a_card_that_emulates_bf16_is_told(pretend_device, stored, caplog, bf16, told):
    """Once, however many texts follow."""
    pretend_device("cuda", bf16=bf16)
    door = Translator(stored, device="cuda", precision="bf16")
    for _ in range(2):
        door.translate(TEXTS, beam_size=1)
    assert caplog.text.count("emulates bf16 slowly; use precision auto, which is fp16 here") == told


def test_ctranslate2_takes_what_a_card_has(pretend_device, stored, monkeypatch):
    pretend_device("cuda")
    for known, expected in (({"bfloat16", "float16"}, "bf16"), ({"float16", "int8"}, "fp16"), ({"int8"}, "fp32")):
        monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 2)
        monkeypatch.setattr(
            ctranslate2,
            "get_supported_compute_types",
            lambda _, number, known=known: known if number == 1 else {"int8"},
        )
        monkeypatch.setattr(ctranslate2_searcher, "CTranslate2Searcher", lambda *given: given)
        assert Engines(stored, "cuda:1", "auto", "ctranslate2").precision == expected
