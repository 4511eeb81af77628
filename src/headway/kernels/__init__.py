"""What is there for speed alone. Each piece has a readable twin, and a test holds the two equal."""
