"""Built-in data: the generated corpus of the demo, and public corpora with checksums."""
