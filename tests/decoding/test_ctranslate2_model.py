"""CTranslate2 gives the same translations and scores as we do, for every configuration that it can run."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from headway.decoding import TorchEngine, beam_search, ctranslate2_model, greedy
from headway.decoding.ctranslate2_model import export_ctranslate2, pieces_of, why_not
from headway.decoding.engine import padded
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, read_model, save_model
from headway.text.shortlist import Shortlist
from headway.text.subwords import SubwordTokenizer
from headway.text.words import WordTokenizer

ctranslate2 = pytest.importorskip("ctranslate2")

VARIANTS = [
    {},
    {"norm": "pre"},
    {"activation": "gelu"},
    {"activation": "swish", "output_bias": True},
    {"positions": "learned"},
    {"share_embeddings": "none", "encoder_layers": 1, "decoder_layers": 3},
    {"share_embeddings": "decoder", "decoder_d_ff": 48, "decoder_num_heads": 2},
    {"decoder_num_heads": 8, "norm": "pre"},
]


def stored(**changes) -> StoredModel:
    tokenizer = SubwordTokenizer.train(["the cat sat on the mat", "a dog ran after"] * 20, "bpe", 290)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, "max_length": 300}
    model = Transformer(ModelConfig(290, 290, **{**options, **changes})).eval()
    with torch.no_grad():
        model.target_embedding.weight.mul_(3)  # so that no two candidates are close
        if model.output.bias is not None:
            torch.nn.init.normal_(model.output.bias)
    return StoredModel(
        model=model, source_tokenizer=tokenizer, target_tokenizer=tokenizer, source_language="en", target_language="en"
    )


def test_words_that_are_written_as_control_pieces_keep_their_ids(tmp_path):
    """The export checks itself: with sources and translations of all tokens."""
    words = WordTokenizer(["a", "<eos>", "<unk>", "<eos>#5", "b"])
    sizes = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(ModelConfig(words.vocab_size, words.vocab_size, **sizes)).eval()
    export_ctranslate2(replace(stored(), model=model, source_tokenizer=words, target_tokenizer=words), tmp_path / "out")
    assert len(set(pieces_of(replace(stored(), source_tokenizer=words))[0])) == words.vocab_size


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_ids_and_scores_are_equal(changes, tmp_path):
    one = stored(**changes)
    export_ctranslate2(one, tmp_path / "out")
    engine = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    vocabulary = one.source_tokenizer.vocabulary
    sources = [[*torch.randint(4, 290, (length,)).tolist(), 3] for length in (1, 2, 7, 40, 289)]  # 289: the last piece
    sources[2][3] = 289
    texts = [[vocabulary[id_] for id_ in source] for source in sources]
    rows = padded(sources, 0)
    never = [1]
    options = {
        "max_decoding_length": 30,
        "suppress_sequences": [["<pad>"], ["<sos>"], ["<unk>"]],
        "return_scores": True,
    }
    wanted = greedy(TorchEngine(one.model, never), rows, [30] * 5)
    for theirs, ours in zip(engine.translate_batch(texts, beam_size=1, **options), wanted, strict=True):
        assert theirs.hypotheses[0] == [vocabulary[id_] for id_ in ours.ids]
    given = [[*hypothesis.ids] for hypothesis in wanted]
    scored = engine.score_batch(texts, [[vocabulary[id_] for id_ in ids] for ids in given])
    target = padded([[2, *ids, 3] for ids in given], 0)
    totals = TorchEngine(one.model).score(rows, target).sum(1)
    assert [sum(score.log_probs) for score in scored] == pytest.approx(totals.tolist(), abs=2e-3)


def test_a_directory_and_a_model_in_memory_become_the_same_files(tmp_path):
    one = stored()
    save_model(tmp_path / "model", one)
    for model, name in ((one, "of memory"), (read_model(tmp_path / "model"), "of disk")):
        export_ctranslate2(model, tmp_path / name)
    files = [
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("of memory", "of disk")
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize("quantization", ["int8", "int16"])
@pytest.mark.parametrize("share", ["all", "none"])
def test_rounded_weights_are_not_the_models_own(quantization, share, tmp_path):
    one = stored(share_embeddings=share)
    before = one.weights_checksum
    export_ctranslate2(one, tmp_path / "exported", quantization)
    assert one.weights_checksum == before


def test_beams_are_equal_without_a_length_penalty(tmp_path):
    one = stored()
    export_ctranslate2(one, tmp_path / "out")
    engine = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    vocabulary = one.source_tokenizer.vocabulary
    source = [*torch.randint(4, 290, (9,)).tolist(), 3]
    [theirs] = engine.translate_batch(
        [[vocabulary[id_] for id_ in source]],
        beam_size=4,
        length_penalty=0,
        max_decoding_length=12,
        suppress_sequences=[["<pad>"], ["<sos>"], ["<unk>"]],
    )
    [ours] = beam_search(TorchEngine(one.model, [1]), torch.tensor([source]), [12], beam_size=4, n_best=4)
    assert theirs.hypotheses[0] == [vocabulary[id_] for id_ in ours[0].ids]


def with_shortlist(one: StoredModel) -> StoredModel:
    """With a random list, of which some ids are never generated."""
    generator = np.random.default_rng(1)
    size = one.model.config.target_vocab_size
    table = generator.integers(-1, size, (size, 8), dtype=np.int32)
    return replace(one, shortlist=Shortlist(table, generator.choice(size, 10).astype(np.int32)))


def test_the_vocabulary_map_is_the_shortlist(tmp_path):
    one = with_shortlist(stored())
    assert one.shortlist is not None
    export_ctranslate2(one, tmp_path / "out")
    lines = (tmp_path / "out" / "vmap.txt").read_text("utf-8").removesuffix("\n").split("\n")
    found = {source: targets.split() for source, targets in (line.split("\t") for line in lines)}
    vocabulary = one.source_tokenizer.vocabulary
    never = {0, 1, 2}  # <pad>, <unk>, <sos>
    for id_ in range(4, 290):
        allowed = {*one.shortlist.of_token[id_].tolist(), *one.shortlist.always.tolist()} - {-1}
        assert {*found[""], *found[vocabulary[id_]]} == {
            vocabulary[target] for target in allowed if target not in never
        }
    export_ctranslate2(stored(), tmp_path / "without")
    assert not (tmp_path / "without" / "vmap.txt").exists()


def test_what_it_can_not_run_is_refused(tmp_path):
    for field in ("encoder_layers", "decoder_layers"):
        with pytest.raises(UserError, match=f"model.{field} is 0"):
            export_ctranslate2(stored(**{field: 0}), tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_tables_of_countless_positions_are_not_written():
    """Whose size would have nothing to do with that of the weights; learned ones are weights."""
    many = ModelConfig(290, 290, d_model=32, max_length=2**20)
    assert "all positions, which are too many with max_length=1048576" in (why_not(many) or "")
    assert why_not(replace(many, positions="learned")) is None
    assert "can't run a model that reads nothing" in (why_not(replace(many, max_length=1)) or "")


def test_the_map_has_all_that_may_be_generated(monkeypatch):
    """The end, too, which is the first piece of Marian's models; -1 fills up what is shorter."""
    monkeypatch.setattr(ctranslate2_model, "pieces_of", lambda _: (["a", "b"], ["</s>", "x", "<pad>"]))
    monkeypatch.setattr(ctranslate2_model, "never_generated", lambda _: [2])
    shortlist = SimpleNamespace(always=[0], of_token=[[1, 2, -1], [-1, -1, -1]])
    assert list(ctranslate2_model._vocabulary_map(None, shortlist)) == ["\t</s>", "a\tx"]


def test_quantizations_are_those_of_the_tool():
    assert set(ctranslate2_model.QUANTIZATIONS) == set(
        pytest.importorskip("ctranslate2").specs.model_spec.ACCEPTED_MODEL_TYPES
    )
