"""The command line: one thin module a command, heavy imports inside the command.

Results go to standard output, everything else to standard error. Exit codes: 0; 2 for what the user can mend, in one
line; 1 for a defect of ours; 130 and 143 for a run that was ended by SIGINT or SIGTERM after saving.
"""

from __future__ import annotations

import os
import sys

import typer

from headway.cli import data, demo, evaluate, show, train, translate
from headway.errors import UserError

app = typer.Typer(
    name="headway",
    help='Train, run and open up the Transformer of "Attention Is All You Need".',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("show")(show.show)
app.command("data")(data.data)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from headway import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """The program `headway`."""
    sys.exit(_run())


def _run() -> int:
    try:
        return app(standalone_mode=False) or 0
    except UserError as error:
        return _complain(str(error))
    except BrokenPipeError:  # the reader of our output, such as `head`, went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not hasattr(error, "format_message"):  # not a complaint of the command-line parser
            raise
        message = error.format_message()  # type: ignore[attr-defined]
        return _complain(message or "no command given; try headway --help") if message else 0


def _complain(message: str) -> int:
    print(f"headway: {' '.join(message.split())}", file=sys.stderr)
    return 2
