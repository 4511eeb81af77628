"""The command line: thin commands, with heavy imports inside them.

Results go to standard output, everything else to standard error. Exit codes: 0; 2 for errors that the user can mend, in
one line; 1 for defects, or if the reader of the output went away; 130 and 143 if SIGINT or SIGTERM ended a run after
saving.
"""

import os
import sys

import typer
from typer import Option

from headway.cli import (
    bench,
    compare,
    demo,
    draw,
    evaluate,
    export,
    inspect,
    make,
    plan,
    prepare,
    serve,
    texts,
    train,
    translate,
)
from headway.cli.files import prepare_streams
from headway.errors import NEEDS_TORCH, UserError, said_briefly
from headway.storage.atomic import is_out_of_space

app = typer.Typer(
    name="headway",
    help='Train, run and open up the Transformer of "Attention Is All You Need".',
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("score")(evaluate.score)
app.command("calibrate")(make.calibrate)
app.command("average")(make.average)
app.command("check")(texts.check)
app.command("inspect")(inspect.inspect)
app.command("draw")(draw.draw)
app.command("serve")(serve.serve)
app.command("export")(export.export)
app.command("extend")(make.extend)
app.command("import")(make.import_)
app.command("aligner")(make.aligner)
app.command("shortlist")(make.shortlist)
app.command("show")(inspect.show)
app.command("data")(texts.data)
app.command("split")(texts.split)
app.command("plan")(plan.plan)
app.command("bench")(bench.bench)
app.command("prepare")(prepare.prepare)
app.command("perturb")(texts.perturb)


@app.callback(invoke_without_command=True)
def _no_command(
    context: typer.Context, version: bool = Option(False, "--version", help="Print the version and exit.")
) -> None:
    if version:
        from headway import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    prepare_streams()
    code = _run()
    if train.is_rank() or code > 128:
        # threads of torch may still work or hold tensors, on which the interpreter's own end would abort
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _run() -> int:
    try:
        code = app(standalone_mode=False)
        return code if isinstance(code, int) else 0
    except UserError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return _complain(f"`headway {sys.argv[1]}` {NEEDS_TORCH}")
    except OSError as error:
        if error.filename is None and not is_out_of_space(error):
            raise
        return _complain(f"{error.filename or 'output'}: {error.strerror}")
    except Exception as error:
        if not hasattr(error, "format_message"):  # not a complaint of the command-line parser
            raise
        error.message = said_briefly(error.message)  # type: ignore[attr-defined]  # typer checks with pydantic
        return _complain(error.format_message())  # type: ignore[attr-defined]


def _complain(message: str) -> int:
    # it may quote a file, whose control characters must not reach a terminal
    line = f"headway: {' '.join(message.split())}"
    print("".join(char if char.isprintable() else ascii(char)[1:-1] for char in line), file=sys.stderr)
    return 2
