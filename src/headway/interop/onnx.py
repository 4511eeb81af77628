"""A model for ONNX Runtime: two graphs and a loop around them (extra `onnx`).

encoder.onnx reads whole sources. decoder.onnx is one step with a cache, written here with the model's own layers: it
gives the logits that `Transformer.decode` gives for the last position. The loop, `onnx_translate.py`, goes into the
export as `translate.py` and needs neither torch nor headway.
"""

import copy
import hashlib
import logging
import shutil
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn

from headway.decoding import SearchOptions
from headway.decoding.faithful import check_faithful, never_generated
from headway.errors import UserError, needing_extra
from headway.model import ModelConfig, Transformer, padding_mask
from headway.model.attention import ScaledDotProductAttention
from headway.model.layers import DecoderLayer
from headway.storage import StoredModel
from headway.storage.atomic import write_directory, write_json
from headway.storage.model_directory import save_tokenizers

FORMAT_VERSION = 2
"""2: keys and values are rows of d_model; they were split into heads before."""
PACKAGES = ("onnx", "onnxruntime", "onnxscript")
WEIGHTS_FILE = "weights.bin"
LEAST_SHARED = 1024
"""Bytes of the smallest tensor in the file of weights; a smaller one stays in its graph."""

ENCODER_INPUTS = {"source": ("rows", "source_length")}
ENCODER_OUTPUTS = dict.fromkeys(("memory_keys", "memory_values"), ("layers", "rows", "source_length", "d_model"))
_CACHE = dict.fromkeys(("keys", "values"), ("layers", "rows", "length", "d_model"))
DECODER_INPUTS = {"tokens": ("rows",), **ENCODER_INPUTS, **ENCODER_OUTPUTS, **_CACHE}
_NEW_CACHE = dict.fromkeys(("new_keys", "new_values"), ("layers", "rows", "length + 1", "d_model"))
DECODER_OUTPUTS = {"logits": ("rows", "vocabulary"), **_NEW_CACHE}


def export_onnx(stored: StoredModel, output: Path) -> None:
    """Writes a folder with encoder.onnx, decoder.onnx, their weights, tokenizers, config.json, translate.py and
    README.md, whole or not at all. Raises UserError."""
    for name in PACKAGES:
        with needing_extra("onnx"):
            import_module(name)
    config = stored.model.config
    if stored.source_tokenizer.many_sources:
        raise UserError(
            "ONNX: its translate.py can't begin a translation with the token of a language, as this model's do"
        )
    if config.decoder_layers == 0:
        raise UserError("ONNX: a decoder step needs a layer with a cache; model.decoder_layers is 0")
    size = sum(parameter.nbytes for parameter in stored.model.parameters())
    with write_directory(output, size) as folder:
        _save_graphs(stored, folder)
        _save_rest(stored, folder)
        check_faithful(stored, lambda: OnnxModel(folder), "ONNX Runtime")


class _Graph(nn.Module):
    """The model, with the rows of all positions on one side."""

    positions: Tensor

    def __init__(self, model: Transformer, positions: Tensor) -> None:
        super().__init__()
        self.model: Any = model
        self.register_buffer("positions", positions.detach().clone())


class EncoderGraph(_Graph):
    """Sources to the keys and values for each decoder layer's attention to them."""

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """source: (rows, source length), padded and with <eos>
        -> keys and values, (layers, rows, source length, d_model) each"""
        x = self.model.source_norm(self.model.source_embedding(source) + self.positions[: source.size(1)])
        memory = self.model.encoder(x, padding_mask(source, self.model.config.pad_id))
        attentions = [layer.cross_attention for layer in self.model.decoder.layers]
        keys, values = zip(*((one.key(memory), one.value(memory)) for one in attentions), strict=True)
        return torch.stack(keys), torch.stack(values)


