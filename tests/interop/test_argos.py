"""What a package for Argos Translate holds, and that Argos gives our translations with it.

With argostranslate installed the package is installed and asked as its users do it; else it is done here as
`argostranslate.translate.apply_packaged_translation` (1.11.0) does it after it has split a text into sentences.
"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import sentencepiece
import torch

from headway.errors import UserError
from headway.interop.argos import export_argos
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel
from headway.text.subwords import SubwordTokenizer
from headway.text.words import WordTokenizer
from headway.translator import Translator

ctranslate2 = pytest.importorskip("ctranslate2")

LINES = ["the cat sat on the mat", "a dog ran after", "ein Hund läuft", "한글"] * 20
TEXTS = ["the cat sat", "a dog", "ein Hund läuft", "한글 mat", "the dog ran after a cat on the mat"]
SETTINGS = {"beam_size": 4, "length_penalty": 0.2}
"""Argos's, for one translation."""


def stored(source=None, target=None, languages=("de", "en"), **changes) -> StoredModel:
    source = source or SubwordTokenizer.train(LINES, "bpe", 300)
    target = target or source
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, **changes}
    model = Transformer(ModelConfig(source.vocab_size, target.vocab_size, **options)).eval()
    with torch.no_grad():
        model.target_embedding.weight.mul_(3)  # so that no two candidates are close
    return StoredModel(
        model=model,
        source_tokenizer=source,
        target_tokenizer=target,
        source_language=languages[0],
        target_language=languages[1],
        card="# A card\n",
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> tuple[StoredModel, Path]:
    torch.manual_seed(0)
    one = stored()
    file = tmp_path_factory.mktemp("argos") / "de-en.argosmodel"
    export_argos(one, file, "float32")
    return one, file


def installed(file: Path, folder: Path) -> Path:
    """As `argostranslate.package.install_from_path`."""
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    [package] = folder.iterdir()
    return package


def as_argos(package: Path, sentences: list[str], compute_type: str = "auto", **settings) -> list[str]:
    """As `apply_packaged_translation` for one hypothesis, with `SentencePieceTokenizer`. "auto" is Argos's type of
    numbers: int8 wherever the processor has it, also for weights that were saved otherwise."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(package / "model"), compute_type=compute_type, intra_threads=1)
    results = translator.translate_batch(
        [processor.encode(sentence, out_type=str) for sentence in sentences],
        target_prefix=None,
        replace_unknowns=True,
        max_batch_size=32,
        batch_type="tokens",
        num_hypotheses=1,
        return_scores=True,
        **{**SETTINGS, **settings},
    )
    texts = [processor.decode_pieces(result.hypotheses[0]) for result in results]
    return [text.replace("▁", " ").replace("_", " ").removeprefix(" ") for text in texts]


def test_what_is_in_it(package, tmp_path):
    one, file = package
    folder = installed(file, tmp_path)
    assert folder.name == "translate-de_en-1_0"
    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    languages = {"from_code": "de", "from_name": "German", "to_code": "en", "to_name": "English"}
    assert {name: metadata[name] for name in languages} == languages
    assert metadata["package_version"]
    assert metadata["argos_version"]
    assert (folder / "sentencepiece.model").read_bytes() == one.source_tokenizer.to_bytes()
    assert (folder / "README.md").read_text(encoding="utf-8") == "# A card\n"
    assert {path.name for path in folder.iterdir()} == {"metadata.json", "model", "sentencepiece.model", "README.md"}
    assert sorted(file.parent.iterdir()) == [file]


def test_it_translates_as_we_do(package, tmp_path):
    """With greedy search, which has no length penalty; Argos's own search is a beam of 4 with CTranslate2's."""
    one, file = package
    ours = Translator(one, device="cpu").translate(TEXTS, beam_size=1, max_length=30)
    never = [["<pad>"], ["<sos>"], ["<unk>"]]  # a model that has learned something gives them no probability
    folder = installed(file, tmp_path)
    options = {"beam_size": 1, "max_decoding_length": 30, "suppress_sequences": never}
    theirs = as_argos(folder, TEXTS, "float32", **options)
    wanted = [text.text.replace("\ufdd0", "▁").replace("▁", " ").replace("_", " ") for text in ours]
    assert [text.replace("\n", " ").replace("\r", " ") for text in theirs] == wanted


@pytest.mark.argos
def test_argos_itself_installs_and_runs_it(package, tmp_path):
    _, file = package
    homes = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("DATA", "CONFIG", "CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", ARGOS, file],
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        env={**os.environ, **homes},
        check=True,
    )
    names, theirs = json.loads(done.stdout)
    assert names == ["German", "English"]
    folder = installed(file, tmp_path / "here")
    assert theirs == [text for sentence in TEXTS for text in as_argos(folder, [sentence])]


ARGOS = """
import json, socket, sys

def refuse(*_):
    raise AssertionError("the network is not to be used")

socket.socket.connect = refuse
from argostranslate import package, translate

class Whole:
    def split_sentences(self, text):  # Argos fetches a splitter for the language when it first needs one
        return [text]

package.install_from_path(sys.argv[1])
one = translate.get_translation_from_codes("de", "en")
one.underlying.sentencizer = Whole()
names = [one.from_lang.name, one.to_lang.name]
print(json.dumps([names, [one.translate(text) for text in json.load(sys.stdin)]]))
"""


@pytest.mark.parametrize("max_length", [64, 1024])
def test_a_sentence_of_any_length_is_taken(max_length, tmp_path):
    """Argos cuts it to 1,024 pieces, whatever the model's own limit."""
    one = stored(max_length=max_length)
    export_argos(one, tmp_path / "x.argosmodel")
    [text] = as_argos(installed(tmp_path / "x.argosmodel", tmp_path / "here"), ["the cat sat " * 1000])
    assert text


def test_quantization_is_int8_unless_another_is_asked_for(package, tmp_path):
    one, file = package
    export_argos(one, tmp_path / "x.argosmodel")
    small, large = (
        installed(each, tmp_path / name) / "model" / "model.bin"
        for each, name in ((tmp_path / "x.argosmodel", "int8"), (file, "float32"))
    )
    assert small.stat().st_size < 0.7 * large.stat().st_size


UNFIT = {
    "word-level": lambda: stored(WordTokenizer.train(LINES, 20, 1, lowercase=True)),
    "one vocabulary": lambda: stored(
        SubwordTokenizer.train(LINES, "bpe", 300),
        SubwordTokenizer.train(LINES, "unigram", 290),
        share_embeddings="none",
    ),
    "tag": lambda: stored(SubwordTokenizer.train(LINES, "bpe", 300, ["ko", "en"])),
    "learned positions": lambda: stored(positions="learned", max_length=100),
    "code of a language": lambda: stored(languages=("../de", "en")),
    "model without layers": lambda: stored(encoder_layers=0),
}


@pytest.mark.parametrize("reason", UNFIT)
def test_what_has_no_place_there_is_refused(reason, tmp_path):
    with pytest.raises(UserError, match=reason):
        export_argos(UNFIT[reason](), tmp_path / "x.argosmodel")
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_the_file(tmp_path):
    with pytest.raises(UserError, match=r"ends in \.argosmodel"):
        export_argos(stored(), tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("code", "name"), [("ko", "Korean"), ("pt-BR", "Portuguese (Brazil)"), ("zt", "Chinese (Traditional)")]
)
def test_names_of_languages(code, name, tmp_path):
    export_argos(stored(languages=(code, "en")), tmp_path / "x.argosmodel")
    metadata = json.loads((installed(tmp_path / "x.argosmodel", tmp_path / "here") / "metadata.json").read_text())
    assert (metadata["from_code"], metadata["from_name"]) == (code, name)


@pytest.mark.parametrize("code", ["txt", "src", "source", "und"])
def test_what_is_no_language_is_refused(code, tmp_path):
    """Models trained on files without a language in their names have such ones."""
    with pytest.raises(UserError, match=f"'{code}' is none"):
        export_argos(stored(languages=("de", code)), tmp_path / "x.argosmodel")
    assert list(tmp_path.iterdir()) == []
