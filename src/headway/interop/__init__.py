"""Models of ours where other programs run them, and theirs here."""
