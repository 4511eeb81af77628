"""The curves of a run in TensorBoard, also while it trains: python examples/curves.py runs/mine; tensorboard --logdir .

For Weights & Biases, call wandb.init() first and wandb.log(entry, step=entry["step"]) for each line.
"""

import json
import sys
import time
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter


def main(run: Path, *, follow: bool) -> None:
    with open(run / "log.jsonl", encoding="utf-8") as log, SummaryWriter(str(run / "tensorboard")) as board:
        while True:
            for entry in map(json.loads, log):  # of a step, or of a validation
                for name in entry.keys() - {"step", "epoch"}:
                    board.add_scalar(name, entry[name], entry["step"])
            if not follow:
                return
            time.sleep(10)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give the run: python examples/curves.py runs/mine")
    main(Path(sys.argv[1]), follow=True)
