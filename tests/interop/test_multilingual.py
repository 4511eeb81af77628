"""Folders of M2M-100, NLLB-200 and mBART-50 with random weights: transformers and an import give the same numbers."""

import json
import re
from pathlib import Path

import pytest
import sacrebleu
import safetensors.torch
import torch
from benchmarks.pretrained_folder import write_folder
from typer.testing import CliRunner

from headway.cli import app
from headway.errors import UserError
from headway.interop.argos import export_argos
from headway.interop.huggingface import export_huggingface, import_huggingface
from headway.interop.onnx import export_onnx
from headway.page.export import export_web
from headway.recipe.reading import make_recipe
from headway.serving.pairs import Pairs
from headway.storage import StoredModel, load_model, save_model
from headway.text.growing import needed_ids
from headway.training.extending import cut_model
from headway.training.loop import train as train_run
from headway.training.reporter import Reporter
from headway.translator import Translator
from headway.translator.lines import language_prefix
from tests.interop.reading import read_huggingface

transformers = pytest.importorskip("transformers")

LINES = [
    "The cat sat on the mat.",
    "고양이가 매트 위에 앉았습니다.",
    "猫がマットの上に座った。",
    "猫坐在垫子上。",
    "Кошка сидела на коврике.",
    "जल्दी से बिल्ली चटाई पर बैठी।",
    "جلست القطة على الحصيرة.",
    "החתול ישב על המחצלת.",
    "Η γάτα κάθισε στο χαλί.",
    "แมวนั่งบนเสื่อ",
    "კატა ხალიჩაზე იჯდა.",
    "Կատուն նստեց գորգին։",
    "பூனை பாயில் அமர்ந்தது.",
    "పిల్లి చాప మీద కూర్చుంది.",
    "বিড়াল মাদুরে বসেছিল।",
    "ድመቷ ምንጣፉ ላይ ተቀመጠች።",
    "ឆ្មាអង្គុយលើកន្ទេល។",
    "ແມວນັ່ງຢູ່ເທິງເສື່ອ.",
    "ಬೆಕ್ಕು ಚಾಪೆಯ ಮೇಲೆ ಕುಳಿತಿತ್ತು.",
    "બિલાડી સાદડી પર બેઠી.",
]
ENDING = 5.0
MOST_TOKENS = 80
UNSEEN = "ကြောင်သည် ထိုင်သည်။"
NAMES = {
    "M2M100Tokenizer": "M2M100ForConditionalGeneration",
    "NllbTokenizer": "M2M100ForConditionalGeneration",
    "MBart50Tokenizer": "MBartForConditionalGeneration",
}
PAIRS = {
    "M2M100Tokenizer": ("en", "ko"),
    "NllbTokenizer": ("eng_Latn", "kor_Hang"),
    "MBart50Tokenizer": ("en_XX", "ko_KR"),
}


def write_random(folder: Path, kind: str) -> None:
    """A tiny folder with weights far from zero."""
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 300}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40}
    write_folder(folder, kind, LINES * 20, 450, noise=0.3, **sizes)


@pytest.fixture(params=list(PAIRS))
def kind(request) -> str:
    return request.param


