"""headway bench"""

from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.files import print_json, tell
from headway.cli.plan import recipe_of
from headway.errors import UserError
from headway.insight.terminal import draw_table


def bench(
    what: Annotated[Literal["train", "translate"], Argument(help="What is measured.")],
    changes: Annotated[list[str] | None, Argument(metavar="[key.path=value]...")] = None,
    preset: Annotated[str, Option(help="The model: textbook, tiny, small, base or big.")] = "base",
    device: options.Device = "auto",
    as_json: options.JsonOutput = False,
) -> None:
    """Measure this machine's speed at training or translating.

    torch.nn.Transformer and, where installed, Hugging Face's Marian and CTranslate2 are measured beside it, all with a
    preset's sizes, random weights and random text of 30 tokens a sentence. They take turns, each in a process of its
    own. The share of the peak is that of a product of two large matrices, measured in the same run.

    \b
    headway bench train --preset base
    headway bench train --preset big --device cuda --json
    headway bench translate --preset base decoding.beam_size=4
    headway bench train tokenizer.vocab_size=32000 training.tokens_per_micro_batch=8000
    """
    if wrong := next((one for one in changes or [] if "=" not in one), None):
        raise UserError(f"{wrong}: bench takes key.path=value, and --preset for the model")
    recipe = recipe_of([preset, f"training.device={device}", *(changes or [])])
    if what == "train":
        from headway.bench.training import bench_training as measure
    else:
        from headway.bench.translating import bench_translating as measure
    tell("notice: let nothing else run while this measures")
    found = measure(recipe, tell)
    if as_json:
        print_json(found)
        return
    typer.echo(f"{found['device']}, {found['products']}, peak of matrix products {found['peak_tflops']:.3g} TFLOP/s")
    typer.echo(
        draw_table(
            [("", "target tokens/s", "headway is times as fast", "of the peak", "MiB"), *map(_row, found["rows"])]
        )
    )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    name = f"{row['name']}, beam {row['beam_size']}" if "beam_size" in row else row["name"]
    if "failed" in row:
        return name, row["failed"]
    memory = row["memory_mib"]
    return (
        name,
        f"{row['target_tokens_per_second']:,.0f}",
        f"{row['headway_is_times_as_fast']:.2f}",
        f"{row['share_of_peak']:.1%}",
        "" if memory is None else f"{memory:,.0f}",
    )
