"""Exports to other programs and imports of their models."""
