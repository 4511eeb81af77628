"""The model card says what it was told, and tables of it stay tables."""

from headway.evaluation import Scores
from headway.model import ModelConfig
from headway.recipe.reading import make_recipe
from headway.training.checkpoint import Progress
from headway.training.saving import model_card

SCORES = Scores(bleu=1.0, chrf=2.0, bleu_signature="a|b", chrf_signature="c")


def card(*changes: str, **data: str) -> str:
    files = {"train": {"source": "a.de", "target": "a.en"}, "valid": {"source": "b.de", "target": "b.en"}}
    recipe = make_recipe({"data": {**files, **data}, "training": {"max_steps": 1}}, changes)
    return model_card(recipe, ModelConfig(10, 10), Progress(step=1), 1.0, SCORES)


def test_the_domain_is_in_the_card_if_there_is_one():
    assert "| domain | captions \\| more |\n" in card(domain="captions | more")
    assert "domain" not in card()


def test_how_the_model_was_made_is_in_the_card():
    plain = card()
    assert "label smoothing 0.1 |" in plain
    assert not any(text in plain for text in ("minimum-risk", "starts from", "translated by", "moving average"))
    assert "label smoothing 0.1, moving average of the weights 0.999 |" in card("training.ema_decay=0.999")
    made = card(
        "model.preset=tiny",
        "training.init_from=runs/first",
        "training.risk_samples=8",
        "data.distilled={source: a.de, target: made.en, teacher: runs/teacher}",
    )
    assert "| starts from | first |\n" in made
    assert "| text translated by | teacher |\n" in made
    assert "minimum-risk training, 8 samples a sentence |" in made
    assert "label smoothing" not in made
