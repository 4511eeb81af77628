"""Attention maps: what rows and columns are called, pieces joined to words, and maps of somebody else's model."""

import numpy as np
import pytest
import torch

from headway.insight.maps import AttentionMaps, word_groups


def maps() -> AttentionMaps:
    """Two layers, one head; three source pieces that are two words, four target pieces that are three."""
    source, target = ["▁Hun", "d", "<eos>"], ["▁a", "▁do", "g", "<eos>"]
    shapes = {"encoder": (2, 1, 3, 3), "decoder": (2, 1, 4, 4), "cross": (2, 1, 4, 3)}
    random = np.random.default_rng(1)
    arrays = {kind: random.random(shape) for kind, shape in shapes.items()}
    arrays["decoder"] = np.tril(arrays["decoder"])
    return AttentionMaps(source, target, {kind: one / one.sum(-1, keepdims=True) for kind, one in arrays.items()})


@pytest.mark.parametrize(
    ("pieces", "groups"),
    [
        (["▁Hun", "d", "<eos>"], [[0, 1], [2]]),
        (["x", "▁y", "z", "."], [[0], [1, 2, 3]]),
        ([">>ko<<", "▁a"], [[0], [1]]),
        (["ein", "hund", "<eos>"], [[0], [1], [2]]),
        (["<s>", "a", "▁b", "c", "</s>"], [[0], [1], [2, 3], [4]]),
        (["▁", "<0xF0>", "<0x9F>", "<unk>", "a", "<eos>"], [[0, 1, 2], [3], [4], [5]]),
    ],
)
def test_words_begin_where_they_should(pieces, groups):
    assert word_groups(pieces) == groups


def test_pieces_joined_to_words_by_hand():
    one, words = maps(), maps().words()
    assert words.source == ["Hund", "<eos>"]
    assert words.target == ["a", "dog", "<eos>"]
    pieces = one.attention["cross"][1, 0]  # (4, 3)
    wanted = np.stack([pieces[:, :2].sum(-1), pieces[:, 2]], axis=-1)
    wanted = np.stack([wanted[0], wanted[1:3].mean(0), wanted[3]])
    np.testing.assert_allclose(words.attention["cross"][1, 0], wanted, rtol=1e-6)
    for kind, arrays in words.attention.items():
        np.testing.assert_allclose(arrays.sum(-1), 1.0, rtol=1e-6)
        queries, keys = words.labels(kind)
        assert arrays.shape[-2:] == (len(queries), len(keys))
    assert words.labels("decoder") == (["a", "dog", "<eos>"], ["<sos>", "a", "dog"])
    assert words.attention["decoder"][:, :, 0, 1:].sum() == 0.0


@pytest.mark.parametrize(
    ("target", "read", "keys"),
    [
        (["▁a", "▁do", "g", "</s>"], ["<pad>", "▁a", "▁do", "g"], ["<pad>", "a", "dog"]),
        (["▁a", "▁do", "g", "</s>"], None, ["<sos>", "a", "dog"]),
        (["▁a", "▁do", "g"], None, ["<sos>", "a", "do"]),
        (["▁a", "▁do", "g"], ["</s>", "<<ko>>", "▁a", "▁do"], ["</s>", "<<ko>>", "a", "do"]),
    ],
)
def test_words_of_another_model_keep_all_of_the_weights(target, read, keys):
    """Its symbols have other names, the target may lack its end, and the decoder may read a token more."""
    random = np.random.default_rng(1).random((1, 1, len(target), len(target) if read is None else len(read)))
    words = AttentionMaps(
        ["▁b", "</s>"], target, {"decoder": random / random.sum(-1, keepdims=True)}, read=read
    ).words()
    assert words.target == ["a", "dog", "</s>"][: 2 + ("</s>" in target)]
    assert words.labels("decoder")[1] == keys
    np.testing.assert_allclose(words.attention["decoder"].sum(-1), 1.0, rtol=1e-6)


def test_maps_of_a_layer_by_their_names():
    one = maps()
    weights = one.attention["cross"]
    mean = one.of_layer("cross", 2)
    assert list(mean) == ["encoder-decoder attention, layer 2, mean of its heads"]
    np.testing.assert_allclose(mean[next(iter(mean))], weights[1, 0])
    [(title, matrix)] = one.of_layer("decoder", 1, [1]).items()
    assert title == "decoder self-attention, layer 1, head 1"
    assert np.array_equal(matrix, one.attention["decoder"][0, 0])
    for layer, heads, missing in (
        (0, None, "layer 0"),
        (3, None, "layer 3"),
        (1, [1, 2], "head 2"),
        (1, [0], "head 0"),
    ):
        with pytest.raises(ValueError, match=rf"no {missing}: they are numbered 1 to \d"):
            one.of_layer("cross", layer, heads)


def test_maps_that_do_not_fit_their_pieces_are_refused():
    with pytest.raises(ValueError, match=r"cross attention of shape \(1, 2, 3, 4\) must be \(layers, heads, 3, 5\)"):
        AttentionMaps(["a"] * 5, ["b"] * 3, {"cross": np.ones((1, 2, 3, 4))})
    with pytest.raises(ValueError, match="encoder attention of shape"):
        AttentionMaps(["a"] * 2, [], {"encoder": np.ones((2, 2, 2, 2, 2))})
    with pytest.raises(ValueError, match="no layers"):
        AttentionMaps(["a"], ["b"], {"cross": []})


def test_a_hugging_face_model_has_maps_too():
    transformers = pytest.importorskip("transformers")
    config = transformers.MarianConfig(
        vocab_size=20,
        d_model=16,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=2,
        decoder_attention_heads=4,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        max_position_embeddings=16,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        attn_implementation="eager",
    )
    model = transformers.MarianMTModel(config).eval()
    source, read = torch.tensor([[5, 6, 7, 1]]), torch.tensor([[0, 8, 9]])
    with torch.inference_mode():
        seen = model(input_ids=source, decoder_input_ids=read, output_attentions=True)
    found = AttentionMaps(
        ["a", "b", "c", "</s>"],
        ["d", "e", "</s>"],
        {"encoder": seen.encoder_attentions, "decoder": seen.decoder_attentions, "cross": seen.cross_attentions},
        read=["<pad>", "d", "e"],
    )
    shapes = {kind: one.shape for kind, one in found.attention.items()}
    assert shapes == {"encoder": (2, 2, 4, 4), "decoder": (3, 4, 3, 3), "cross": (3, 4, 3, 4)}
    for kind, theirs in (("encoder", seen.encoder_attentions), ("cross", seen.cross_attentions)):
        for layer, weights in enumerate(theirs):
            assert np.array_equal(found.attention[kind][layer], weights[0].numpy())
    assert found.labels("decoder")[1] == ["<pad>", "d", "e"]
