"""Options of search: the least and the most of each are possible, and nothing beyond."""

import pytest

from headway.decoding.options import Sampling, SearchOptions, names_in
from headway.errors import UserError

SAMPLING = {
    "temperature": (0.001, 100.0, 0.0001),
    "top_p": (1e-9, 1.0, 1e-9),
    "top_k": (0, 10**9, 1),
    "seed": (0, 2**64, 1),
}
SEARCH = {
    "beam_size": (1, 1000, 1),
    "length_penalty": (0.0, 10.0, 1e-9),
    "max_length": (1, 2**20, 1),
    "n_best": (1, 1000, 1),
    "no_repeat_ngram": (0, 2**20, 1),
}
"""The least, the most, and a step beyond."""
UNBOUNDED = ("top_k", "seed")


@pytest.mark.parametrize("name", [*SAMPLING, *SEARCH])
def test_the_least_and_the_most_of_each_option(name):
    def made(value):
        if name in SAMPLING:
            return Sampling(**{name: value})
        return SearchOptions(**{"beam_size": 1000, name: value})

    least, most, step = {**SAMPLING, **SEARCH}[name]
    assert getattr(made(least), name) == least
    assert getattr(made(most), name) == most
    for beyond in (least - step, *([] if name in UNBOUNDED else [most + step])):
        with pytest.raises(UserError, match=name):
            made(beyond)


@pytest.mark.parametrize(("options", "name"), [(SearchOptions(), "beam_size"), (Sampling(), "top_k")])
def test_options_stay_as_they_were_checked(options, name):
    with pytest.raises(Exception, match=r"frozen|cannot assign"):
        setattr(options, name, 0)


WHOLE = ("beam_size", "max_length", "n_best", "no_repeat_ngram")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in WHOLE for value in (True, "5", [5], 1.5)),
        *(("length_penalty", value) for value in (True, "5", [5], float("nan"))),
    ],
)
def test_an_option_is_a_number_of_its_kind(name, value):
    with pytest.raises(UserError, match=f"{name}="):
        SearchOptions(**{name: value})


@pytest.mark.parametrize("other", [{"beam_size": 1}, {"sample": Sampling()}])
def test_numbers_are_checked_among_the_hypotheses_of_a_beam(other):
    with pytest.raises(UserError, match="give a beam_size of 2 or more"):
        SearchOptions(check_numbers=True, **other)


@pytest.mark.parametrize("export", ["web", "onnx", "huggingface", "ctranslate2"])
def test_an_export_keeps_a_changed_option_or_says_that_it_does_not(export, caplog):
    changed = {"beam_size": 3, "length_penalty": 0.5, "n_best": 2}
    kept = SearchOptions(**changed).kept_by(export)
    told = {record.message.split()[-1] for record in caplog.records}
    assert told == {f"{name}={value}" for name, value in changed.items() if name not in names_in(export)}
    assert {name: kept[there] for name, there in names_in(export).items() if name in changed}.items() <= changed.items()


def test_an_export_says_nothing_of_defaults(caplog):
    assert SearchOptions().kept_by("ctranslate2") == {}
    assert not caplog.records


def test_only_the_page_keeps_the_number_of_translations():
    exports = ("web", "onnx", "huggingface", "ctranslate2")
    assert [export for export in exports if "n_best" in names_in(export)] == ["web"]
    assert [export for export in exports if "beam_size" in names_in(export)] == ["web", "onnx", "huggingface"]


def test_samples_may_be_more_than_a_beam_has():
    assert SearchOptions(beam_size=1, n_best=7, sample=Sampling()).n_best == 7
    with pytest.raises(UserError, match="n_best=7 is more than beam_size=6"):
        SearchOptions(beam_size=6, n_best=7)
