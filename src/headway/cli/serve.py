"""headway serve"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headway.cli.loading import load_translator
from headway.cli.options import Device, Engine, PrecisionOption
from headway.errors import UserError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Model or run directories.")],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 opens the server to the network.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 picks a free one.")] = 5000,
    api_keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keys, one a line; without one of them a request gets 403.")
    ] = None,
    rate_limit: Annotated[
        int, typer.Option(min=0, help="Requests a minute for each key, or address without keys; 0: no limit.")
    ] = 0,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Host that requests may name, too; may be given again. Default: loopback's own."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Pages of this origin may use the server; may be given again; * is all."),
    ] = None,
    trusted_proxy: Annotated[
        str, typer.Option(metavar="ADDRESS,...", help="Whose X-Forwarded-For is believed; default: nobody's.")
    ] = "",
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 1_000_000,
    max_characters: Annotated[int, typer.Option(min=1, help="Characters of a text.")] = 5_000,
    max_texts: Annotated[int, typer.Option(min=1, help="Texts of a request.")] = 32,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests at work at once; further ones get 503.")] = 256,
    queue: Annotated[int, typer.Option(min=1, help="Sentences that may wait; beyond, requests get 503.")] = 1024,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a request.")] = 30.0,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Sentences of all requests that go to the model together; 1: each alone.")
    ] = 64,
    cache: Annotated[int, typer.Option(min=0, help="Translated sentences that are kept; 0: none.")] = 10_000,
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    engine: Engine = "torch",
) -> None:
    """Serve one or more models over HTTP, in the shapes of LibreTranslate's API, with a page at /.

    \b
    headway serve runs/multi30k-de-en
    headway serve runs/multi30k-de-en runs/multi30k-en-de --engine ctranslate2 --port 8080
    headway serve runs/multi30k-de-en --host 0.0.0.0 --api-keys keys.txt --rate-limit 120
    """
    try:
        from headway.serving.server import bind
        from headway.serving.server import serve as run
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'headway[serve]'") from None
    from headway.serving.pairs import Pairs
    from headway.serving.service import Service
    from headway.serving.settings import Settings

    hosts = tuple(allowed_host or ())
    settings = Settings(
        max_body=max_body,
        max_characters=max_characters,
        max_texts=max_texts,
        timeout=timeout,
        max_requests=max_requests,
        queue=queue,
        batch_size=batch_size,
        cache_size=cache,
        rate_limit=rate_limit,
        api_keys=() if api_keys is None else _read_keys(api_keys),
        allowed_hosts=(*hosts, host, *LOOPBACK, "[::1]") if host in LOOPBACK else hosts,
        allowed_origins=tuple(allow_origin or ()),
    )
    taken = bind(host, port)
    pairs = Pairs(load_translator(model, device, precision, engine=engine) for model in models)
    for pair in pairs:
        typer.echo(f"headway: {pair.source} -> {pair.target} is loaded", err=True)
    service = Service(pairs, settings)
    service.warm_up()
    run(service, taken, trusted_proxy)


def _read_keys(path: Path) -> tuple[str, ...]:
    """The keys of a file. Raises UserError."""
    try:
        keys = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{path}: can't be read as text; give a file with a key on each line") from None
    if not keys:
        raise UserError(f"{path}: holds no key; put one on each line")
    return tuple(keys)
