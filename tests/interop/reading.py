"""A Hugging Face folder as a model in memory, for tests."""

import tempfile
from pathlib import Path

from headway.interop.huggingface import import_huggingface
from headway.storage import StoredModel, load_model


def read_huggingface(folder: Path) -> StoredModel:
    with tempfile.TemporaryDirectory() as temporary:
        import_huggingface(folder, Path(temporary, "model"))
        return load_model(Path(temporary, "model"))