@pytest.fixture
def folder(kind, tmp_path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    write_random(folder, kind)
    return folder


def rows_of(folder: Path) -> list[int]:
    from headway.interop.huggingface import importing

    options = json.loads((folder / "tokenizer_config.json").read_text())
    return importing.read_vocabulary(folder, importing._read_config(folder), options)[1]


def ours(stored: StoredModel, kind: str, line: str) -> list[int]:
    return stored.source_tokenizer.encode(f">>{':'.join(PAIRS[kind])}<< {line}", tagged=True)


def test_logits_of_every_token_are_theirs(folder, kind):
    stored, rows = read_huggingface(folder), rows_of(folder)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    assert sorted(rows) == list(range(theirs.config.vocab_size))
    generator = torch.Generator().manual_seed(1)
    for length in (3, 40, 250):
        source, target = torch.randint(4, len(rows), (2, 1, length), generator=generator)
        target[0, 0] = stored.config.bos_id
        given = [torch.tensor(rows)[ids] for ids in (source, target)]
        with torch.inference_mode():
            found = theirs(
                input_ids=given[0], attention_mask=torch.ones_like(source), decoder_input_ids=given[1]
            ).logits
            torch.testing.assert_close(stored.model(source, target), found[:, :, rows], rtol=0, atol=1e-5)


def test_twenty_scripts_have_their_ids(folder, kind):
    stored, rows = read_huggingface(folder), rows_of(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder, src_lang=PAIRS[kind][0])
    for line in [*LINES, UNSEEN, " ".join(LINES)]:
        assert [rows[id_] for id_ in ours(stored, kind, line)] + [2] == theirs(line)["input_ids"]
        ids = stored.target_tokenizer.encode(line)
        assert stored.target_tokenizer.decode(ids) == theirs.decode([rows[id_] for id_ in ids]) or line == UNSEEN


def make_ending(folder: Path, never: list[int]) -> None:
    """Makes random weights choose </s>, and seldom what is never generated: CTranslate2 gives its share to others."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    with torch.no_grad():
        norm, embedding = model.model.decoder.layer_norm, model.model.shared.weight
        norm.weight[0], norm.bias[0] = 0.0, 1.0  # the output layer reads 1 there
        embedding[:, 0], embedding[never, 0], embedding[2, 0] = 0.0, -20.0, ENDING
    model.save_pretrained(folder)


def their_search(folder: Path, stored: StoredModel, kind: str, line: str, **options) -> list[int]:
    """Theirs by `generate`, in headway's ids: the language is forced first, and nothing that headway never writes."""
    rows = rows_of(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    never = [rows[id_] for id_ in stored.target_tokenizer.never_generated] + [0, 1]

    class NeverThese(transformers.LogitsProcessor):
        def __call__(self, input_ids, scores):
            length = input_ids.shape[1]
            here = [] if length == 1 else [*never, 2] if length == 2 else never  # no translation is empty
            return scores.index_fill(1, torch.tensor(here, dtype=torch.long), -torch.inf)

    language = rows[stored.target_tokenizer.opening(f">>{':'.join(PAIRS[kind])}<<")[0]]
    [found] = model.generate(
        torch.tensor([[rows[id_] for id_ in ours(stored, kind, line)] + [2]]),
        forced_bos_token_id=language,
        forced_eos_token_id=None,
        do_sample=False,
        logits_processor=[NeverThese()],
        **options,
    ).tolist()
    return [rows.index(id_) for id_ in found[1:] if id_ not in (1, 2)]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_theirs_with_both_engines(folder, kind, beam_size, tmp_path, monkeypatch):
    """Without a length penalty: theirs divides by another power of the length."""
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    rows = rows_of(folder)
    make_ending(folder, [0, 1, *(rows[id_] for id_ in read_huggingface(folder).target_tokenizer.never_generated)])
    stored = read_huggingface(folder)
    save_model(tmp_path / "model", stored)
    by_engine = [
        Translator.load(tmp_path / "model", engine=engine, precision="fp32").translate(
            [f">>{':'.join(PAIRS[kind])}<< {line}" for line in LINES[:6]],
            beam_size=beam_size,
            max_length=60,
            length_penalty=0.0,
        )
        for engine in ("torch", "ctranslate2")
    ]
    for line, torchs, other in zip(LINES, *by_engine, strict=False):
        options = {"num_beams": beam_size, "length_penalty": 0.0, "max_new_tokens": 60}
        found = their_search(folder, stored, kind, line, **options, early_stopping=beam_size > 1 and "never")
        assert torchs._pieces.ids[1] == found
        assert other.text == torchs.text
        assert -1e-3 < other.score - torchs.score < 0.5  # CTranslate2 shares out what </s> has in the first place
        assert torchs.tokens[0].text == f"<<{PAIRS[kind][1]}>>"
    assert [one.stopped for one in by_engine[0]].count("eos") >= 3


def test_a_cut_vocabulary_keeps_the_translations_of_both_engines(folder, kind, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    rows, before = rows_of(folder), read_huggingface(folder)
    kept = needed_ids(before.source_tokenizer, LINES[:3])  # type: ignore[arg-type]
    lost = {*range(len(rows))} - kept
    assert lost
    make_ending(folder, [0, 1, *(rows[id_] for id_ in (*lost, *before.target_tokenizer.never_generated))])
    before = read_huggingface(folder)
    save_model(tmp_path / "cut", cut_model(before, LINES[:3]))
    texts = [f">>{':'.join(PAIRS[kind])}<< {line}" for line in LINES[:3]]
    by_engine = [
        one.translate(texts, beam_size=1, max_length=40)
        for one in (
            Translator(before, device="cpu"),
            Translator.load(tmp_path / "cut", engine="torch"),
            Translator.load(tmp_path / "cut", engine="ctranslate2", precision="fp32"),
        )
    ]
    assert [[one.text for one in found] for found in by_engine[1:]] == [[one.text for one in by_engine[0]]] * 2
    assert [one.tokens for one in by_engine[1]] == [one.tokens for one in by_engine[0]]
    assert any(len(one.tokens) > 1 for one in by_engine[0])  # more than that of the language
    cut = load_model(tmp_path / "cut")
    assert cut.config.source_vocab_size == len(kept)
    assert (cut.source_language, cut.source_tokenizer.target_tags) == (
        before.source_language,
        before.source_tokenizer.target_tags,
    )
    ids = torch.tensor(sorted(kept))
    source, target = torch.randint(4, len(ids), (2, 3, 20))
    with torch.inference_mode():
        wanted = before.model(ids[source], ids[target])[..., ids]
        torch.testing.assert_close(cut.model(source, target), wanted, rtol=0, atol=1e-4)


def named_tokens(splitter, **texts: str) -> list[str]:
    return splitter.convert_ids_to_tokens(splitter(**texts)["input_ids"])


def logits_of(folder: Path, source: list[str], target: list[str]) -> torch.Tensor:
    """Theirs, of named tokens, in the order of all names. (target length, vocabulary)"""
    splitter = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    read, given = (torch.tensor([splitter.convert_tokens_to_ids(one)]) for one in (source, target))
    with torch.inference_mode():
        logits = model(input_ids=read, attention_mask=torch.ones_like(read), decoder_input_ids=given).logits[0]
    return logits[:, splitter.convert_tokens_to_ids(sorted(splitter.get_vocab()))]


def test_an_export_is_the_folder_that_was_imported(folder, kind, tmp_path):
    """Token by token, whatever their ids are."""
    export_huggingface(read_huggingface(folder), tmp_path / "out")
    folders, pair = (folder, tmp_path / "out"), dict(zip(("src_lang", "tgt_lang"), PAIRS[kind], strict=True))
    before, after = (transformers.AutoTokenizer.from_pretrained(one, **pair) for one in folders)
    assert type(after) is type(before) is getattr(transformers, kind)
    assert type(transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")).__name__ == NAMES[kind]
    assert sorted(after.get_vocab()) == sorted(before.get_vocab())
    for line in [*LINES, UNSEEN]:
        for side in ("text", "text_target"):
            assert named_tokens(after, **{side: line}) == named_tokens(before, **{side: line})
    source, target = named_tokens(before, text=LINES[0]), ["</s>", *named_tokens(before, text_target=LINES[1])]
    found, expected = (logits_of(one, source, target) for one in (tmp_path / "out", folder))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_an_export_is_imported_as_the_same_model(folder, kind, tmp_path):
    stored = read_huggingface(folder)
    stored.decoding = {"beam_size": 3, "length_penalty": 0.6, "max_length": 27, "no_repeat_ngram": 3}
    export_huggingface(stored, tmp_path / "out")
    import_huggingface(tmp_path / "out", tmp_path / "back")
    back = load_model(tmp_path / "back")
    assert back.config == stored.config
    assert back.source_tokenizer.to_bytes() == stored.source_tokenizer.to_bytes()
    assert (back.source_language, back.decoding) == (stored.source_language, stored.decoding)
    weights, found = stored.weights(), back.weights()
    assert weights.keys() == found.keys()
    assert all((weights[name] == found[name]).all() for name in weights)


def changed(folder: Path, name: str, **fields) -> None:
    document = {**json.loads((folder / name).read_text()), **fields}
    (folder / name).write_text(json.dumps({key: value for key, value in document.items() if value is not None}))


def renamed(folder: Path, name: str, other: str) -> None:
    (folder / name).rename(folder / other)


def clipped(folder: Path) -> None:
    """Learned positions without the two rows that no token has."""
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    name = "model.encoder.embed_positions.weight"
    safetensors.torch.save_file({**weights, name: weights[name][2:].clone()}, folder / "model.safetensors")


def added_tokens(folder: Path, **tokens) -> None:
    changed(folder, "tokenizer_config.json", added_tokens_decoder={"7": "no object", **tokens})


DAMAGE = {
    "is a pickle": ("NllbTokenizer", lambda folder: renamed(folder, "model.safetensors", "pytorch_model.bin")),
    "sentencepiece.bpe.model: is missing": (
        "MBart50Tokenizer",
        lambda folder: (folder / "sentencepiece.bpe.model").unlink(),
    ),
    "vocab.json: is missing": ("M2M100Tokenizer", lambda folder: (folder / "vocab.json").unlink()),
    "vocab.json: doesn't begin with": ("M2M100Tokenizer", lambda folder: (folder / "vocab.json").write_text("{}")),
    "vocab.json: its ids are not the numbers": ("M2M100Tokenizer", lambda folder: changed(folder, "vocab.json", x="a")),
    "its tokenizer_class is ''": (
        "NllbTokenizer",
        lambda folder: changed(folder, "tokenizer_config.json", tokenizer_class=None),
    ),
    "tokenizer_class is 'MBartTokenizer'": (
        "MBart50Tokenizer",
        lambda folder: changed(folder, "tokenizer_config.json", tokenizer_class="MBartTokenizer"),
    ),
    "neither tokenizer_config.json nor": (
        "NllbTokenizer",
        lambda folder: changed(folder, "tokenizer_config.json", additional_special_tokens=None),
    ),
    "legacy_behaviour": (
        "NllbTokenizer",
        lambda folder: changed(folder, "tokenizer_config.json", legacy_behaviour=True),
    ),
    "are not 1, 2 and 2": ("NllbTokenizer", lambda folder: changed(folder, "config.json", decoder_start_token_id=0)),
    "tokens, but the model has 99": ("NllbTokenizer", lambda folder: changed(folder, "config.json", vocab_size=99)),
    "model_type 'bart'": ("MBart50Tokenizer", lambda folder: changed(folder, "config.json", model_type="bart")),
    "fc1.bias is .* the config wants": (
        "M2M100Tokenizer",
        lambda folder: changed(folder, "config.json", encoder_ffn_dim=64),
    ),
    "lacks model.decoder.layers.2": ("NllbTokenizer", lambda folder: changed(folder, "config.json", decoder_layers=3)),
    "embed_positions.weight is .* the config wants": ("MBart50Tokenizer", clipped),
    "has no matrix with vocab_size=1000000000000 rows": (
        "NllbTokenizer",
        lambda folder: changed(folder, "config.json", vocab_size=10**12),
    ),
    "invalid literal for int": ("NllbTokenizer", lambda folder: added_tokens(folder, x={"content": "eng_Latn"})),
    "neither .* names languages": (
        "NllbTokenizer",
        lambda folder: changed(folder, "tokenizer_config.json", additional_special_tokens=7),
    ),
    "languages have ids of other tokens": (
        "NllbTokenizer",
        lambda folder: added_tokens(folder, **{"5": {"content": "eng_Latn"}}),
    ),
    "ids of other tokens": ("NllbTokenizer", lambda folder: added_tokens(folder, **{"-3": {"content": "eng_Latn"}})),
    "surrogates not allowed": (
        "MBart50Tokenizer",
        lambda folder: changed(folder, "tokenizer_config.json", additional_special_tokens=["\ud800"]),
    ),
}


@pytest.mark.parametrize("reason", DAMAGE)
def test_what_can_not_be_imported_is_refused(reason, tmp_path):
    kind, damage = DAMAGE[reason]
    folder = tmp_path / "folder"
    folder.mkdir()
    write_random(folder, kind)
    damage(folder)
    with pytest.raises(UserError, match=reason) as refusal:
        import_huggingface(folder, tmp_path / "ours")
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "ours").exists()


@pytest.fixture
def imported(tmp_path) -> Path:
    """An imported NLLB folder, and beside it the folder itself."""
    (tmp_path / "folder").mkdir()
    write_random(tmp_path / "folder", "NllbTokenizer")
    import_huggingface(tmp_path / "folder", tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("export", [export_onnx, export_web, export_argos], ids=lambda one: one.__name__)
def test_exports_without_languages_on_both_sides_are_refused(export, imported, tmp_path):
    with pytest.raises(UserError):
        export(load_model(imported), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_languages_are_chosen_by_any_of_their_codes(imported):
    translator = Translator.load(imported)
    for given in ("eng_Latn:kor_Hang", "en:ko", "kor_Hang", "ko"):  # the model's own source language is English
        assert language_prefix(translator, given) == ">>eng_Latn:kor_Hang<< "
    assert language_prefix(translator, "zh-TW:pt-BR") == ">>zho_Hant:por_Latn<< "
    for wrong in ("xx", "xx:ko", "ko:xx", "en:ko:de"):
        with pytest.raises(UserError, match="the model translates into"):
            language_prefix(translator, wrong)
    for untagged in ("A cat.", ">>kor_Hang<< A cat.", ">>eng_Latn:xxx<< A cat."):
        with pytest.raises(UserError, match="begin each text with one of >>FROM:TO<<, such as >>eng_Latn:zul_Latn<<"):
            translator.translate([untagged])


def test_numbers_are_those_of_the_languages_that_the_tag_names(imported):
    one, texts = Translator.load(imported).texts, (">>kor_Hang:deu_Latn<< a", ">>eng_Latn:kor_Hang<< a")
    assert [one._pieces(text, ([], []), list).languages for text in texts] == [
        ("kor_Hang", "deu_Latn"),
        ("eng_Latn", "kor_Hang"),
    ]


def test_a_server_has_every_direction_and_describes_those_from_the_models_own_language(imported):
    pairs = Pairs([Translator.load(imported)])
    assert len(pairs) == 202 * 201
    assert pairs["kor_Hang", "deu_Latn"].prefix == ">>kor_Hang:deu_Latn<< "
    assert set(pairs.codes) == set(pairs.sources("kor_Hang")) | {"kor_Hang"}
    assert {(one.source, one.target) for one in pairs.shown} == {("eng_Latn", one) for one in pairs.targets("eng_Latn")}


def tuned(model: Path, run: Path, steps: int, rate: float, kind: str = "NllbTokenizer", **training) -> float:
    """Trains the model to translate half of the lines as the others; the validation loss at the end."""
    for name, lines in (("source.txt", LINES[:10]), ("target.txt", LINES[10:])):
        (run.parent / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = {"source": str(run.parent / "source.txt"), "target": str(run.parent / "target.txt")}
    files["tag"] = training.pop("tag", ":".join(PAIRS[kind]))
    options = {"learning_rate": rate, "warmup_steps": 0, "max_steps": steps, "precision": "fp32", "device": "cpu"}
    options |= {"schedule": "constant", "tokens_per_batch": 512, "init_from": str(model), **training}
    train_run(make_recipe({"data": {"train": files, "valid": files}, "training": options}), run, Reporter(quiet=True))
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [entry["valid_loss"] for entry in entries if "valid_loss" in entry][-1]


@torch.inference_mode()
def their_loss(folder: Path) -> float:
    """The loss of the same pairs in transformers, per token with the language's and </s>."""
    source, target = PAIRS["NllbTokenizer"]
    splitter = transformers.AutoTokenizer.from_pretrained(folder, src_lang=source, tgt_lang=target)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    losses = []
    for line, other in zip(LINES[:10], LINES[10:], strict=True):
        batch = splitter(line, text_target=other, return_tensors="pt")
        log_probabilities = model(**batch).logits[0].log_softmax(-1)  # (target length, vocabulary)
        losses += (-log_probabilities.gather(1, batch["labels"].T)).flatten().tolist()
    return sum(losses) / len(losses)


def their_translations(folder: Path, kind: str, beam_size: int) -> list[str]:
    """As users of transformers get them."""
    source, target = PAIRS[kind]
    splitter = transformers.AutoTokenizer.from_pretrained(folder, src_lang=source)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    options = {"num_beams": beam_size, "length_penalty": 0.0, "early_stopping": "never" if beam_size > 1 else False}
    options["max_new_tokens"] = MOST_TOKENS
    token = f"__{target}__" if kind == "M2M100Tokenizer" else target
    options["forced_bos_token_id"] = splitter.convert_tokens_to_ids(token)
    found = (model.generate(**splitter(line, return_tensors="pt"), **options)[0] for line in LINES)
    return [splitter.decode(ids, skip_special_tokens=True) for ids in found]


def test_fine_tuning_begins_with_their_loss_and_learns(imported, tmp_path):
    assert tuned(imported, tmp_path / "untouched", 1, 1e-12) == pytest.approx(their_loss(tmp_path / "folder"), rel=1e-4)
    save_model(tmp_path / "cut", cut_model(load_model(imported), LINES))
    assert tuned(tmp_path / "cut", tmp_path / "run", 120, 1e-2) < 0.2
    translator = Translator.load(tmp_path / "run")
    assert translator.info.source_language == "eng_Latn"
    found = translator.translate([f">>eng_Latn:kor_Hang<< {line}" for line in LINES[:10]], beam_size=2)
    assert sum(one.text == line for one, line in zip(found, LINES[10:], strict=True)) >= 7


def test_a_tuned_model_goes_back_and_translates_the_same(folder, kind, tmp_path, monkeypatch):
    """All weights are tuned, then an adapter. `export` counts the lines that its tool translates to the same, and
    transformers translates to this, too, as its users call it."""
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    import_huggingface(folder, tmp_path / "model")
    assert tuned(tmp_path / "model", tmp_path / "all", 120, 1e-2, kind) < 0.5
    assert tuned(tmp_path / "all", tmp_path / "run", 40, 2e-3, kind, adapter={"rank": 8}) < 0.5
    translator, tag = Translator.load(tmp_path / "run", engine="torch", precision="fp32"), ":".join(PAIRS[kind])
    assert translator.info.config == load_model(tmp_path / "model").config
    for name, lines in (("source", LINES), ("reference", LINES[10:] * 2)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = {}
    for tool in ("huggingface", "ctranslate2"):
        test_set = ("--source", tmp_path / "source", "--reference", tmp_path / "reference", "--target-language", tag)
        given = ("export", tmp_path / "run", "--to", tool, "--output", tmp_path / tool, *test_set)
        done = CliRunner().invoke(app, list(map(str, given)))
        assert done.exit_code == 0, done.exception
        found[tool] = re.search(r"BLEU (\S+) as exported, (\S+) in headway: .* (\d+) of 20", done.stdout).groups()
    for beam_size in (1, 4):
        ours = translator.translate([f">>{tag}<< {line}" for line in LINES], beam_size=beam_size, length_penalty=0.0)
        pairs = zip(ours, their_translations(tmp_path / "huggingface", kind, beam_size), strict=True)
        # others have no end there; how many there are depends on the processor that trained
        ended = [(one.text, other) for one, other in pairs if one.stopped == "eos" and len(one.tokens) < MOST_TOKENS]
        assert len(ended) >= 5
        assert all(one == other for one, other in ended)
        if beam_size == 1:
            bleu = f"{sacrebleu.corpus_bleu([one.text for one in ours], [LINES[10:] * 2]).score:.2f}"
            assert found == dict.fromkeys(found, (bleu, bleu, "20"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tag": ""}, "needs a tag with both of its languages, such as data.train.tag=eng_Latn:zul_Latn"),
        ({"tag": "kor_Hang"}, "has no tag for the target language kor_Hang"),
        ({"risk_samples": 4}, "risk_samples"),
    ],
)
def test_a_recipe_without_both_languages_is_refused(changes, reason, imported, tmp_path):
    with pytest.raises(UserError, match=reason):
        tuned(imported, tmp_path / "run", 1, 1e-3, **changes)
