"""The whole model against torch.nn, its shapes and what it shares. Its invariants are in tests/properties."""

import pytest
import torch
from torch import nn

from headway.model import Decoder, Encoder, ModelConfig, Transformer, causal_mask


def tiny(**changes) -> Transformer:
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, "max_length": 40}
    config = ModelConfig(**{"source_vocab_size": 50, "target_vocab_size": 50, **options, **changes})
    return Transformer(config).eval()


VARIANTS = [
    {},
    {"norm": "pre"},
    {"positions": "learned"},
    {"share_embeddings": "none", "output_bias": True},
    {"decoder_num_heads": 2, "decoder_d_ff": 96, "decoder_layers": 1},
    {"activation": "swish"},
]


def ids(rows: int, length: int) -> torch.Tensor:
    return torch.randint(4, 50, (rows, length))


@torch.no_grad()
def copy_attention(ours, theirs):
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def test_stacks_equal_torch_transformer():
    """Our own stacks with their default sizes, and torch.nn.Transformer with its two final norms removed."""
    reference = nn.Transformer(dropout=0.0, batch_first=True).eval()
    assert sum(parameter.numel() for parameter in reference.parameters()) == 44_140_544
    reference.encoder.norm = reference.decoder.norm = None
    encoder, decoder = Encoder(512, 8, 2048, 6).eval(), Decoder(512, 8, 2048, 6).eval()
    assert sum(p.numel() for stack in (encoder, decoder) for p in stack.parameters()) == 44_138_496
    for ours, theirs in zip(encoder.layers, reference.encoder.layers, strict=True):
        copy_attention(ours.self_attention, theirs.self_attn)
        pairs = [(ours.feed_forward.inner, theirs.linear1), (ours.feed_forward.outer, theirs.linear2)]
        pairs += [(ours.self_residual.norm, theirs.norm1), (ours.feed_forward_residual.norm, theirs.norm2)]
        for module, copy in pairs:
            copy.load_state_dict(module.state_dict())
    for ours, theirs in zip(decoder.layers, reference.decoder.layers, strict=True):
        copy_attention(ours.self_attention, theirs.self_attn)
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        pairs = [(ours.feed_forward.inner, theirs.linear1), (ours.feed_forward.outer, theirs.linear2)]
        pairs += [(ours.self_residual.norm, theirs.norm1), (ours.cross_residual.norm, theirs.norm2)]
        pairs += [(ours.feed_forward_residual.norm, theirs.norm3)]
        for module, copy in pairs:
            copy.load_state_dict(module.state_dict())
    source, target = torch.randn(2, 7, 512), torch.randn(2, 5, 512)
    hidden = torch.arange(7) >= torch.tensor([7, 4])[:, None]
    mask = ~hidden[:, None, None]
    ours = decoder(target, encoder(source, mask), causal_mask(5), mask)
    theirs = reference(
        source,
        target,
        tgt_mask=~causal_mask(5)[0, 0],
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_shape(variant):
    model = tiny(**variant)
    assert model(ids(3, 6), ids(3, 5)).shape == (3, 5, 50)


def test_embeddings_are_scaled_by_the_root_of_the_width():
    model, source = tiny(), ids(1, 3)
    torch.testing.assert_close(model.source_embedding(source), model.source_embedding.weight[source] * 32**0.5)


@pytest.mark.parametrize(("sharing", "matrices"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_sharing(sharing, matrices):
    model = tiny(share_embeddings=sharing)
    weights = (model.source_embedding.weight, model.target_embedding.weight, model.output.weight)
    assert len({weight.data_ptr() for weight in weights}) == matrices
