"""From text to batches of ids, and back."""
