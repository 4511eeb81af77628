"""Hugging Face Transformers gives the same logits, ids and translations as we do, for every configuration that it can
run, and what it has made does so here."""

import dataclasses
import functools
import io
import json
import logging
import random
from pathlib import Path

import pytest
import sentencepiece
import torch

from headway.decoding import Constraints, TorchEngine, beam_search, greedy
from headway.errors import UserError
from headway.interop.huggingface import export_huggingface, import_huggingface
from headway.model import ModelConfig, Transformer
from headway.recipe.reading import make_recipe
from headway.storage import StoredModel, load_model
from headway.text.characters import visible
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import is_tag
from headway.text.words import WordTokenizer
from headway.training.extending import cut_model, extend_model
from headway.training.loop import train as train_run
from headway.training.reporter import Reporter
from headway.translator import Translator
from tests.interop.reading import read_huggingface

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore:Recommended")  # sacremoses, which MarianTokenizer loads and never uses

ENGLISH = ["the cat sat on the mat", "a dog ran after the cat", "we went home, slowly"] * 20
GERMAN = ["die Katze saß auf der Matte", "ein Hund lief der Katze nach", "wir gingen langsam heim"] * 20
VARIANTS = [
    {},
    {"norm": "pre"},
    {"norm": "pre", "output_bias": True, "activation": "gelu"},
    {"activation": "gelu"},
    {"activation": "swish", "output_bias": True},
    {"share_embeddings": "none", "encoder_layers": 1, "decoder_layers": 3},
    {"share_embeddings": "decoder", "decoder_d_ff": 48, "output_bias": True},
    {"decoder_num_heads": 2, "encoder_layers": 0},
    {"decoder_layers": 0},
    {"bos_id": 0},
    {"bos_id": 3},
]
ODD_TEXTS = [
    "the cat",
    "The CAT sat; 3.5 % of “mats” – isn't it?",
    "漢字 and 한글 한글",
    "👩‍👩‍👧 e\u0301 é ﬁ Ⅳ ½",
    "</s> <pad> <unk> <sos> <eos> <s>",
    "<0x41> <0xE2>",
    "a\tb\u00a0c\u3000d  e",
    " the cat ",
    "x\u2028y\u0085z\rw\x00v",
    "\u200b\ufeff\u00ad.",
    "_under ▸ >>de<< in the middle",
    "a" * 300,
]
"""What has the same ids there. The differences stand in docs/interop.md."""


@functools.cache
def tokenizer(kind: str, language: str, tags: tuple[str, ...] = ()) -> SubwordTokenizer:
    lines, size = {"en": (ENGLISH, 300), "de": (GERMAN, 310)}[language]
    return SubwordTokenizer.train(lines, kind, size, tags)


def stored(kind="bpe", tags=(), separate=False, **changes) -> StoredModel:
    source = tokenizer(kind, "en", tags)
    target = tokenizer(kind, "de") if separate else source
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, "max_length": 300}
    torch.manual_seed(1)
    model = Transformer(ModelConfig(source.vocab_size, target.vocab_size, **{**options, **changes})).eval()
    return StoredModel(
        model=scrambled(model),
        source_tokenizer=source,
        target_tokenizer=target,
        source_language="en",
        target_language="de",
    )


