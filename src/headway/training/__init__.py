"""Training: the start of a run, its step, the loss, the optimizer, validation, the loop, checkpoints."""
