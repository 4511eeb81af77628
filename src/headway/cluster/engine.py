"""Ray Data distributes the missing shards of a manifest to workers. Only the files in the folder say what is done."""

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from headway.cluster.manifest import Manifest, open_manifest
from headway.cluster.worker import ShardOutcome, Work, Worker
from headway.data.compressed import unchanged
from headway.devices import keep_few_matrix_kernels
from headway.errors import UserError, needing_extra
from headway.storage.atomic import remove_leftovers, try_lock
from headway.threads import use_one_thread
from headway.translator.lines import JobNotice

MOST_ROUNDS = 3
"""Times that a missing shard is tried."""
LOCAL_STORE = 200_000_000
"""Bytes of shared memory of a local Ray. Only numbers and results of shards go through it."""
PROGRESS_EVERY = 10.0
"""Seconds between two lines of progress."""


class Actor:
    """A worker as Ray Data calls it: the number of a shard in, its outcome out."""

    def __init__(self, work: Work, manifest: Manifest) -> None:
        """Keeps an error for the outcomes, because Ray would print a hundred lines for it."""
        use_one_thread()
        keep_few_matrix_kernels()
        self._shards, self._error = manifest.shards, ""
        try:
            self._worker = Worker(work, manifest)
        except UserError as error:
            self._error = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        shard = self._shards[int(batch["shard"][0])]
        failed = ShardOutcome(shard.name, error=self._error, for_user=True)
        return {"outcome": [json.dumps(asdict(failed if self._error else self._worker.translate(shard)))]}


def translate_on_cluster(
    work: Work,
    inputs: Sequence[Path],
    folder: Path,
    address: str,
    workers: int | None,
    notice: Callable[[JobNotice], None],
) -> int:
    """Translates the files into the folder and returns how many lines were left blank, including those of earlier runs.
    address: `local` starts a Ray of its own; any other is that of a running Ray. workers: None is one for each GPU, or
    each CPU if there is no GPU. Raises UserError."""
    ray = _ray()
    work.load("cpu")  # raises before anything is begun
    manifest = open_manifest(folder, inputs, work.identity(), notice)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not try_lock(descriptor):
            raise UserError(f"{folder}: another process is writing to it; wait until it ends, or stop it")
        remove_leftovers(folder)
        if manifest.missing():
            _connect(ray, address, workers)
            try:
                with unchanged(inputs):
                    _translate_missing(ray, work, manifest, workers, notice)
            finally:
                ray.shutdown()
    finally:
        os.close(descriptor)
    return manifest.failed()


def _translate_missing(
    ray: Any, work: Work, manifest: Manifest, workers: int | None, notice: Callable[[JobNotice], None]
) -> None:
    """Makes rounds until no shard is missing. In a round Ray restarts workers that died, and retries their shards; a
    shard that is lost even so has no outcome. Raises UserError if some are missing after MOST_ROUNDS."""
    errors: dict[str, str] = {}
    numbers = {shard.name: number for number, shard in enumerate(manifest.shards)}
    missing = manifest.missing()
    left = {shard.name: shard.span.lines for shard in missing}
    lines_missing, began, reported = sum(left.values()), time.monotonic(), time.monotonic()
    for again in ("; it will be retried",) * (MOST_ROUNDS - 1) + ("",):
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if work.device in ("auto", "cuda") else 0
        most = gpus or int(resources.get("CPU", 1))
        rows = [{"shard": numbers[shard.name]} for shard in missing]
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Actor,
            fn_constructor_args=(work, manifest),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(most, workers or most, len(rows))),
            num_cpus=1,
            num_gpus=1 if gpus else None,
        )
        for row in dataset.iter_rows():
            outcome = ShardOutcome(**json.loads(row["outcome"]))
            if outcome.for_user:
                raise UserError(outcome.error)
            if outcome.error:
                errors[outcome.name] = outcome.error
                notice(JobNotice(f"warning: {outcome.name}: {outcome.error}{again}"))
                continue
            for one in outcome.notices:
                notice(JobNotice(*one))
            left.pop(outcome.name, None)
            if not left or time.monotonic() > reported + PROGRESS_EVERY:
                reported, lines_left = time.monotonic(), sum(left.values())
                rate = (lines_missing - lines_left) / max(reported - began, 1e-9)
                notice(JobNotice(_progress(manifest, len(left), lines_left, rate)))
        missing = manifest.missing()
        if not missing:
            return
    name = missing[0].name
    raise UserError(
        f"{manifest.folder}: {len(missing)} of {len(manifest.shards)} shards can't be translated, first {name}: "
        f"{errors.get(name, 'its worker was killed')}; the same command retries them"
    )


def _progress(manifest: Manifest, shards_left: int, lines_left: int, rate: float) -> str:
    """The progress of a job, in a line. rate: lines per second."""
    shards, lines = len(manifest.shards), manifest.lines
    time_left = f", {timedelta(seconds=round(lines_left / rate))} left" if rate else ""
    return (
        f"{shards - shards_left:,} of {shards:,} shards, {lines - lines_left:,} of {lines:,} lines, "
        f"{rate:,.0f} lines a second{time_left}"
    )


def _connect(ray: ModuleType, address: str, workers: int | None) -> None:
    """Raises UserError if no cluster answers."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        ray.init("local", num_cpus=workers, object_store_memory=LOCAL_STORE, include_dashboard=False, **quiet)
    else:
        try:
            ray.init(address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(f"--cluster {address}: no cluster answers there ({' '.join(str(error).split())})") from None
    context = ray.data.DataContext.get_current()
    context.max_errored_blocks = -1  # the next round retries what is lost
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)


def _ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with needing_extra("ray"):
        import ray  # type: ignore[import-not-found]
        import ray.data  # type: ignore[import-not-found]
    return ray
