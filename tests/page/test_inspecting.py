"""Inspecting: what a record says of a translation is what the translator says of it, as it is and edited."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sentencepiece import sentencepiece_model_pb2

from headway.errors import UserError
from headway.insight.analyses.head_importance import AskHeadImportance
from headway.insight.editing import edited_model
from headway.insight.maps import word_groups
from headway.insight.record import TranslationRecord
from headway.insight.what_if import HeadOff, LookAheadOff, PositionsOff, ScalingOff, SwapWords, usual_cases
from headway.model import Transformer
from headway.storage import Aligner, save_model
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import is_tag, language_token
from headway.translator import Translator
from tests.page.decoding import decoded
from tests.translator.test_translator import translator

SIZES = {"encoder_layers": 2, "decoder_layers": 3, "decoder_num_heads": 2, "output_bias": True}
TEXTS = ["the cat", "a dog ran after the cat", "the mat sat on the mat"]


def random_translator() -> Translator:
    """Its translations are of several lengths; some end by themselves."""
    torch.manual_seed(5)
    found = translator(**SIZES)
    with torch.no_grad():
        found.model.output.weight.mul_(4.0)
        found.model.output.bias[4:260] = -20.0  # single bytes
        found.model.output.bias[found.model.config.eos_id] = 3.5
    return Translator(replace(found.stored, decoding={"max_length": 12}), device="cpu")


@pytest.fixture(scope="module")
def door() -> Translator:
    return random_translator()


@pytest.fixture(scope="module")
def record(door) -> TranslationRecord:
    return door.inspect("a dog ran after the cat", cases=[[PositionsOff()], [SwapWords(first=1, second=5)]])


@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("text", TEXTS)
def test_the_translation_is_translates(door, text, beam_size):
    [wanted] = door.translate([text], beam_size=beam_size)
    found = door.inspect(text, beam_size=beam_size)
    assert found.target.text == wanted.text
    assert [(token.piece, token.start, token.end) for token in found.target.tokens[:-1]] == [
        (piece.text, piece.start, piece.end) for piece in wanted.tokens
    ]
    assert [token.piece for token in found.source.tokens[:-1]] == [piece.text for piece in wanted.source_tokens]
    assert found.source.pieces[-1] == found.target.pieces[-1] == "<eos>"
    assert found.score == pytest.approx(wanted.score, abs=1e-3)
    assert (found.beam is None) == (beam_size == 1)
    if found.beam is not None:
        step, number = found.beam.result
        assert found.beam.steps[step][number].score == pytest.approx(
            wanted.score if wanted.stopped == "eos" else sum(one.log_probability for one in found.steps[:-1]), abs=1e-3
        )


@pytest.mark.parametrize("text", TEXTS)
def test_alignment_is_where_the_model_reads(door, text):
    best = door.translate([text], beam_size=3, n_best=2)[0]
    cross = torch.from_numpy(np.stack(door.inspect(text, beam_size=3).attention["cross"]))  # (layers, heads, m, n)
    read = cross.mean((0, 1))[:-1, :-1].max(-1).indices.tolist()  # without the rows and columns of <eos>
    assert best.alignment == read
    for one in (best, *best.alternatives):
        assert len(one.alignment) == len(one.tokens) > 0
        assert max(one.alignment) < len(one.source_tokens)


def test_what_was_not_translated_is_not_aligned(door):
    assert [one.alignment for one in door.translate(["", "x" * 100_000])] == [[], []]


def test_probabilities_are_those_of_the_logits(door, record):
    logits = torch.from_numpy(record.arrays["logits"])
    log_probabilities = logits.log_softmax(-1)
    assert len(record.steps) == len(record.target.tokens) == len(logits)
    for row, id_, step in zip(log_probabilities, record.target.ids, record.steps, strict=True):
        values, best = row.topk(10)
        assert step.ids == best.tolist()
        assert step.probabilities == pytest.approx(values.exp().tolist(), rel=1e-4)
        assert step.log_probability == pytest.approx(row[id_].item(), abs=1e-4)
        assert step.rank == int((row > row[id_]).sum())
    [score] = door.score([record.source.text], [record.target.text])
    retold = door.inspect(record.source.text, record.target.text)
    assert retold.score == pytest.approx(score, abs=1e-3)
    assert (retold.beam, retold.alternatives, retold.target.text) == (None, [], record.target.text)


def test_every_attention_map(record):
    source, target = len(record.source.tokens), len(record.target.tokens)
    assert record.attention["encoder"].shape == (2, 4, source, source)
    assert record.attention["decoder"].shape == (3, 2, target, target)
    assert record.attention["cross"].shape == (3, 2, target, source)
    for maps in record.attention.values():
        np.testing.assert_allclose(maps.sum(-1), 1.0, atol=1e-5)
    assert np.triu(record.attention["decoder"], 1).max() == 0.0
    assert [[len(layer) for layer in record.heads[kind]] for kind in ("encoder", "cross")] == [[4] * 2, [2] * 3]


def test_alternatives_are_other_finished_translations(door):
    found = door.inspect(TEXTS[1], beam_size=6)
    wanted = door.translate([TEXTS[1]], beam_size=6, n_best=6)[0]
    others = {one.text: one.score for one in wanted.alternatives}
    assert found.alternatives
    for one in found.alternatives:
        assert one.text != wanted.text
        assert others.get(one.text, one.score) == pytest.approx(one.score, abs=1e-3)


def score_without_mask(model, source: list[int], target: list[int]) -> float:
    """Of the target, each token after those before it alone, which see each other."""
    read = [model.config.bos_id, *target[:-1]]
    with torch.inference_mode():
        memory = model.encode(torch.tensor([source]))
        logits = [model.output(model.decode(torch.tensor([read[: at + 1]]), memory))[0, -1] for at in range(len(read))]
    return sum(float(one.log_softmax(-1)[token]) for one, token in zip(logits, target, strict=True))


@pytest.mark.parametrize(
    "edits",
    [
        [HeadOff(attention="cross", layer=1, head=0)],
        [PositionsOff(), ScalingOff()],
        [LookAheadOff()],
        [SwapWords(first=0, second=3)],
        [SwapWords(first=0, second=3), HeadOff(attention="encoder", layer=1, head=3)],
    ],
)
def test_an_edited_record_is_of_the_edited_model(door, edits):
    text = TEXTS[1]
    [before] = door.translate([text])
    found = door.inspect(text, edits=edits)
    assert (found.edits, found.before.text, found.target_given) == (edits, before.text, False)
    assert found.before.score == pytest.approx(before.score, abs=1e-3)
    swapped = "after dog ran a the cat" if SwapWords(first=0, second=3) in edits else text
    assert (found.source.text, found.original_text) == (swapped, text)
    assert found.to_dict("none")["source"]["original"] == text
    if edits == [LookAheadOff()]:
        assert found.score == pytest.approx(
            score_without_mask(door.model, found.source.ids, found.target.ids), abs=1e-3
        )
        step, number = found.beam.result
        candidate = found.beam.steps[step][number]
        assert candidate.fate == "finished", "or the next line says nothing"
        assert candidate.score == pytest.approx(found.score, abs=1e-3)
    else:
        other = Translator(replace(door.stored, model=edited_model(door.model, edits)), device="cpu")
        [after] = other.translate([swapped])
        assert (found.target.text, found.score) == (after.text, pytest.approx(after.score, abs=1e-3))
    elsewhere = door.inspect(text, cases=[edits])
    [case] = elsewhere.cases
    assert (case.source, case.after.text) == (swapped, found.target.text)
    assert case.after.score == pytest.approx(found.score, abs=1e-3)
    assert elsewhere.target.text == before.text
    given = door.inspect(text, before.text, edits=edits)
    assert given.target_given
    assert given.to_dict("none")["target"]["given"] is True
    retold = door.inspect(text, before.text)
    if retold.target.ids == elsewhere.target.ids:
        assert case.before.score == pytest.approx(given.score, abs=1e-3)
    assert given.before.score == pytest.approx(retold.score, abs=1e-3)
    [again] = door.translate([text])
    assert again == before


@pytest.mark.parametrize("edits", [[], [PositionsOff()], [LookAheadOff()]], ids=str)
def test_words_have_the_probabilities_of_their_tokens(door, edits):
    [case] = door.inspect(TEXTS[1], cases=[edits]).cases
    edited = door.inspect(TEXTS[1], edits=edits)
    groups = word_groups(edited.target.pieces)[:-1]
    wanted = [math.exp(sum(edited.steps[place].log_probability for place in group)) for group in groups]
    assert [word.probability for word in case.after.words] == pytest.approx(wanted, rel=1e-3)
    assert "".join(word.text for word in case.after.words) == edited.target.text.replace(" ", "")
    before = door.inspect(TEXTS[1])
    assert case.before.text == before.target.text
    given = door.inspect(TEXTS[1], before.target.text, edits=edits)
    if given.target.ids == before.target.ids:
        assert math.prod(word.probability for word in case.before.words) == pytest.approx(
            math.exp(given.score - given.steps[-1].log_probability), rel=1e-3
        )


def test_history_is_what_other_models_make_of_the_same(door, tmp_path):
    torch.manual_seed(9)
    earlier = translator(**SIZES)
    for name, one in (("step-00000001", earlier), ("step-00000012", door), ("latest", earlier)):
        save_model(tmp_path / name, one.stored)
    paths = sorted(tmp_path.iterdir())
    found = door.inspect(TEXTS[1], history=paths[::-1])
    assert [(moment.name, moment.step) for moment in found.history] == [
        ("step-00000001", 1),
        ("step-00000012", 12),
        ("latest", None),
    ]
    assert found.step is None
    loaded = Translator.load(tmp_path / "step-00000012", device="cpu").inspect(TEXTS[1])
    assert (loaded.step, loaded.to_dict("none")["inspected_step"]) == (12, 12)
    assert found.history[1].score == pytest.approx(found.score, abs=1e-3)
    for kind, maps in found.attention.items():
        np.testing.assert_allclose(found.past(1).attention[kind], maps, atol=1e-6)
        assert not np.allclose(found.past(0).attention[kind], maps, atol=1e-3)
    other = earlier.inspect(TEXTS[1], found.target.text)
    if other.target.ids == found.target.ids:
        np.testing.assert_allclose(found.past(0).attention["cross"], other.attention["cross"], atol=1e-6)
    document = found.to_dict()
    assert [one["step"] for one in document["history"]] == [1, 12, None]
    name = "history.0.decoder.layers.2.cross_attention.weights"
    np.testing.assert_allclose(decoded(document["arrays"], name), found.past(0).attention["cross"][2], atol=1e-3)
    stranger = translator(encoder_layers=1)
    save_model(tmp_path / "stranger", stranger.stored)
    with pytest.raises(UserError, match="another kind of model"):
        door.inspect(TEXTS[1], history=[tmp_path / "stranger"])


def test_what_can_not_be_inspected(door):
    for text in ("", "  "):
        with pytest.raises(UserError, match="0 tokens can't be inspected"):
            door.inspect(text)
    two = Translator(door.stored, ensemble=[door.stored], device="cpu")
    with pytest.raises(UserError, match="not into an ensemble"):
        two.inspect("the cat")
    empty = door.inspect("the cat", "")
    assert empty.target.pieces == ["<eos>"]
    assert empty.heads["decoder"][0][0].entropy == 0.0


def with_tags(door: Translator) -> Translator:
    """A model of the same sizes, whose tokenizer has tags."""
    lines = ["the cat sat on the mat", "a dog ran after"] * 20
    tokenizer = SubwordTokenizer.train(lines, "bpe", 292, ["de", "ko"])
    torch.manual_seed(7)
    config = replace(door.model.config, source_vocab_size=tokenizer.vocab_size, target_vocab_size=tokenizer.vocab_size)
    stored = replace(door.stored, model=Transformer(config), source_tokenizer=tokenizer, target_tokenizer=tokenizer)
    return Translator(stored, device="cpu")


@pytest.fixture(scope="module")
def tagged(door) -> Translator:
    return with_tags(door)


@pytest.mark.parametrize("tag", [">>de<<", "  >>ko<<  "])
def test_a_tag_is_a_token_and_no_word_of_the_text(tagged, tag):
    text = "a dog ran"
    [wanted] = tagged.translate([f"{tag} {text}"])
    record = tagged.inspect(f"{tag} {text}", cases="usual")
    assert record.target.text == wanted.text
    assert (record.source.text, record.original_text) == (text, text)
    first, *others, _ = record.source.tokens
    assert (first.piece, first.start, first.end) == (tag.strip(), 0, 0)
    assert "".join(text[one.start : one.end] for one in others) == text.replace(" ", "")
    assert all(one.piece.removeprefix("▁") == text[one.start : one.end] for one in others)
    swaps = {(swap.first, swap.second): case for case in record.cases if isinstance(swap := case.edits[-1], SwapWords)}
    assert swaps.keys() == {(0, 1), (1, 2), (0, 2)}
    assert swaps[0, 2].source == "ran dog a"
    assert swaps[0, 2].after.text == tagged.translate([f"{tag} ran dog a"])[0].text
    edited = tagged.inspect(f"{tag} {text}", edits=[SwapWords(first=0, second=1)])
    assert (edited.source.text, edited.source.pieces[0]) == ("dog a ran", tag.strip())
    sentences = record.order.sentences
    assert [one.text for one in record.order.with_positions] == [
        tagged.translate([f"{tag} {one}"])[0].text for one in sentences
    ]
    with pytest.raises(UserError, match="begin each text with one of >>de<< >>ko<<"):
        tagged.inspect(text)
    with pytest.raises(UserError, match="0 tokens can't be inspected"):
        tagged.inspect(tag)


def test_nothing_is_aligned_with_a_tag(tagged):
    """Even by a head that looks at it most."""
    text = ">>ko<< a dog ran after"
    target = tagged.inspect(text).target.text
    looked_at = tagged.inspect(text, target).attention["cross"][..., :-1].argmax(-1)  # (layers, heads, target)
    layer, head = np.argwhere((looked_at == 0).any(-1))[0].tolist()
    by_head = Translator(replace(tagged.stored, aligner=Aligner(layer, head)), device="cpu")
    record = by_head.inspect(text, target)
    assert 0 not in record.alignment
    [links] = by_head.align([text], [target], pieces=True)
    assert links == sorted((place, number) for number, place in enumerate(record.alignment[:-1]))


@pytest.fixture(scope="module")
def many(tagged) -> Translator:
    """The same model with a token for each language, which begins sources and translations."""
    model = sentencepiece_model_pb2.ModelProto.FromString(tagged.stored.source_tokenizer.to_bytes())
    for piece in (one for one in model.pieces if is_tag(one.piece)):
        piece.piece = language_token(piece.piece[2:-2])
    tokenizer = SubwordTokenizer(model.SerializeToString())
    return Translator(replace(tagged.stored, source_tokenizer=tokenizer, target_tokenizer=tokenizer), device="cpu")


def test_the_token_of_a_language_is_given_and_no_word(many):
    """It is written by nobody, so that its probability counts nowhere."""
    text = ">>de:ko<< a dog ran"
    [wanted] = many.translate([text], beam_size=2)
    record = many.inspect(text, beam_size=2, cases=[[]])
    assert record.target.pieces[0] == "<<ko>>"
    assert record.steps[0].log_probability == 0.0
    assert record.score == pytest.approx(wanted.score, abs=1e-3)
    [given] = many.score([text], [wanted.text])
    assert many.inspect(text, wanted.text).score == pytest.approx(given, abs=1e-3)
    [case] = record.cases
    assert case.before.score == pytest.approx(case.after.score, abs=1e-3)
    for one in (case.before, case.after):
        assert one.words
        assert all(word.text for word in one.words)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_is_never_its_language_alone(many, engine, beam_size, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    door = Translator(many.stored, device="cpu", engine=engine)
    [found] = door.translate([">>de:ko<< a dog ran"], beam_size=beam_size, max_length=1)
    assert [piece.text for piece in found.tokens][:1] == ["<<ko>>"]
    assert len(found.tokens) == 2
    assert math.isfinite(found.score)


def test_pairs_of_heads_have_languages_of_their_own(many):
    pairs = AskHeadImportance(pairs=[(">>ko:de<< the cat", "a dog")])
    one, other = (
        many.inspect(f"{tag} the mat", analyses=[pairs]).analyses.head_importance for tag in (">>ko:de<<", ">>de:ko<<")
    )
    assert one.log_probability == other.log_probability
    for kind in one.ablation:
        np.testing.assert_array_equal(one.ablation[kind], other.ablation[kind])


def test_the_usual_cases_are_those_of_a_page(door):
    record = door.inspect("the cat", cases="usual")
    assert [case.edits for case in record.cases] == usual_cases(door.model.config, "the cat")
    assert record.order == door.word_order("the cat")
