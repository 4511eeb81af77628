"""Recipes: what a run is asked to do, how one is chosen for a corpus, and what it will need."""
