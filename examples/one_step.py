"""One training step, from text to new weights: tokens, masks inside the model, teacher forcing, cross-entropy."""

import torch
from torch.nn import functional as F

from headway import ModelConfig, Transformer
from headway.text.words import WordTokenizer

SOURCES = ["ein Hund läuft", "ein Kind spielt im Park"]
TARGETS = ["a dog runs", "a child plays in the park"]


def padded(rows: list[list[int]]) -> torch.Tensor:
    """(batch, longest), with 0, the id of <pad>, at the end of rows."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def main() -> tuple[float, float]:
    torch.manual_seed(1)
    source_words, target_words = (WordTokenizer.train(texts, 100, 1, False) for texts in (SOURCES, TARGETS))
    sizes = {"source_vocab_size": source_words.vocab_size, "target_vocab_size": target_words.vocab_size}
    config = ModelConfig.preset("tiny", **sizes, share_embeddings="decoder", dropout=0.0)
    model = Transformer(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    source = padded([[*source_words.encode(text), config.eos_id] for text in SOURCES])  # (2, 6)
    target = [[config.bos_id, *target_words.encode(text), config.eos_id] for text in TARGETS]
    read = padded([row[:-1] for row in target])  # the decoder reads <bos> and the words: (2, 7)
    labels = padded([row[1:] for row in target])  # and predicts the words and <eos>: (2, 7)

    def loss() -> torch.Tensor:
        logits = model(source, read)  # (2, 7, vocabulary)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=config.pad_id)

    (before := loss()).backward()
    optimizer.step()
    return before.item(), loss().item()


if __name__ == "__main__":
    print("loss before and after the step: {:.3f}, {:.3f}".format(*main()))
