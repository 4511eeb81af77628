"""The parameters, the work and the training memory of a model, computed from its config alone.

Work is 6 x weights in use x tokens: a multiplication and an addition for each weight of a matrix product in the forward
pass, and twice as many in the backward pass. Encoder weights work on source tokens, those of the decoder and the output
layer on target tokens, but for the keys and values that the decoder makes of the encoder's output. Looking up an
embedding isn't a product. The products of attention scores are counted separately.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from headway.text.batches import MicroBatch, row_shape

if TYPE_CHECKING:
    from headway.model.config import ModelConfig
    from headway.training.recipe import OptimizerName

Sharding = Literal["none", "full"]
"""`none`: each device holds everything (DDP). `full`: each holds a part of weights, gradients and optimizer (FSDP2)."""
FP32, BF16 = 4, 2
"""Bytes of a number."""
ADAM, MUON = 2, 1
"""Numbers that an optimizer keeps for each parameter."""
MUON_ROUNDS = 5
"""Rounds in which Muon orthogonalises a matrix, of three products each."""
LONGEST_PLAIN = 256
"""Most keys for which attention in bf16 on CPU keeps its weights (`kernels/attention.py`)."""
LOSS_BUFFER, ACCELERATOR_LOSS_BUFFER = 2**20, 2**26
"""Logits that the loss processes together (`kernels/cross_entropy.py`)."""


@dataclass(frozen=True)
class ParameterCount:
    """The parameters of a model, each counted once."""

    encoder: int
    """Weights of the encoder's matrix products."""
    decoder: int
    """Weights of the decoder's matrix products."""
    output: int
    """Weights of the output layer, including an embedding that shares them."""
    others: int
    """Biases, layer normalisation, learned positions, and embeddings that share no weights with a product."""

    @property
    def in_products(self) -> int:
        return self.encoder + self.decoder + self.output

    @property
    def total(self) -> int:
        return self.in_products + self.others


def count_parameters(config: ModelConfig) -> ParameterCount:
    """The parameters of `Transformer(config)`."""
    width = config.d_model
    encoder, encoder_others = _layer(width, config.d_ff, attentions=1)
    decoder, decoder_others = _layer(width, config.decoder_d_ff or config.d_ff, attentions=2)
    others = config.encoder_layers * encoder_others + config.decoder_layers * decoder_others
    if config.norm == "pre":
        others += 2 * 2 * width  # after each stack
    if config.positions == "learned":
        others += 2 * config.max_length * width
    if config.share_embeddings != "all":
        others += config.source_vocab_size * width
    if config.share_embeddings == "none":
        others += config.target_vocab_size * width
    if config.output_bias:
        others += config.target_vocab_size
    return ParameterCount(
        encoder=config.encoder_layers * encoder,
        decoder=config.decoder_layers * decoder,
        output=config.target_vocab_size * width,
        others=others,
    )


def _layer(width: int, inner: int, attentions: int) -> tuple[int, int]:
    """The weights of a layer's products, and its biases and norms."""
    products = attentions * 4 * width * width + 2 * width * inner
    biases = attentions * 4 * width + inner + width
    norms = (attentions + 1) * 2 * width
    return products, biases + norms


@dataclass(frozen=True)
class Work:
    """FLOPs. A multiplication and its addition count as two."""

    products: float
    """Products with weights."""
    scores: float
    """Products of attention: queries with keys, weights with values."""

    @property
    def total(self) -> float:
        return self.products + self.scores


def training_work(
    config: ModelConfig, source_tokens: float, target_tokens: float, source_length: float, target_length: float
) -> Work:
    """The work of a forward and a backward pass over these tokens, in sentences of these mean lengths."""
    once = forward_work(config, source_tokens, target_tokens, source_length, target_length)
    return Work(3 * once.products, 3 * once.scores)


def work_of_step(config: ModelConfig, micro_batches: Iterable[MicroBatch]) -> float:
    """FLOPs of the matrix products of an optimizer step, forward and backward. Padding counts like tokens, and a place
    is asked against all places of its row, because that is what is computed."""
    return sum(
        training_work(
            config,
            len(one.rows) * one.source_length,
            len(one.rows) * one.target_length,
            one.source_length,
            one.target_length,
        ).total
        for one in micro_batches
    )


