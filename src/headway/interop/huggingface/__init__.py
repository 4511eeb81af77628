"""Models as Hugging Face Transformers has them, both ways (extra `huggingface`, which importing doesn't need).

Post-norm models are `MarianMTModel` there, pre-norm ones `PegasusForConditionalGeneration`, which is the same but for
the places of its norms; the tokenizer of both is `MarianTokenizer`. Their sinusoids are all sines, then all cosines,
where the paper's, and ours, alternate: every weight that reads or writes the residual stream has its channels in
another order. Ids are ours in what we export. What others have made, OPUS-MT above all, has its own, and comes with
other rows: our tokenizers begin with <pad>, <unk>, <sos> and <eos>.
"""

from headway.interop.huggingface.exporting import HuggingFaceModel, export_huggingface, import_transformers
from headway.interop.huggingface.importing import import_huggingface, read_huggingface

__all__ = ["HuggingFaceModel", "export_huggingface", "import_huggingface", "import_transformers", "read_huggingface"]
