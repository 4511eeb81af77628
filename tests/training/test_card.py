"""The model card says what it was told, and tables of it stay tables."""

from headway.evaluation import Scores
from headway.model import ModelConfig
from headway.training.card import model_card
from headway.training.checkpoint import Progress
from headway.training.reading import make_recipe

SCORES = Scores(bleu=1.0, chrf=2.0, bleu_signature="a|b", chrf_signature="c")


def card(**data: str) -> str:
    files = {"train": {"source": "a.de", "target": "a.en"}, "valid": {"source": "b.de", "target": "b.en"}}
    recipe = make_recipe({"data": {**files, **data}, "training": {"max_steps": 1}})
    return model_card(recipe, ModelConfig(10, 10), Progress(step=1), 1.0, SCORES)


def test_the_domain_is_in_the_card_if_there_is_one():
    assert "| domain | captions \\| more |\n" in card(domain="captions | more")
    assert "domain" not in card()