def work_of_update(config: ModelConfig, optimizer: OptimizerName) -> float:
    """FLOPs of the matrix products with which an optimizer changes the weights once: only Muon has any."""
    if optimizer == "adam":
        return 0.0
    width = config.d_model
    square = config.encoder_layers * 4 + config.decoder_layers * 8
    work = square * _orthogonalizing(width, width)
    work += config.encoder_layers * 2 * _orthogonalizing(width, config.d_ff)
    return work + config.decoder_layers * 2 * _orthogonalizing(width, config.decoder_d_ff or config.d_ff)


def _orthogonalizing(*shape: int) -> float:
    """FLOPs for a matrix, of which each round takes the product with its transpose, that product's square, and the
    product of both with the matrix."""
    short, long = sorted(shape)
    return MUON_ROUNDS * 2.0 * short * short * (2 * long + short)


def forward_work(
    config: ModelConfig, source_tokens: float, target_tokens: float, source_length: float, target_length: float
) -> Work:
    """The work of a pass through encoder, decoder and output layer."""
    parameters = count_parameters(config)
    of_memory = 2 * config.d_model**2 * config.decoder_layers  # weights of the decoder that work on source tokens
    products = (parameters.encoder + of_memory) * source_tokens
    products += (parameters.decoder - of_memory + parameters.output) * target_tokens
    pairs_of_places = config.encoder_layers * source_tokens * source_length
    pairs_of_places += config.decoder_layers * target_tokens * (target_length + source_length)
    return Work(2.0 * products, 4.0 * config.d_model * pairs_of_places)


@dataclass(frozen=True)
class Memory:
    """Bytes on one device in a training step."""

    weights: float
    """Weights in fp32, as they are stored and updated."""
    gradients: float
    optimizer: float
    """Adam's two moments, and Muon's one."""
    average: float
    """The moving average of the weights."""
    copies: float
    """Weights in the precision of the products: autocast's copies, or with full sharding the gathered ones."""
    activations: float
    """What the forward pass keeps for the backward pass, including logits and the loss's buffers."""
    keeps_gradients: bool
    """Whether gradients exist while activations are at their largest."""

    @property
    def peak(self) -> float:
        """The most that a step needs at once. With one micro-batch on one device, gradients exist only after the
        activations are freed."""
        held = self.weights + self.optimizer + self.average + self.copies
        if self.keeps_gradients:
            return held + self.gradients + self.activations
        return held + max(self.gradients, self.activations)


def training_memory(
    config: ModelConfig,
    places: int,
    mean_lengths: tuple[float, float],
    *,
    bf16: bool,
    on_cpu: bool,
    devices: int = 1,
    sharding: Sharding = "none",
    micro_batches: int = 1,
    moving_average: bool = False,
    optimizer: OptimizerName = "adam",
) -> Memory:
    """The memory of one training device. places: those of a micro-batch, both sides. mean_lengths: of sources and of
    targets. bf16: whether products are in bf16, not fp32. micro_batches: per step."""
    parameters = count_parameters(config)
    share = 1 / devices if sharding == "full" else 1
    part = parameters.total * share
    by_muon = parameters.encoder + parameters.decoder if optimizer == "muon" else 0
    remembered = (ADAM * (parameters.total - by_muon) + MUON * by_muon) * share
    if sharding == "full":
        copies = _gathered(config, parameters, BF16 if bf16 else FP32)
    else:
        copies = BF16 * parameters.in_products if bf16 else 0
    return Memory(
        weights=FP32 * part,
        gradients=FP32 * part,
        optimizer=FP32 * remembered,
        average=FP32 * part if moving_average else 0,
        copies=copies,
        activations=activation_bytes(config, places, mean_lengths, bf16=bf16, on_cpu=on_cpu),
        keeps_gradients=devices > 1 or micro_batches > 1,
    )


