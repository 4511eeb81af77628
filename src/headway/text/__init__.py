"""Characters and tokens: normalisation, tokenizers, protected text, glossaries."""
