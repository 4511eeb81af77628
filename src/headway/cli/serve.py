"""headway serve"""

import ipaddress
import os
import re
import signal
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.files import load_translator, tell, validation_pairs
from headway.devices import keep_few_matrix_kernels
from headway.errors import UserError, needing_extra
from headway.serving.settings import Limits, Settings

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine in the Host of a request."""
HOST = r"([a-z\d_-]+(\.[a-z\d_-]+)*|\[[\da-f:.]+\])"
ORIGIN = rf"\*|null|(?!https://.*:443$|http://.*:80$)[a-z][a-z\d+.-]*://{HOST}(:\d+)?"
"""Patterns of a host's name, and of an origin as browsers send it: without the scheme's own port."""
MOST_NAMED = 20
"""Language pairs that are named one by one when the models are loaded."""


def serve(
    context: typer.Context,
    models: Annotated[list[Path], Argument(metavar="MODEL...", help="Model or run directories.")],
    host: Annotated[str, Option(help="Address to listen at; 0.0.0.0 opens the server to the network.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen at; 0 picks a free one.")] = 5000,
    api_keys: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="File with one key per line. Limits for this key, as in --rate-limit, may follow it. Requests without "
            "a valid key get 403.",
        ),
    ] = None,
    metrics_key: Annotated[
        Path | None,
        Option(metavar="FILE", help="File with the key that GET /metrics needs. Default: any of --api-keys."),
    ] = None,
    rate_limit: Annotated[
        str,
        Option(
            metavar="N[/hour|/day],...",
            help="Units per minute for each key (or each address, without keys), such as 120, or 120/minute,5000/day; "
            "0: no limit. A request counts as a unit for every 1,000 characters times beam size, and at least one.",
        ),
    ] = "0",
    allowed_host: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Another host name for requests. May be repeated. Default: loopback names."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, Option(metavar="ORIGIN", help="Allow pages of this origin; * allows all. May be repeated.")
    ] = None,
    trusted_proxy: Annotated[str, Option(metavar="ADDRESS,...", help="Proxies whose X-Forwarded-For is trusted.")] = "",
    max_body: Annotated[int, Option(min=1, help="Maximum bytes of a request body.")] = Settings.max_body,
    max_characters: Annotated[int, Option(min=1, help="Maximum characters of a text.")] = Settings.max_characters,
    max_texts: Annotated[int, Option(min=1, help="Maximum texts in a request.")] = Settings.max_texts,
    max_sentences: Annotated[
        int, Option(min=1, help="Maximum sentences in a request; each alternative counts as one more.")
    ] = Settings.max_sentences,
    max_requests: Annotated[
        int, Option(min=1, help="Maximum requests in flight (else 503); one client may have a quarter (else 429).")
    ] = Settings.max_requests,
    queue: Annotated[int, Option(min=1, help="Maximum waiting sentences; further requests get 503.")] = Settings.queue,
    timeout: Annotated[float, Option(min=0.1, help="Time limit for a request, in seconds.")] = Settings.timeout,
    batch_size: Annotated[
        int, Option(min=1, help="Maximum sentences in a batch, from all requests together; 1: no batching.")
    ] = Settings.batch_size,
    cache_size: Annotated[int, Option("--cache", min=0, help="Cached sentences; 0: no cache.")] = Settings.cache_size,
    inspecting: Annotated[
        bool, Option("--inspect/--no-inspect", help="Whether requests may look inside the model (POST /inspect).")
    ] = Settings.inspecting,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    engine: options.Engine = "auto",
    threads: options.Threads = None,
) -> None:
    """Serve models over HTTP, with a web page.

    The API is compatible with LibreTranslate's; the page is at /.

    \b
    headway serve runs/multi30k-de-en
    headway serve runs/multi30k-de-en runs/multi30k-en-de --port 8080
    headway serve runs/multi30k-de-en --host 0.0.0.0 --api-keys keys.txt --rate-limit 120
    """
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # until requests are accepted there is nothing to wait for
    with needing_extra("serve"):
        from headway.serving.guard import host_name
        from headway.serving.server import bind, parse_proxies
        from headway.serving.server import serve as run
    from headway.serving.admission import parse_limits
    from headway.serving.memory import check_memory
    from headway.serving.pairs import Pairs
    from headway.serving.service import Service

    own = (f"[{host}]" if ":" in host else host, *LOOPBACK) if _is_loopback(host) else ()
    given = {one.name: context.params[one.name] for one in fields(Settings) if one.name in context.params}
    given["api_keys"] = {} if api_keys is None else _read_keys(api_keys)
    given["rate_limit"] = parse_limits(rate_limit)
    given["metrics_key"] = "" if metrics_key is None else next(iter(_read_keys(metrics_key)))
    for name in allowed_host or ():
        if not re.fullmatch(HOST, host_name(name), re.ASCII):
            raise UserError(f"--allowed-host {name}: must be a host's name, such as translate.example.org")
    for origin in allow_origin or ():
        if not re.fullmatch(ORIGIN, origin, re.ASCII):
            raise UserError(f"--allow-origin {origin}: must be * or an origin as browsers send it: https://example.org")
    hosts = (*(allowed_host or ()), *own)
    settings = Settings(**given, allowed_hosts=hosts, allowed_origins=tuple(allow_origin or ()))
    proxies = parse_proxies(trusted_proxy)
    taken = bind(host, port)
    keep_few_matrix_kernels()
    loaded = {load_translator(model, device, precision, engine, threads): validation_pairs(model) for model in models}
    for translator, validated in loaded.items():
        translator.domain = [source for source, _ in validated]
    pairs = Pairs(loaded, {} if settings.api_keys else loaded)  # the examples can be seen without a key
    for line in _loaded(pairs):
        tell(f"headway: {line}")
    service = Service(pairs, settings)
    tell(f"headway: {check_memory(loaded, settings, service.workers)}")
    service.warm_up()
    run(service, taken, proxies)


def _loaded(pairs: Collection[tuple[str, str]]) -> list[str]:
    if len(pairs) > MOST_NAMED:
        return [f"{len(pairs):,} language pairs are loaded"]
    return [f"{source} -> {target} is loaded" for source, target in pairs]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _read_keys(path: Path) -> dict[str, Limits | None]:
    """The keys in a file with their limits, one a line, without lines that begin with #. Raises UserError."""
    from headway.serving.admission import parse_limits

    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "is not text in UTF-8"
        raise UserError(f"{path}: {problem}; give a file with a key on each line") from None
    keys: dict[str, Limits | None] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            key, *limits = line.split(maxsplit=1)
            if key in keys:
                raise UserError(f"{path}:{number}: this key stands on an earlier line, too; keep one of the lines")
            try:
                keys[key] = parse_limits(limits[0]) if limits else None
            except UserError:  # which may quote a part of a key
                expected = "only limits may follow a key, such as 120/minute,5000/day; put one key on each line"
                raise UserError(f"{path}:{number}: {expected}") from None
    if not keys:
        raise UserError(f"{path}: holds no key; put one on each line")
    return keys
