"""Corpora: files, pairs, ids on disk, the plan of batches."""