def scrambled(model: Transformer) -> Transformer:
    """So that no two candidates are close, no norm is the identity and no bias is zero."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
            elif "embedding" in name:
                parameter.mul_(3)
    return model


def sources(config: ModelConfig) -> list[list[int]]:
    """Of length 1, beyond 256 and the longest, with <eos>; the last id and <unk> are among them."""
    chooser = random.Random(1)
    last = config.source_vocab_size - 1
    found = [[chooser.randint(4, last) for _ in range(length)] for length in (1, 2, 7, 40, 257, config.max_length - 1)]
    found[2][1:4] = [last, config.unk_id, last]
    found[4][200] = last
    return [[*source, config.eos_id] for source in found]


def hf_model(folder: Path):
    return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def hf_tokenizer(folder: Path):
    return transformers.AutoTokenizer.from_pretrained(folder)


def generated(model, source: list[int], **options) -> list[int]:
    """The ids that it generates, without the start symbol, <eos> and padding."""
    ids = torch.tensor([source])
    found = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0].tolist()[1:]
    end = model.generation_config.eos_token_id
    return found[: found.index(end)] if end in found else found


def greedy_ids(one: StoredModel, source: list[int], most: int) -> list[int]:
    engine = TorchEngine(one.model, one.target_tokenizer.never_generated)
    return greedy(engine, torch.tensor([source]), [most])[0].ids


def assert_same_logits(ours: Transformer, theirs, source: list[int], target: list[int]) -> None:
    read, given = torch.tensor([source]), torch.tensor([target])
    with torch.inference_mode():
        found = theirs(input_ids=read, attention_mask=torch.ones_like(read), decoder_input_ids=given).logits
        torch.testing.assert_close(ours(read, given), found, rtol=0, atol=1e-4)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_logits_and_greedy_ids_are_equal(changes, tmp_path):
    one = stored(**changes)
    export_huggingface(one, tmp_path / "out")
    theirs, config = hf_model(tmp_path / "out"), one.model.config
    for source in sources(config):
        found = greedy_ids(one, source, 8)
        assert generated(theirs, source, num_beams=1, max_new_tokens=9) == found
        target = [config.bos_id, *found, config.unk_id, config.target_vocab_size - 1]
        assert_same_logits(one.model, theirs, source, target)


@pytest.fixture
def logged():
    """What Transformers logs, at its usual verbosity."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    log = logging.getLogger("transformers")
    log.addHandler(handler)
    yield messages
    log.removeHandler(handler)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_it_loads_without_a_warning(changes, logged, tmp_path):
    """Such as that weights are missing from the file, or in it without a use."""
    export_huggingface(stored(max_length=40, **changes), tmp_path / "out")
    splitter, model = hf_tokenizer(tmp_path / "out"), hf_model(tmp_path / "out")
    model.generate(**splitter(["the cat", "a dog ran"], return_tensors="pt", padding=True))
    assert logged == []
    transformers.utils.logging.get_logger("transformers.x").warning("heard")
    assert logged == ["heard"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_padded_batch_is_the_same_too(norm, tmp_path):
    one = stored(norm=norm)
    export_huggingface(one, tmp_path / "out")
    rows = [[9, 8, 7, 6, 5, 3], [5, 6, 3, 0, 0, 0]]
    source, target = torch.tensor(rows), torch.tensor([[2, 7, 9], [2, 9, 7]])
    with torch.inference_mode():
        theirs = hf_model(tmp_path / "out")(input_ids=source, attention_mask=source != 0, decoder_input_ids=target)
        torch.testing.assert_close(one.model(source, target), theirs.logits, rtol=0, atol=1e-4)


def ends_by_itself(model: Transformer) -> None:
    """Where the cap on the length ends a hypothesis, <eos> counts here with its probability, and there with none."""
    with torch.no_grad():
        model.output.bias[model.config.eos_id] += 2


def beam_ids(one: StoredModel, source: list[int]) -> list[int]:
    """Of the best hypothesis without length penalty; no token comes twice, so that it is no loop."""
    engine = TorchEngine(one.model, one.target_tokenizer.never_generated)
    options = {"beam_size": 4, "constraints": Constraints(no_repeat_ngram=1)}
    [[best]] = beam_search(engine, torch.tensor([source]), [60], **options)
    assert best.stopped == "eos"
    return best.ids


BEAMS = {"num_beams": 4, "length_penalty": 0.0, "no_repeat_ngram_size": 1, "max_new_tokens": 61}
"""The same for theirs."""


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_beams_are_equal_without_a_length_penalty(norm, tmp_path):
    one = stored(norm=norm, output_bias=True)
    ends_by_itself(one.model)
    export_huggingface(one, tmp_path / "out")
    theirs = hf_model(tmp_path / "out")
    found = [beam_ids(one, source) for source in sources(one.model.config)[:5]]
    assert [generated(theirs, source, **BEAMS) for source in sources(one.model.config)[:5]] == found
    assert len(set(map(len, found))) > 2


def test_a_translation_without_options_has_our_defaults(tmp_path):
    one = stored(output_bias=True)
    with torch.no_grad():  # what is never generated would win everywhere
        one.model.output.bias[:3] = 100.0
    one.decoding = {"beam_size": 1, "max_length": 9}
    export_huggingface(one, tmp_path / "out")
    theirs = hf_model(tmp_path / "out")
    for source in sources(one.model.config):
        found = generated(theirs, source)
        assert found == greedy_ids(one, source, 9)
        assert not {0, 1, 2}.intersection(found)
        assert len(found) <= 9


@pytest.mark.parametrize("beams", [1, 4])
def test_no_translation_is_empty(beams, tmp_path):
    """Of a model that would always rather end at once."""
    one = stored(output_bias=True)
    with torch.no_grad():
        one.model.output.bias[one.model.config.eos_id] = 20.0
    export_huggingface(one, tmp_path / "out")
    theirs = hf_model(tmp_path / "out")
    for source in sources(one.model.config):
        found = generated(theirs, source, num_beams=beams)
        assert len(found) == 1
        assert found == greedy_ids(one, source, 9)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("separate", [False, True])
def test_texts_have_the_same_ids_and_come_back(kind, separate, tmp_path):
    one = stored(kind, separate=separate, share_embeddings="decoder" if separate else "all")
    export_huggingface(one, tmp_path / "out")
    theirs = hf_tokenizer(tmp_path / "out")
    assert type(theirs) is transformers.MarianTokenizer
    assert theirs.model_max_length == 300
    for text in map(visible, ODD_TEXTS):
        assert theirs(text)["input_ids"] == [*one.source_tokenizer.encode(text), 3], text
        ids = one.target_tokenizer.encode(text)
        assert theirs(text_target=text)["input_ids"] == [*ids, 3], text
        assert theirs.decode([2, *ids, 3, 0], skip_special_tokens=True) == one.target_tokenizer.decode(ids).strip()


def test_language_tags(tmp_path):
    one = stored("unigram", tags=("de", "pt-BR"))
    export_huggingface(one, tmp_path / "out")
    theirs = hf_tokenizer(tmp_path / "out")
    for text in (">>de<< the cat", ">>pt-BR<< the cat >>de<<", "the cat"):
        assert theirs(text)["input_ids"] == [*one.source_tokenizer.encode(text, tagged=True), 3]
    assert theirs(">>de<< the cat")["input_ids"][0] == 4
    suppressed = json.loads((tmp_path / "out" / "generation_config.json").read_text())["suppress_tokens"]
    assert suppressed == [0, 1, 2, 4, 5]


ROUND_TRIPS = [
    *({"changes": changes} for changes in VARIANTS),
    {"kind": "unigram", "tags": ("de", "fr"), "changes": {}},
    {"separate": True, "changes": {"share_embeddings": "decoder"}},
    {"separate": True, "changes": {"share_embeddings": "none", "output_bias": True, "dropout": 0.25, "d_model": 20}},
]


@pytest.mark.parametrize("case", ROUND_TRIPS, ids=str)
def test_ours_comes_back_exactly(case, tmp_path):
    case = dict(case)
    one = stored(**{"max_length": 40, **case.pop("changes")}, **case)
    one.decoding = {"beam_size": 3, "length_penalty": 0.6, "max_length": 27, "no_repeat_ngram": 3}
    export_huggingface(one, tmp_path / "out")
    import_huggingface(tmp_path / "out", tmp_path / "back")
    back = load_model(tmp_path / "back")
    assert back.model.config == one.model.config
    weights, found = dict(one.model.named_parameters()), dict(back.model.named_parameters())
    assert weights.keys() == found.keys()
    assert all(torch.equal(weights[name], found[name]) for name in weights)
    assert back.source_tokenizer.to_bytes() == one.source_tokenizer.to_bytes()
    assert back.target_tokenizer.to_bytes() == one.target_tokenizer.to_bytes()
    assert (back.source_language, back.target_language, back.decoding) == ("en", "de", one.decoding)


def test_a_search_option_without_a_name_there_is_told(tmp_path, caplog):
    export_huggingface(dataclasses.replace(stored(), decoding={"n_best": 2}), tmp_path / "out")
    assert "leaves out n_best=2" in caplog.text


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (lambda: stored(positions="learned"), "positions=learned"),
        (lambda: stored(norm="pre", share_embeddings="decoder"), "share_embeddings=decoder"),
        (lambda: with_words(stored()), "splits words"),
    ],
)
def test_what_has_no_faithful_form_is_refused(one, reason, tmp_path):
    with pytest.raises(UserError, match=reason):
        export_huggingface(one(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def with_words(one: StoredModel) -> StoredModel:
    words = WordTokenizer([f"w{number}" for number in range(one.model.config.source_vocab_size - 4)])
    return StoredModel(
        model=one.model, source_tokenizer=words, target_tokenizer=words, source_language="en", target_language="de"
    )


def test_an_export_that_is_another_model_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.interop.huggingface.names.sines_first", torch.arange)
    with pytest.raises(UserError, match="Hugging Face Transformers gives other scores"):
        export_huggingface(stored(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_without_the_package_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(UserError, match=r"pip install 'headway\[huggingface\]'$"):
        export_huggingface(stored(), tmp_path / "out")


# what others have made


def train(lines: list[str], size: int) -> bytes:
    """As OPUS-MT trains it: sentencepiece's defaults, <unk> 0, <s> 1, </s> 2."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=size, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


LACKING = ("▁cat", "t")


def opus(folder: Path, tags=(">>deu<<", ">>nld<<"), separate=False, **changes):
    """A randomly initialised model with the configuration of OPUS-MT, and tokenizers whose ids are not the
    vocabulary's; the pieces of `LACKING` are in no vocabulary."""
    folder.mkdir()
    pieces = {}
    for side, lines, size in (("source", ENGLISH, 60), ("target", GERMAN, 70)):
        model = train(lines, size)
        (folder / f"{side}.spm").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        names = [processor.id_to_piece(id_) for id_ in range(3, processor.get_piece_size())]
        random.Random(2).shuffle(names)
        pieces[side] = [name for name in names if name not in LACKING]
    both = sorted({*pieces["source"], *pieces["target"]})
    random.Random(3).shuffle(both)
    vocabularies = [pieces["source"], pieces["target"]] if separate else [both]
    files = [folder / "vocab.json", folder / "target_vocab.json"]
    sizes = []
    for file, vocabulary in zip(files, vocabularies, strict=False):
        names = ["</s>", "<unk>", *vocabulary, *tags]
        names.insert(2 if separate else len(names), "<pad>")  # two matrices of two sizes have one padding_idx
        file.write_text(json.dumps({name: id_ for id_, name in enumerate(names)}))
        sizes.append(len(names))
    options = {"source_lang": "eng", "target_lang": "deu", **({"separate_vocabs": True} if separate else {})}
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    pad = 2 if separate else sizes[0] - 1
    config = transformers.MarianConfig(
        **{
            "vocab_size": sizes[0],
            "decoder_vocab_size": sizes[-1],
            "share_encoder_decoder_embeddings": not separate,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "max_position_embeddings": 280,
            "activation_function": "swish",
            "scale_embedding": True,
            "static_position_embeddings": True,
            "pad_token_id": pad,
            "eos_token_id": 0,
            "bos_token_id": 0,
            "decoder_start_token_id": pad,
            "forced_eos_token_id": 0,
            **changes,
        }
    )
    torch.manual_seed(4)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(
                    0.3 * torch.randn_like(parameter) if parameter.dim() == 1 else torch.randn_like(parameter) / 8
                )
        model.final_logits_bias.normal_(0, 0.5)
        model.final_logits_bias[0, 0] += 1  # so that translations end by themselves
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(
        json.dumps(
            {
                "bad_words_ids": [[pad]],
                "decoder_start_token_id": pad,
                "eos_token_id": 0,
                "pad_token_id": pad,
                "forced_eos_token_id": 0,
                "num_beams": 4,
                "max_length": 280,
            }
        )
    )
    return transformers.MarianMTModel.from_pretrained(folder).eval()


def their_ids(folder: Path, one: StoredModel, side: str) -> list[int]:
    """For each id of ours theirs, found by the names of the pieces; <unk> for what their vocabulary lacks."""
    separate = side == "target" and (folder / "target_vocab.json").exists()
    ids = json.loads((folder / ("target_vocab.json" if separate else "vocab.json")).read_text())
    mine = one.source_tokenizer if side == "source" else one.target_tokenizer
    controls = ["<pad>", "<unk>", "<pad>", "</s>"]
    return [ids.get(piece, ids["<unk>"]) for piece in [*controls, *mine.vocabulary[4:]]]


@pytest.mark.parametrize("separate", [False, True])
def test_an_imported_model_has_their_logits_and_translations(separate, tmp_path):
    theirs = opus(tmp_path / "hf", tags=() if separate else (">>deu<<", ">>nld<<"), separate=separate)
    import_huggingface(tmp_path / "hf", tmp_path / "ours")
    one = load_model(tmp_path / "ours")
    config = one.model.config
    assert (config.bos_id, config.pad_id, config.eos_id, config.activation) == (0, 0, 3, "swish")
    source_rows, target_rows = (their_ids(tmp_path / "hf", one, side) for side in ("source", "target"))
    named = json.loads((tmp_path / "hf" / ("target_vocab.json" if separate else "vocab.json")).read_text())
    known = [id_ for id_, piece in enumerate(one.target_tokenizer.vocabulary) if id_ in (0, 1, 3) or piece in named]
    never = [target_rows[id_] for id_ in (1, *one.target_tokenizer.never_generated)]
    for source in sources(config):
        found = greedy_ids(one, source, 20)
        read = [source_rows[id_] for id_ in source]
        options = {"max_new_tokens": 21, "suppress_tokens": [target_rows[0], *never]}
        assert generated(theirs, read, num_beams=1, **options) == [target_rows[id_] for id_ in found]
        with torch.inference_mode():
            mine = one.model(torch.tensor([source]), torch.tensor([[0, *found]]))
            other = theirs(
                input_ids=torch.tensor([read]),
                decoder_input_ids=torch.tensor([[target_rows[id_] for id_ in (0, *found)]]),
            ).logits
        wanted = other[..., [target_rows[id_] for id_ in known]]
        torch.testing.assert_close(mine[..., known], wanted, rtol=0, atol=1e-4)
        assert sorted(target_rows[id_] for id_ in known) == list(range(other.size(-1)))  # all of theirs, once
        torch.testing.assert_close(  # nothing else takes part
            mine.log_softmax(-1)[..., known], wanted.log_softmax(-1), rtol=0, atol=1e-4
        )


def test_an_imported_model_has_their_beams(tmp_path):
    theirs = opus(tmp_path / "hf")
    one = read_huggingface(tmp_path / "hf")
    rows = their_ids(tmp_path / "hf", one, "target")
    never = [rows[id_] for id_ in one.target_tokenizer.never_generated]
    for source in sources(one.model.config)[:5]:
        found = generated(theirs, [rows[id_] for id_ in source], **BEAMS, suppress_tokens=never)
        assert found == [rows[id_] for id_ in beam_ids(one, source)]


@pytest.mark.parametrize("separate", [False, True])
def test_an_imported_tokenizer_gives_their_ids_and_text(separate, tmp_path):
    opus(tmp_path / "hf", tags=() if separate else (">>deu<<", ">>nld<<"), separate=separate)
    one, theirs = read_huggingface(tmp_path / "hf"), hf_tokenizer(tmp_path / "hf")
    source_rows, target_rows = (their_ids(tmp_path / "hf", one, side) for side in ("source", "target"))
    odd = ["漢字 x", "a  b\tn", "1,000 — 😀.", ""]
    for text in [*ENGLISH[:3], *odd, "the 漢字 cat"]:
        found = [source_rows[id_] for id_ in one.source_tokenizer.encode(text)]
        assert found == theirs(text)["input_ids"][:-1], text
    for text in [*GERMAN[:3], *odd, "die 漢字 Katze"]:
        found = [target_rows[id_] for id_ in one.target_tokenizer.encode(text)]
        assert found == theirs(text_target=text)["input_ids"][:-1], text
    assert 1 in one.source_tokenizer.encode("ß")  # the target's alone
    if not separate:
        assert one.source_tokenizer.target_tags == ["deu", "nld"]
        found = [source_rows[id_] for id_ in one.source_tokenizer.encode(">>nld<< the cat", tagged=True)]
        assert found == theirs(">>nld<< the cat")["input_ids"][:-1]
    chooser = random.Random(5)
    ids = [id_ for id_ in range(4, one.target_tokenizer.vocab_size) if not is_tag(one.target_tokenizer.vocabulary[id_])]
    ids = [id_ for id_ in ids if target_rows[id_] != target_rows[1]]
    for length in (1, 5, 30):
        drawn = chooser.choices(ids, k=length)
        text = theirs.decode([target_rows[id_] for id_ in drawn], skip_special_tokens=True)
        assert one.target_tokenizer.decode(drawn).strip() == text


def test_pieces_that_their_vocabulary_lacks_are_unknown(tmp_path):
    theirs = opus(tmp_path / "hf")
    one = read_huggingface(tmp_path / "hf")
    named = json.loads((tmp_path / "hf" / "vocab.json").read_text())
    vocabulary = one.source_tokenizer.vocabulary
    lacking = [id_ for id_ in range(4, len(vocabulary)) if vocabulary[id_] not in named]
    assert lacking
    unknown = theirs.get_input_embeddings().weight[named["<unk>"]]
    for id_ in lacking:
        ours = one.model.source_embedding.weight[id_]
        assert torch.equal(ours.sort().values, unknown.sort().values)


def test_a_translator_runs_it_and_it_goes_back(tmp_path):
    theirs = opus(tmp_path / "hf")
    import_huggingface(tmp_path / "hf", tmp_path / "ours")
    translator = Translator.load(tmp_path / "ours")
    assert translator.target_languages == ["deu", "nld"]
    assert translator.stored.decoding == {"beam_size": 4}
    text = ">>deu<< the cat sat on the mat"
    [found] = translator.translate([text], beam_size=1, max_length=20)
    splitter = hf_tokenizer(tmp_path / "hf")
    never = [id_ for piece, id_ in splitter.encoder.items() if is_tag(piece) or piece == "<unk>"]
    ids = theirs.generate(**splitter(text, return_tensors="pt"), num_beams=1, max_new_tokens=21, suppress_tokens=never)
    assert found.text.strip() == splitter.decode(ids[0], skip_special_tokens=True)
    export_huggingface(translator.stored, tmp_path / "again")
    back = read_huggingface(tmp_path / "again")
    weights, found_weights = dict(translator.model.named_parameters()), dict(back.model.named_parameters())
    assert all(torch.equal(weights[name], found_weights[name]) for name in weights)


def fine_tuned(model: Path, run: Path, steps: int, rate: float) -> float:
    """Trains the model on pairs; the loss at the end, in nats a token of the first three of them."""
    for name, lines in (
        ("train.en", ENGLISH),
        ("train.de", GERMAN),
        ("valid.en", ENGLISH[:3]),
        ("valid.de", GERMAN[:3]),
    ):
        (run.parent / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    corpora = {
        split: {"source": str(run.parent / f"{split}.en"), "target": str(run.parent / f"{split}.de"), "tag": "deu"}
        for split in ("train", "valid")
    }
    options = {"learning_rate": rate, "warmup_steps": 0, "max_steps": steps, "precision": "fp32", "device": "cpu"}
    options |= {"schedule": "constant", "tokens_per_batch": 512, "init_from": str(model)}
    train_run(make_recipe({"data": corpora, "training": options}), run, Reporter(quiet=True))
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [entry["valid_loss"] for entry in entries if "valid_loss" in entry][-1]


@torch.inference_mode()
def their_loss(folder: Path, lacking: int) -> float:
    """As Transformers has it, of the same pairs, with so many more tokens that are as likely as <unk>."""
    model, splitter = hf_model(folder), hf_tokenizer(folder)
    losses = []
    for source, target in zip(ENGLISH[:3], GERMAN[:3], strict=True):
        batch = splitter(f">>deu<< {source}", text_target=target, return_tensors="pt")
        logits = model(**batch).logits[0]  # (target length, vocabulary)
        unknown = logits[:, splitter.unk_token_id, None].expand(-1, lacking)
        log_probabilities = torch.cat([logits, unknown], dim=-1).log_softmax(-1)
        losses += (-log_probabilities.gather(1, batch["labels"].T)).flatten().tolist()
    return sum(losses) / len(losses)


@pytest.mark.parametrize(("separate", "starts_at_eos"), [(False, False), (True, False), (False, True)])
def test_fine_tuning_begins_where_they_stopped_and_goes_back(separate, starts_at_eos, tmp_path):
    opus(tmp_path / "hf", separate=separate, **({"decoder_start_token_id": 0} if starts_at_eos else {}))
    generation = json.loads((tmp_path / "hf" / "generation_config.json").read_text())
    generation |= {"num_beams": 3, "no_repeat_ngram_size": 3, "length_penalty": 0.5}
    (tmp_path / "hf" / "generation_config.json").write_text(json.dumps(generation))
    import_huggingface(tmp_path / "hf", tmp_path / "ours")
    ours = load_model(tmp_path / "ours")
    assert ours.model.config.bos_id == (3 if starts_at_eos else 0)  # training starts at <sos>
    known = json.loads((tmp_path / "hf" / ("target_vocab.json" if separate else "vocab.json")).read_text())
    lacking = ours.target_tokenizer.vocab_size - len(known) - 1  # <sos>
    assert lacking > 0
    before = fine_tuned(tmp_path / "ours", tmp_path / "untouched", 1, 1e-12)
    assert before == pytest.approx(their_loss(tmp_path / "hf", lacking), rel=1e-4)
    after = fine_tuned(tmp_path / "ours", tmp_path / "tuned", 40, 3e-3)
    assert after < before / 2
    export_huggingface(load_model(tmp_path / "tuned"), tmp_path / "back")
    assert their_loss(tmp_path / "back", 0) == pytest.approx(after, rel=1e-4)
    back = json.loads((tmp_path / "back" / "generation_config.json").read_text())
    assert {name: back[name] for name in ("num_beams", "no_repeat_ngram_size", "length_penalty")} == {
        "num_beams": 3,
        "no_repeat_ngram_size": 3,
        "length_penalty": pytest.approx(0.5),
    }
    languages = json.loads((tmp_path / "back" / "tokenizer_config.json").read_text())
    assert (languages["source_lang"], languages["target_lang"]) == ("eng", "deu")


@pytest.mark.parametrize("separate", [False, True])
def test_an_imported_model_gets_new_pieces_and_goes_back(separate, tmp_path):
    opus(tmp_path / "hf", separate=separate)
    before = read_huggingface(tmp_path / "hf")
    after = extend_model(before, 12, ["antennas"] * 9, ["Antennen", "Katzettten"] * 9, ["fra"])
    assert "t" in LACKING
    new = [piece for piece in after.target_tokenizer.vocabulary if piece not in before.target_tokenizer.vocabulary]
    assert any("tt" in piece for piece in new)
    assert after.model.output.bias[-len(new) + 1 :].min() > -10  # no part that they lack makes a new piece impossible
    texts = [f">>deu<< {text}" for text in ENGLISH[:3]]
    wanted, found = (
        Translator(one, device="cpu").translate(texts, beam_size=1, max_length=9) for one in (before, after)
    )
    assert [one.text for one in found] == [one.text for one in wanted]
    for side, other, word in (("source", "target", "antennas"), ("target", "source", "Antennen")):
        mine, theirs = getattr(after, f"{side}_tokenizer"), getattr(after, f"{other}_tokenizer")
        assert f"▁{word}" in [mine.vocabulary[id_] for id_ in mine.encode(word)]
        assert separate or mine.vocabulary == theirs.vocabulary
        assert len(mine.encode(word)) < len(theirs.encode(word))
    export_huggingface(after, tmp_path / "back")
    assert read_huggingface(tmp_path / "back").source_tokenizer.target_tags == ["deu", "nld", "fra"]


@pytest.mark.parametrize("separate", [False, True])
def test_an_imported_model_is_cut_to_text_of_both_sides(separate, tmp_path):
    opus(tmp_path / "hf", separate=separate)
    before = read_huggingface(tmp_path / "hf")
    after = cut_model(before, [ENGLISH[0], GERMAN[0]])
    assert separate or after.source_tokenizer.vocabulary == after.target_tokenizer.vocabulary
    for side, text in (("source", ENGLISH[0]), ("target", GERMAN[0])):
        old, new = getattr(before, f"{side}_tokenizer"), getattr(after, f"{side}_tokenizer")
        assert new.vocab_size < old.vocab_size
        assert [new.vocabulary[id_] for id_ in new.encode(text)] == [old.vocabulary[id_] for id_ in old.encode(text)]
    export_huggingface(after, tmp_path / "back")
    assert read_huggingface(tmp_path / "back").source_tokenizer.target_tags == before.source_tokenizer.target_tags


def rewritten(folder: Path, change) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file({name: weight.clone() for name, weight in weights.items()}, folder / "model.safetensors")


def test_what_old_files_have_beside_is_understood(tmp_path):
    theirs = opus(tmp_path / "hf")
    before = dict(read_huggingface(tmp_path / "hf").model.named_parameters())

    def old(weights):
        shared = weights["model.shared.weight"]
        for name in ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"):
            weights[name] = shared
        for side in ("encoder", "decoder"):
            weights[f"model.{side}.embed_positions.weight"] = theirs.model.encoder.embed_positions.weight

    rewritten(tmp_path / "hf", old)
    after = dict(read_huggingface(tmp_path / "hf").model.named_parameters())
    assert all(torch.equal(before[name], after[name]) for name in before)

    def without_shared(weights):
        for name in ("model.shared.weight", "lm_head.weight", "model.encoder.embed_tokens.weight"):
            del weights[name]

    rewritten(tmp_path / "hf", without_shared)
    after = dict(read_huggingface(tmp_path / "hf").model.named_parameters())
    assert all(torch.equal(before[name], after[name]) for name in before)


def set_config(folder: Path, **fields) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def without_field(folder: Path, name: str) -> None:
    file = folder / "config.json"
    config = json.loads(file.read_text())
    del config[name]
    file.write_text(json.dumps(config))


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


DAMAGE = {
    "is a pickle": without_weights,
    "model_type 'bart'": lambda folder: set_config(folder, model_type="bart"),
    "model_type \\['x'\\]": lambda folder: set_config(folder, model_type=["x"]),
    "scale_embedding is not true": lambda folder: set_config(folder, scale_embedding=False),
    "activation_function 'gelu_new'": lambda folder: set_config(folder, activation_function="gelu_new"),
    "eos_token_id is \\[0, 1\\]": lambda folder: set_config(folder, eos_token_id=[0, 1]),
    "are not the tokenizer's": lambda folder: set_config(folder, eos_token_id=7),
    "decoder_start_token_id 99999": lambda folder: set_config(folder, decoder_start_token_id=99999),
    "json: lacks decoder_ffn_dim": lambda folder: without_field(folder, "decoder_ffn_dim"),
    "pad_token_id is None": lambda folder: without_field(folder, "pad_token_id"),
    "d_model=33": lambda folder: set_config(folder, d_model=33),
    "encoder_layers='2'": lambda folder: set_config(folder, encoder_layers="2"),
    "the config wants": lambda folder: set_config(folder, encoder_ffn_dim=65),
    "lacks model.decoder": lambda folder: set_config(folder, decoder_layers=3),
    "which such a model lacks": lambda folder: set_config(folder, decoder_layers=1),
    "but the model has": lambda folder: set_config(folder, vocab_size=20),
    "source.spm: is missing": lambda folder: (folder / "source.spm").unlink(),
    "not a sentencepiece model": lambda folder: (folder / "target.spm").write_bytes(b"\x0a\x03abc"),
    "are not the numbers from 0": lambda folder: (folder / "vocab.json").write_text('{"</s>": 0, "<unk>": 0}'),
    "are not the sinusoids": lambda folder: rewritten(
        folder, lambda weights: weights.update({"model.encoder.embed_positions.weight": torch.zeros(280, 32)})
    ),
    "should be one matrix": lambda folder: rewritten(
        folder, lambda weights: weights.update({"lm_head.weight": torch.zeros_like(weights["model.shared.weight"])})
    ),
    "not finite": lambda folder: rewritten(
        folder, lambda weights: weights["model.encoder.layers.0.fc1.bias"].fill_(torch.nan)
    ),
    r"hf/tokenizer_config.json: '\\ud800' is no language": lambda folder: (folder / "tokenizer_config.json").write_text(
        '{"source_lang": "\\ud800"}'
    ),
    "hf/tokenizer_config.json: 'x{298}.* is no language": lambda folder: (folder / "tokenizer_config.json").write_text(
        json.dumps({"target_lang": "x" * 1000})
    ),
    "hf/tokenizer_config.json: 'of two' is no language": lambda folder: (folder / "tokenizer_config.json").write_text(
        '{"source_lang": "of two"}'
    ),
    "generation_config.json": lambda folder: (folder / "generation_config.json").write_text('{"num_beams": 100000}'),
}


@pytest.mark.parametrize("reason", DAMAGE)
def test_what_can_not_be_imported_is_refused(reason, tmp_path):
    opus(tmp_path / "hf")
    DAMAGE[reason](tmp_path / "hf")
    with pytest.raises(UserError, match=reason) as refusal:
        import_huggingface(tmp_path / "hf", tmp_path / "ours")
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "ours").exists()


def test_a_folder_of_the_hubs_cache_is_imported_and_nothing_outside_is_read(tmp_path):
    """Its files are links. A card that is a link to elsewhere could bring a private file into a model."""
    snapshot = tmp_path / "models--x--de-en" / "snapshots" / "5a"
    snapshot.parent.mkdir(parents=True)
    opus(snapshot)
    (snapshot / "README.md").write_text("# A card")
    blobs = tmp_path / "models--x--de-en" / "blobs"
    blobs.mkdir()
    for number, file in enumerate(list(snapshot.iterdir())):
        file.rename(blobs / str(number))
        file.symlink_to(f"../../blobs/{number}")
    import_huggingface(snapshot, tmp_path / "ours")
    assert "# A card" in load_model(tmp_path / "ours").card
    (tmp_path / "private").write_text("secret")
    (snapshot / "README.md").unlink()
    (snapshot / "README.md").symlink_to(tmp_path / "private")
    with pytest.raises(UserError, match=r"README\.md: is a link out of its folder"):
        import_huggingface(snapshot, tmp_path / "again")
