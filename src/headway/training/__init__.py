"""Training: the recipe, the loss, the optimizer, the loop, checkpoints."""
