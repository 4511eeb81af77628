"""A model as ONNX Runtime runs it: two graphs and a loop around them (extra `onnx`).

encoder.onnx reads whole sources. decoder.onnx is one step with a cache, written here with the model's own layers: it
gives the logits that `Transformer.decode` gives for the last position. The loop, `onnx_translate.py`, goes into the
export as `translate.py` and needs neither torch nor headway.
"""

import copy
import hashlib
import logging
import shutil
import warnings
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, cast

import torch
from torch import Tensor, nn

from headway.decoding import SearchOptions
from headway.decoding.faithful import check_faithful, never_generated
from headway.errors import UserError
from headway.model import Transformer, padding_mask
from headway.model.attention import MultiHeadAttention, ScaledDotProductAttention
from headway.model.layers import DecoderLayer
from headway.storage import StoredModel
from headway.storage.atomic import write_directory, write_json
from headway.storage.model_directory import save_tokenizers

FORMAT_VERSION = 2
"""2: keys and values are rows of d_model; they were split into heads before."""
PACKAGES = ("onnx", "onnxruntime", "onnxscript")
WEIGHTS_FILE = "weights.bin"
LEAST_SHARED = 1024
"""Bytes from which on a tensor goes to the file of weights; a smaller one stays in its graph."""
LEAST_LENGTH = 8
"""Of `max_length`: the graphs are traced with sequences of a few pieces."""
DECODING = ("beam_size", "length_penalty", "max_length", "no_repeat_ngram")
"""Search options that the loop has."""
LOOP, README = (Path(__file__).with_name(name) for name in ("onnx_translate.py", "onnx_readme.md"))
"""What goes into every export."""

ENCODER_INPUTS = {"source": ("rows", "source_length")}
ENCODER_OUTPUTS = dict.fromkeys(("memory_keys", "memory_values"), ("layers", "rows", "source_length", "d_model"))
DECODER_INPUTS = {
    "tokens": ("rows",),
    **ENCODER_INPUTS,
    **ENCODER_OUTPUTS,
    **dict.fromkeys(("keys", "values"), ("layers", "rows", "length", "d_model")),
}
DECODER_OUTPUTS = {
    "logits": ("rows", "vocabulary"),
    **dict.fromkeys(("new_keys", "new_values"), ("layers", "rows", "length + 1", "d_model")),
}


def export_onnx(stored: StoredModel, output: Path) -> None:
    """Writes a folder with encoder.onnx, decoder.onnx, their weights, tokenizers, config.json, translate.py and
    README.md, whole or not at all. Raises UserError."""
    _check_packages()
    config = stored.model.config
    if config.decoder_layers == 0:
        raise UserError("ONNX: a decoder step needs at least one layer; model.decoder_layers is 0")
    if config.max_length < LEAST_LENGTH:
        raise UserError(f"ONNX: model.max_length is {config.max_length}, a graph needs at least {LEAST_LENGTH}")
    size = sum(parameter.nbytes for parameter in stored.model.parameters())
    with write_directory(output, size) as folder:
        _save_graphs(stored, folder)
        _save_rest(stored, folder)
        check_faithful(stored, OnnxModel(folder), "ONNX Runtime")


def _check_packages() -> None:
    for name in PACKAGES:
        try:
            import_module(name)
        except ImportError:
            raise UserError(f"{name} is not installed: pip install 'headway[onnx]'") from None