class DecoderGraph(_Graph):
    """One token of each row to the logits of the next."""

    def forward(
        self, tokens: Tensor, source: Tensor, memory_keys: Tensor, memory_values: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """tokens: (rows,), source: (rows, source length), memory: (layers, rows, source length, d_model),
        keys and values of the tokens before: (layers, rows, length, d_model)
        -> logits (rows, vocabulary), keys and values with this token's"""
        model, new_keys, new_values = self.model, [], []
        x = model.target_norm(model.target_embedding(tokens) + self.positions[keys.size(2)])
        x, mask = x[:, None], padding_mask(source, model.config.pad_id)  # x: (rows, 1, d_model)
        for index, layer in enumerate(model.decoder.layers):

            def attend_to_self(y: Tensor, layer: DecoderLayer = layer, index: int = index) -> Tensor:
                attention = layer.self_attention
                new_keys.append(torch.cat([keys[index], attention.key(y)], dim=1))
                new_values.append(torch.cat([values[index], attention.value(y)], dim=1))
                return attention.output(attention.core(attention.query(y), new_keys[-1], new_values[-1])[0])

            def attend_to_memory(y: Tensor, layer: DecoderLayer = layer, index: int = index) -> Tensor:
                attention = layer.cross_attention
                memory = memory_keys[index], memory_values[index]
                return attention.output(attention.core(attention.query(y), *memory, mask)[0])

            x = layer.self_residual(x, attend_to_self)
            x = layer.cross_residual(x, attend_to_memory)
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return model.output(model.decoder.norm(x))[:, 0], torch.stack(new_keys), torch.stack(new_values)


def _save_graphs(stored: StoredModel, folder: Path) -> None:
    model, most = copy.deepcopy(stored.model).cpu().eval(), stored.model.config.max_length
    for module in model.modules():
        if isinstance(module, ScaledDotProductAttention):
            module.fused = False  # its readable lines are plain products and sums in the graph
    places: dict[str, tuple[int, int]] = {}
    with open(folder / WEIGHTS_FILE, "wb") as weights:
        for name, graph, inputs, outputs in (
            ("encoder", EncoderGraph(model, model.source_positions(most)), ENCODER_INPUTS, ENCODER_OUTPUTS),
            ("decoder", DecoderGraph(model, model.target_positions(most)), DECODER_INPUTS, DECODER_OUTPUTS),
        ):
            proto = _converted(graph.eval(), model.config, inputs, list(outputs))
            _move_weights(proto, weights, places)
            (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())


def _converted(graph: nn.Module, config: ModelConfig, inputs: dict[str, tuple[str, ...]], outputs: list[str]) -> Any:
    """The graph as a ModelProto of ONNX, all its weights inside; traced at small sizes, with dynamic dimensions."""
    sizes = {"rows": 2, "source_length": 3, "length": 4, "layers": config.decoder_layers, "d_model": config.d_model}
    limits = {"rows": None, "source_length": config.max_length, "length": config.max_length - 1}
    dimensions = {name: torch.export.Dim(name, min=0, max=limit) for name, limit in limits.items()}
    examples = tuple(
        torch.zeros([sizes[name] for name in shape], dtype=torch.float32 if len(shape) == 4 else torch.long)
        for shape in inputs.values()
    )
    shapes = {
        input_: {place: dimensions[name] for place, name in enumerate(shape) if name in dimensions}
        for input_, shape in inputs.items()
    }
    options: Any = {"input_names": list(inputs), "output_names": outputs, "dynamo": True, "verbose": False}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # its notices and warnings are about itself
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        program = torch.onnx.export(graph, examples, dynamic_shapes=shapes, **options)
    assert program is not None
    proto = program.model_proto
    for part in (*proto.graph.node, *proto.graph.value_info, *proto.graph.input, *proto.graph.output):
        part.ClearField("metadata_props")  # where in which file it was traced
    return proto


def _move_weights(proto: Any, weights: IO[bytes], places: dict[str, tuple[int, int]]) -> None:
    """Moves the tensors from the graph to the file, equal ones once."""
    from onnx.external_data_helper import set_external_data

    for tensor in proto.graph.initializer:
        if len(data := tensor.raw_data) >= LEAST_SHARED:
            key = hashlib.sha256(data).hexdigest()
            if key not in places:
                places[key] = weights.tell(), weights.write(data)
            offset, length = places[key]
            set_external_data(tensor, WEIGHTS_FILE, offset, length)
            tensor.ClearField("raw_data")


def _save_rest(stored: StoredModel, folder: Path) -> None:
    config = stored.model.config
    document = {
        "format_version": FORMAT_VERSION,
        "source_language": stored.source_language,
        "target_language": stored.target_language,
        "tokenizer": save_tokenizers(folder, stored.source_tokenizer, stored.target_tokenizer),
        **{name: getattr(config, name) for name in ("pad_id", "bos_id", "eos_id")},
        "never_generated": never_generated(stored),
        "max_length": config.max_length,
        "decoding": SearchOptions(**stored.decoding).kept_by("onnx"),
        "encoder.onnx": {"inputs": ENCODER_INPUTS, "outputs": ENCODER_OUTPUTS},
        "decoder.onnx": {"inputs": DECODER_INPUTS, "outputs": DECODER_OUTPUTS},
        "versions": {name: version(name) for name in ("headway", "torch", *PACKAGES)},
    }
    write_json(folder / "config.json", document)
    here = Path(__file__).parent
    shutil.copyfile(here / "onnx_translate.py", folder / "translate.py")
    readme = (here / "onnx_readme.md").read_text(encoding="utf-8")
    readme = readme.replace("SOURCE", stored.source_language).replace("TARGET", stored.target_language)
    (folder / "README.md").write_text(f"{readme}{stored.card}", encoding="utf-8")


class OnnxModel:
    """An exported model, run by onnxruntime."""

    def __init__(self, folder: Path) -> None:
        from headway.interop import onnx_translate

        self._loop, self._model = onnx_translate, onnx_translate.Model(folder, threads=1)

    def translate(self, source: list[int], max_length: int, opening: Sequence[int] = ()) -> list[int]:
        assert not opening  # models with such translations are refused
        [[best, *_]] = self._loop.beam_search(self._model, [source], [max_length], beam_size=1, alpha=0.0)
        return best.ids

    def score(self, source: list[int], target: list[int]) -> list[float]:
        model, state = self._model, self._model.start([source])
        pairs = zip([model.bos_id, *target], [*target, model.eos_id], strict=True)
        return [float(self._loop.log_softmax(model.logits(state, [read]))[0, given]) for read, given in pairs]
