"""Hugging Face Transformers: exports and imports (extra `huggingface`, which importing doesn't need).

Post-norm models are `MarianMTModel` there, pre-norm ones `PegasusForConditionalGeneration`, which differs only in the
places of its norms; the tokenizer of both is `MarianTokenizer`. Their sinusoids are all sines, then all cosines; the
paper's, and headway's, alternate, so every weight that reads or writes the residual stream has its channels in another
order. Exports keep the ids. Models of others, above all OPUS-MT, get new ids and their rows in another order:
headway's tokenizers begin with <pad>, <unk>, <sos> and <eos>.
"""

from headway.interop.huggingface.exporting import HuggingFaceModel, export_huggingface, import_transformers
from headway.interop.huggingface.importing import import_huggingface, read_huggingface

__all__ = ["HuggingFaceModel", "export_huggingface", "import_huggingface", "import_transformers", "read_huggingface"]
