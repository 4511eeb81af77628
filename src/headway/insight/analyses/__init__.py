"""Analyses of a translation that go beyond attention: what it needs, where it comes from, what each layer would say."""

from headway.insight.analyses.asking import (
    LONGEST_ANALYSED,
    MOST_PAIRS,
    NAMES,
    Analyses,
    AnalysisName,
    AskContrast,
    AskedAnalysis,
    AskHeadImportance,
    AskPatching,
    Plain,
    read_analyses,
)
from headway.insight.analyses.contributions import Contributions, contributions
from headway.insight.analyses.erasing import (
    Contrast,
    Erasure,
    Faithfulness,
    contrast,
    erasure,
    faithfulness,
)
from headway.insight.analyses.head_importance import HeadImportance, head_importance
from headway.insight.analyses.layers import (
    DecoderLens,
    LogitLens,
    Patching,
    cut_encoders,
    given_by_encoder_layer,
    logit_lens,
    patching,
)
from headway.insight.analyses.reading import Reading

__all__ = [
    "LONGEST_ANALYSED",
    "MOST_PAIRS",
    "NAMES",
    "Analyses",
    "AnalysisName",
    "AskContrast",
    "AskHeadImportance",
    "AskPatching",
    "AskedAnalysis",
    "Contrast",
    "Contributions",
    "DecoderLens",
    "Erasure",
    "Faithfulness",
    "HeadImportance",
    "LogitLens",
    "Patching",
    "Plain",
    "Reading",
    "contrast",
    "contributions",
    "cut_encoders",
    "erasure",
    "faithfulness",
    "given_by_encoder_layer",
    "head_importance",
    "logit_lens",
    "patching",
    "read_analyses",
]
