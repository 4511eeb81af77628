"""Hugging Face Transformers: exports and imports (extra `huggingface`, which importing doesn't need).

Post-norm models are `MarianMTModel`, pre-norm ones `PegasusForConditionalGeneration`; both have `MarianTokenizer`.
What was imported as M2M-100, NLLB or mBART-50 goes back as that (`multilingual`).
Their sinusoids are all sines, then all cosines, but the paper's alternate, so weights that read or write the residual
stream get another order of channels. Imported vocabularies, such as OPUS-MT's, get <pad>, <unk>, <sos> and <eos> first.
"""

from headway.interop.huggingface.exporting import HuggingFaceModel, export_huggingface, import_transformers
from headway.interop.huggingface.importing import import_huggingface

__all__ = ["HuggingFaceModel", "export_huggingface", "import_huggingface", "import_transformers"]