class EncoderGraph(nn.Module):
    """Sources to what each decoder layer's attention to them needs."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.embedding, self.encoder = model.source_embedding, model.encoder
        self.register_buffer("positions", model.source_positions(model.config.max_length).detach().clone())
        self.attentions = nn.ModuleList(layer.cross_attention for layer in _layers(model.decoder))
        self.pad_id = model.config.pad_id

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """source: (rows, source length), padded and with <eos>
        -> keys and values, (layers, rows, source length, d_model) each"""
        x = self.embedding(source) + cast(Tensor, self.positions)[: source.size(1)]
        memory = self.encoder(x, padding_mask(source, self.pad_id))
        attentions = cast(Iterable[MultiHeadAttention], self.attentions)
        keys, values = zip(*(attention.project_memory(memory) for attention in attentions), strict=True)
        return torch.stack(keys), torch.stack(values)


class DecoderGraph(nn.Module):
    """One token of each row to the logits of the next."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.embedding, self.decoder, self.output = model.target_embedding, model.decoder, model.output
        self.register_buffer("positions", model.target_positions(model.config.max_length).detach().clone())
        self.pad_id = model.config.pad_id

    def forward(
        self, tokens: Tensor, source: Tensor, memory_keys: Tensor, memory_values: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """tokens: (rows,), source: (rows, source length), memory: (layers, rows, source length, d_model),
        keys and values of the tokens before: (layers, rows, length, d_model)
        -> logits (rows, vocabulary), keys and values with this token's"""
        new_keys, new_values = [], []
        x = (self.embedding(tokens) + cast(Tensor, self.positions)[keys.size(2)])[:, None]  # (rows, 1, d_model)
        mask = padding_mask(source, self.pad_id)
        for index, layer in enumerate(_layers(self.decoder)):

            def attend_to_self(y: Tensor, layer: DecoderLayer = layer, index: int = index) -> Tensor:
                key, value = layer.self_attention.project_memory(y)
                new_keys.append(torch.cat([keys[index], key], dim=1))
                new_values.append(torch.cat([values[index], value], dim=1))
                return layer.self_attention.attend_to(y, new_keys[-1], new_values[-1])[0]

            def attend_to_memory(y: Tensor, layer: DecoderLayer = layer, index: int = index) -> Tensor:
                return layer.cross_attention.attend_to(y, memory_keys[index], memory_values[index], mask)[0]

            x = layer.self_residual(x, attend_to_self)
            x = layer.cross_residual(x, attend_to_memory)
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return self.output(self.decoder.norm(x))[:, 0], torch.stack(new_keys), torch.stack(new_values)


def _readable(model: Transformer) -> Transformer:
    """A copy on the CPU whose attention goes by its readable lines, which are plain products and sums in the graph."""
    model = copy.deepcopy(model).cpu()
    for module in model.modules():
        if isinstance(module, ScaledDotProductAttention):
            module.fused = False
    return model


def _layers(decoder: nn.Module) -> Iterable[DecoderLayer]:
    return cast(Iterable[DecoderLayer], cast(nn.Module, decoder.layers))


def _save_graphs(stored: StoredModel, folder: Path) -> None:
    model, config = _readable(stored.model).eval(), stored.model.config
    sizes = {"rows": 2, "source_length": 3, "length": 4, "layers": config.decoder_layers, "d_model": config.d_model}
    limits = {"rows": None, "source_length": config.max_length, "length": config.max_length - 1}
    dimensions = {name: torch.export.Dim(name, min=0, max=limit) for name, limit in limits.items()}
    places: dict[str, tuple[int, int]] = {}
    with open(folder / WEIGHTS_FILE, "wb") as weights:
        for name, graph, inputs, outputs in (
            ("encoder", EncoderGraph(model), ENCODER_INPUTS, ENCODER_OUTPUTS),
            ("decoder", DecoderGraph(model), DECODER_INPUTS, DECODER_OUTPUTS),
        ):
            proto = _converted(graph.eval(), sizes, dimensions, inputs, list(outputs))
            _move_weights(proto, weights, places)
            (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())


def _converted(
    graph: nn.Module,
    sizes: dict[str, int],
    dimensions: dict[str, Any],
    inputs: dict[str, tuple[str, ...]],
    outputs: list[str],
) -> Any:
    """The graph as a ModelProto of ONNX, all its weights inside; traced at `sizes`, with some `dimensions` dynamic."""
    examples = tuple(
        torch.zeros([sizes[name] for name in shape], dtype=torch.float32 if len(shape) == 4 else torch.long)
        for shape in inputs.values()
    )
    shapes = {
        input_: {place: dimensions[name] for place, name in enumerate(shape) if name in dimensions}
        for input_, shape in inputs.items()
    }
    names: dict[str, Any] = {"input_names": list(inputs), "output_names": outputs}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # its notices and warnings are about itself
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(graph, examples, dynamo=True, verbose=False, dynamic_shapes=shapes, **names)
    assert program is not None
    proto = program.model_proto
    for part in (*proto.graph.node, *proto.graph.value_info, *proto.graph.input, *proto.graph.output):
        part.ClearField("metadata_props")  # where in which file it was traced
    return proto


def _move_weights(proto: Any, weights: IO[bytes], places: dict[str, tuple[int, int]]) -> None:
    """Takes the tensors out of the graph and into the file; one that is there already is not written again."""
    from onnx.external_data_helper import set_external_data

    for tensor in proto.graph.initializer:
        data = tensor.raw_data
        if len(data) >= LEAST_SHARED:
            key = hashlib.sha256(data).hexdigest()
            if key not in places:
                places[key] = weights.tell(), weights.write(data)
            offset, length = places[key]
            set_external_data(tensor, WEIGHTS_FILE, offset, length)
            tensor.ClearField("raw_data")


def _save_rest(stored: StoredModel, folder: Path) -> None:
    config, options = stored.model.config, SearchOptions(**stored.decoding)
    document = {
        "format_version": FORMAT_VERSION,
        "source_language": stored.source_language,
        "target_language": stored.target_language,
        "tokenizer": save_tokenizers(folder, stored.source_tokenizer, stored.target_tokenizer),
        "pad_id": config.pad_id,
        "bos_id": config.bos_id,
        "eos_id": config.eos_id,
        "never_generated": never_generated(stored),
        "max_length": config.max_length,
        "decoding": {name: getattr(options, name) for name in DECODING},
        "encoder.onnx": {"inputs": ENCODER_INPUTS, "outputs": ENCODER_OUTPUTS},
        "decoder.onnx": {"inputs": DECODER_INPUTS, "outputs": DECODER_OUTPUTS},
        "versions": {name: version(name) for name in ("headway", "torch", *PACKAGES)},
    }
    write_json(folder / "config.json", document)
    shutil.copyfile(LOOP, folder / "translate.py")
    readme = README.read_text(encoding="utf-8")
    for word, language in (("SOURCE", stored.source_language), ("TARGET", stored.target_language)):
        readme = readme.replace(word, language)
    (folder / "README.md").write_text(f"{readme}{stored.card}", encoding="utf-8")


class OnnxModel:
    """What was exported. It needs onnxruntime."""

    def __init__(self, folder: Path) -> None:
        from headway.interop import onnx_translate

        self._loop, self._model = onnx_translate, onnx_translate.Model(folder, threads=1)

    def translate(self, source: list[int], max_length: int) -> list[int]:
        [[best, *_]] = self._loop.beam_search(self._model, [source], [max_length], beam_size=1, alpha=0.0)
        return best.ids

    def score(self, source: list[int], target: list[int]) -> list[float]:
        model, state = self._model, self._model.start([source])
        pairs = zip([model.bos_id, *target], [*target, model.eos_id], strict=True)
        return [float(self._loop.log_softmax(model.logits(state, [read]))[0, given]) for read, given in pairs]
