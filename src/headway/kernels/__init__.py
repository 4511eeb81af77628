"""Code that exists only for speed. Tests compare each kernel with readable code."""