def _gathered(config: ModelConfig, parameters: ParameterCount, width: int) -> float:
    """Bytes of the whole weights that each device holds with full sharding: for the whole step those outside of the
    layers, then two layers (one in use, the next one being gathered) and the gradient of one."""
    encoder = sum(_layer(config.d_model, config.d_ff, attentions=1))
    decoder = sum(_layer(config.d_model, config.decoder_d_ff or config.d_ff, attentions=2))
    largest = max(encoder, decoder)
    layers = config.encoder_layers + config.decoder_layers
    outside = parameters.total - config.encoder_layers * encoder - config.decoder_layers * decoder
    return width * (outside + min(2, layers) * largest) + FP32 * max(largest, outside)


def activation_bytes(
    config: ModelConfig, places: int, mean_lengths: tuple[float, float], *, bf16: bool, on_cpu: bool
) -> float:
    """What a forward pass over a micro-batch of so many places, of both sides, keeps for its backward pass."""
    source_row, target_row = row_shape(*mean_lengths, places)
    source_places = places * source_row / (source_row + target_row)
    target_places = places - source_places
    kept = _Kept(config, bf16=bf16, on_cpu=on_cpu)
    inner = config.decoder_d_ff or config.d_ff
    heads = config.decoder_num_heads or config.num_heads
    encoder = kept.self_attention(config.num_heads, source_row) + kept.feed_forward(config.d_ff)
    decoder = kept.self_attention(heads, target_row) + kept.cross_attention(heads, source_row)
    decoder += kept.feed_forward(inner)
    of_source = kept.embedding() + config.encoder_layers * encoder + config.decoder_layers * kept.memory()
    of_target = kept.embedding() + config.decoder_layers * decoder + kept.product * config.d_model
    logits = target_places * config.target_vocab_size
    buffer = min(logits, LOSS_BUFFER if on_cpu else ACCELERATOR_LOSS_BUFFER)
    return source_places * of_source + target_places * of_target + kept.product * logits + 2 * FP32 * buffer


class _Kept:
    """Bytes per place that a block keeps for its backward pass."""

    def __init__(self, config: ModelConfig, *, bf16: bool, on_cpu: bool) -> None:
        self.config = config
        self.product = BF16 if bf16 else FP32
        """Bytes of a number in a product."""
        self.drawn = 2 if on_cpu else 1
        """Bytes that dropout draws for a number."""
        self.bf16, self.on_cpu = bf16, on_cpu

    def embedding(self) -> float:
        return self._dropped(self.config.d_model)

    def self_attention(self, heads: int, keys: int) -> float:
        """Inputs, queries, keys, values, weights, heads. Autocast makes a separate input for each of three layers."""
        inputs = 3 if self.bf16 else 1
        return self.product * (inputs + 4) * self.config.d_model + self._weights(heads, keys) + self._residual()

    def cross_attention(self, heads: int, keys: int) -> float:
        """The target side: input, queries, weights, heads."""
        return self.product * 3 * self.config.d_model + self._weights(heads, keys) + self._residual()

    def memory(self) -> float:
        """The source side of a decoder layer: inputs of keys and of values, keys, values."""
        return self.product * (4 if self.bf16 else 2) * self.config.d_model

    def feed_forward(self, inner: int) -> float:
        """Input and hidden layer. ReLU's gradient needs only its result, that of other activations also their input."""
        hidden = self.product * inner * (1 if self.config.activation == "relu" else 2)
        if self.config.feedforward_dropout:
            hidden += (self.product + self.drawn) * inner
        return self.product * self.config.d_model + hidden + self._residual()

    def _residual(self) -> float:
        """What dropout draws, and the sum that is normalised."""
        return self._dropped(self.config.d_model) + FP32 * self.config.d_model

    def _dropped(self, numbers: int) -> float:
        return self.drawn * numbers if self.config.dropout else 0

    def _weights(self, heads: int, keys: int) -> float:
        """The weights of attention. A fused kernel keeps a mask of floats instead."""
        dropped = bool(self.config.attention_dropout)
        if self.on_cpu and self.bf16 and keys <= LONGEST_PLAIN:
            padded = -(-keys // 16) * 16
            return heads * padded * (2 * self.product + self.drawn if dropped else self.product)
        if self.on_cpu and dropped:
            return heads * keys * (2 * self.product + self.drawn) + self.product * keys
        return self.product * keys
