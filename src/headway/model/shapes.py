"""The shapes of a model's weights, from its config alone: what a file of weights must hold, without torch."""

from headway.model.config import ModelConfig

Shape = tuple[int, ...]


def weight_shapes(config: ModelConfig) -> dict[str, Shape]:
    """The shape of each weight of `Transformer(config)` by its name; a shared one goes by the first of its names."""
    d_model, target = config.d_model, config.target_vocab_size
    shapes: dict[str, Shape] = {"source_embedding.weight": (config.source_vocab_size, d_model)}
    if config.share_embeddings != "all":
        shapes["target_embedding.weight"] = (target, d_model)
    if config.positions == "learned":
        table = (config.max_length, d_model)
        shapes |= {"source_positions.weight": table, "target_positions.weight": table}
    for stack, layers, d_ff in (
        ("encoder", config.encoder_layers, config.d_ff),
        ("decoder", config.decoder_layers, config.decoder_d_ff or config.d_ff),
    ):
        for layer in range(layers):
            shapes |= _layer(f"{stack}.layers.{layer}", d_model, d_ff, crosses=stack == "decoder")
        if config.norm == "pre":
            shapes |= _with_bias(f"{stack}.norm", d_model)
    if config.norm_embeddings:
        shapes |= _with_bias("source_norm", d_model) | _with_bias("target_norm", d_model)
    if config.share_embeddings == "none":
        shapes["output.weight"] = (target, d_model)
    if config.output_bias:
        shapes["output.bias"] = (target,)
    return shapes


def _layer(name: str, d_model: int, d_ff: int, *, crosses: bool) -> dict[str, Shape]:
    shapes = _with_bias(f"{name}.feed_forward.inner", d_ff, d_model) | _with_bias(
        f"{name}.feed_forward.outer", d_model, d_ff
    )
    for attention in ("self", "cross") if crosses else ("self",):
        for projection in ("query", "key", "value", "output"):
            shapes |= _with_bias(f"{name}.{attention}_attention.{projection}", d_model, d_model)
        shapes |= _with_bias(f"{name}.{attention}_residual.norm", d_model)
    return shapes | _with_bias(f"{name}.feed_forward_residual.norm", d_model)


def _with_bias(name: str, *shape: int) -> dict[str, Shape]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
