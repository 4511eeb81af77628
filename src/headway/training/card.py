"""The model card, README.md of a model directory: what it was trained on, how, and how good it is."""

from __future__ import annotations

from headway.evaluation import Scores
from headway.model import ModelConfig
from headway.training.checkpoint import Progress
from headway.training.recipe import Recipe


def model_card(recipe: Recipe, config: ModelConfig, progress: Progress, valid_loss: float, scores: Scores) -> str:
    """Markdown for people; every figure was measured in this run."""
    data, training = recipe.data, recipe.training
    files = ", ".join(
        " / ".join(file.name for file in pair)
        for corpus in data.corpora
        for pair in (zip(corpus.source, corpus.target, strict=True) if corpus.target else zip(corpus.source))
    )
    size = (
        f"d_model {config.d_model}, {config.encoder_layers} + {config.decoder_layers} layers, "
        f"{config.num_heads} heads, d_ff {config.d_ff}"
    )
    vocabulary = f"{recipe.tokenizer.kind}, {config.source_vocab_size:,} source and {config.target_vocab_size:,} target"
    objective = (
        f"minimum-risk training, {training.risk_samples} samples a sentence"
        if training.risk_samples
        else f"label smoothing {training.label_smoothing}"
    )
    average = f", moving average of the weights {training.ema_decay}" if training.ema_decay else ""
    optimizer = (
        f"{training.optimizer.capitalize()}, schedule {training.schedule}, {training.tokens_per_batch:,} tokens a "
        f"step, padding included, {objective}{average}"
    )
    start = "" if training.init_from is None else f"| starts from | {_in_cell(training.init_from.name)} |\n"
    writers = ", ".join(dict.fromkeys(one.writer.name for one in data.syntheses))
    translated = f"| text translated by | {_in_cell(writers)} |\n" if writers else ""
    domain = f"| domain | {_in_cell(data.domain)} |\n" if data.domain else ""
    work = "unknown" if progress.flops is None else f"{progress.flops / 1e15:.4g} PFLOP"
    return f"""# Translation from {data.source_language} to {data.target_language}

A Transformer (Vaswani et al., 2017) trained with headway.

| | |
|---|---|
{domain}{start}| training data | {files} |
{translated}| steps, epochs, minutes | {progress.step:,}, {progress.epoch + 1}, {progress.minutes:.1f} |
| matrix products in training, all stages | {work} |
| validation loss | {valid_loss:.4f} nats a token |
| validation BLEU | {scores.bleu:.2f} (`{_in_cell(scores.bleu_signature)}`) |
| validation chrF | {scores.chrf:.2f} (`{_in_cell(scores.chrf_signature)}`) |
| size | {size} |
| vocabulary | {vocabulary} |
| optimizer | {optimizer} |

Use it:

    headway translate THIS_FOLDER input.txt
"""


def _in_cell(text: str) -> str:
    """A bar would end the cell of a Markdown table, in code as well."""
    return text.replace("|", r"\|")
