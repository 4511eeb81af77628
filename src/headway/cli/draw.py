"""headway draw"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer
from typer import Argument, Option

from headway.cli import options
from headway.errors import UserError
from headway.insight.pictures import HeatMap, draw_curves, draw_heat_maps, save_picture
from headway.insight.terminal import draw_bars, draw_map, draw_numbers, draw_shades

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPERS_SCHEDULES = ((512, 4000), (512, 8000), (256, 4000))
"""d_model and warm-up steps of the paper's figure of schedules; the first is the base model's."""


def draw(
    context: typer.Context,
    what: Annotated[str, Argument(metavar="positions|masks|schedule", help="What to draw.")],
    output: Annotated[Path | None, options.output("Picture (.svg, .png). Default: text in the terminal.")] = None,
    max_length: Annotated[int | None, Option(min=2, max=1000, help="How many positions. Default: 50; masks 6.")] = None,
    d_model: Annotated[int | None, Option(min=2, max=2048, help="Dimensions. Default: 128; for schedule 512.")] = None,
    warmup_steps: Annotated[int | None, Option(min=1, help="Warm-up steps of the schedule. Default: 4000.")] = None,
    schedule: Annotated[
        str | None,
        Option(metavar="NAME", help="A `training.schedule`, drawn over five times its warm-up. Default: paper."),
    ] = None,
) -> None:
    """Draw positions, masks or the learning-rate schedule.

    Figures of the paper: the sines and cosines of positions, the masks, the learning rate over the steps.

    \b
    headway draw positions --max-length 4 --d-model 8
    headway draw positions --output positions.svg
    headway draw masks
    headway draw schedule --output schedule.png
    headway draw schedule --schedule wsd
    """
    options.check_picture(output)
    of_schedule = ("warmup_steps", "schedule")
    unused = {"positions": of_schedule, "masks": (*of_schedule, "d_model"), "schedule": ("max_length",)}
    if what not in unused:
        raise UserError(f"{what!r} is unknown; there are positions, masks and schedule")
    for name in unused[what]:
        if context.params[name] is not None:
            raise UserError(f"--{name.replace('_', '-')} has no meaning for {what}")
    as_text = output is None
    if what == "positions":
        drawn = _positions(max_length or 50, d_model or 128, as_text=as_text)
    elif what == "masks":
        drawn = _masks(max_length or 6, as_text=as_text)
    else:
        drawn = _schedule(d_model, warmup_steps, schedule or "paper", as_text=as_text)
    if output is None:
        typer.echo(drawn)
    else:
        save_picture(cast("Figure", drawn), output)


def _positions(length: int, d_model: int, *, as_text: bool) -> str | Figure:
    from headway.model.positions import sinusoidal_table

    table = sinusoidal_table(length, d_model).numpy()  # (length, d_model)
    rows, columns = list(map(str, range(length))), list(map(str, range(d_model)))
    if not as_text:
        chart = HeatMap("sinusoidal positions", table, rows, columns, "position", "dimension")
        return draw_heat_maps([[chart]], limits=(-1, 1), colours="sign", longest_edge=12)
    title = "sin(position / 10000^(2i/d)) in dimension 2i, cos in 2i + 1; rows are positions, columns dimensions"
    small = d_model <= 12
    return f"{title}\n\n{draw_numbers(table, rows, columns) if small else draw_shades((table + 1) / 2, rows)}"


def _masks(length: int, *, as_text: bool) -> str | Figure:
    import torch

    from headway.model import causal_mask, cross_mask, padding_mask, target_mask
    from headway.text.tokenizer import PAD_ID

    padded = max(1, length // 3)
    ids = torch.tensor([[4] * (length - padded) + [PAD_ID] * padded])
    source_mask = padding_mask(ids, PAD_ID)
    labels = [f"token {place + 1}" if place < length - padded else "<pad>" for place in range(length)]
    masks = {
        "padding: no query reads padding": source_mask,
        "look-ahead: no query reads what comes later": causal_mask(length),
        "decoder self-attention: both": target_mask(ids, PAD_ID),
        "encoder-decoder attention: source padding is hidden": cross_mask(source_mask),
    }
    values = {title: mask.expand(1, 1, length, length)[0, 0].numpy().astype(float) for title, mask in masks.items()}
    if as_text:
        return "\n\n".join(f"{title}\n\n{draw_map(mask, labels, labels)}" for title, mask in values.items())
    maps = [HeatMap(title, mask, labels, labels, "query", "key") for title, mask in values.items()]
    return draw_heat_maps([maps[:2], maps[2:]], limits=(0.0, 1.6), colour_bar=False)


def _schedule(d_model: int | None, warmup_steps: int | None, schedule: str, *, as_text: bool) -> str | Figure:
    from headway.recipe.recipe import Schedule
    from headway.training.rates import learning_rate, paper_peak

    if schedule not in get_args(Schedule):
        raise UserError(f"--schedule {schedule}: is unknown; there are {', '.join(get_args(Schedule))}")
    if d_model is not None and schedule != "paper":
        raise UserError(f"--d-model has no meaning for the schedule {schedule}")
    own = d_model or warmup_steps or schedule != "paper"
    chosen = [(d_model or 512, warmup_steps or 4000)] if own else PAPERS_SCHEDULES[: 1 if as_text else None]
    last = 5 * max(warmup for _, warmup in chosen)
    every = max(1, last // (40 if as_text else 1000))
    steps, curves = range(every if as_text else 1, last + 1, every), {}
    for size, warmup in chosen:
        name = f"{f'd_model {size}' if schedule == 'paper' else schedule}, {warmup:,} warm-up steps"
        peak = paper_peak(size, warmup) if schedule == "paper" else 1.0
        rates = [learning_rate(step, schedule, peak, warmup, 5 * warmup) for step in steps]  # type: ignore[arg-type]
        curves[name] = steps, rates
    if not as_text:
        return draw_curves({"learning rate": curves}, "step")
    [(name, (steps, rates))] = curves.items()
    source = "equation 3" if schedule == "paper" else "the highest is 1"
    bars = draw_bars(rates, [f"{step:,}" for step in steps], form=".3e")
    return f"learning rate after each step, {name} ({source})\n\n{bars}"
