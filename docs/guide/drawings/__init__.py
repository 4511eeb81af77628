"""The drawings of the guide: Figure 1 of the paper, heads, waves, masks, a beam. Each is a function that gives SVG. A
chapter shows one as the image drawn/NAME.svg; `figures.py` writes the files when the guide is built."""

from drawings import attention, layers, text, vectors

DRAWINGS = {
    one.__name__.replace("_", "-"): one
    for one in (
        layers.architecture,
        vectors.recurrence,
        vectors.embedding,
        vectors.waves,
        vectors.sum_or_concatenation,
        attention.queries_keys_values,
        attention.attention,
        attention.heads,
        attention.masks,
        layers.residual_stream,
        layers.normalisation,
        layers.feed_forward,
        attention.three_attentions,
        text.teacher_forcing,
        text.label_smoothing,
        text.warm_up,
        text.beam,
    )
}
"""By the names of their files."""
