"""Work that goes wrong, for Ray's workers: they import it from here."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from headway.cluster.engine import translate_on_cluster
from headway.cluster.worker import Work
from headway.data.lines import Layout
from headway.translator.lines import LineOptions, LineTranslator


@dataclass(frozen=True)
class TroubledWork(Work):
    """Raises for texts with `poison` in them, ends the process for those with `bomb`, tells its process's number, and
    takes its time."""

    pids: Path = Path()

    def load(self, device: str | None = None) -> LineTranslator:
        loaded = super().load(device)
        translate = loaded.translator.translate

        def troubled(given, **options):
            time.sleep(0.2)
            if any("bomb" in text for text in given):
                os._exit(9)
            if any("poison" in text for text in given):
                raise FloatingPointError("not finite")
            return translate(given, **options)

        loaded.translator.translate = troubled  # type: ignore[method-assign]
        if device is None:  # in a worker
            (self.pids / str(os.getpid())).touch()
        return loaded


OPTIONS = LineOptions(search={"beam_size": 1, "max_length": 3})


def work(model: Path, pids: Path | None = None) -> Work:
    fields = (model, (), "cpu", "auto", "torch", Layout(), OPTIONS)
    return Work(*fields) if pids is None else TroubledWork(*fields, pids=pids)


def main() -> None:
    """model, input, folder, pids: translates with troubles on two workers; the last line is what was left blank."""
    model, source, folder, pids = map(Path, sys.argv[1:])
    print(translate_on_cluster(work(model, pids), [source], folder, "local", 2, lambda text: print(text, flush=True)))


if __name__ == "__main__":
    main()
