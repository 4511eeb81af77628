"""Protected text: what is one, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.protected import Atom, joined, split_protected


def spans(text: str) -> list[str]:
    return [one.raw for one in split_protected(text) if isinstance(one, Atom)]


SPANS = ["{name}", "{}", "{0:.2f}", "{{ user.name }}", "${HOME}", "%s", "%5.2f", "%(x)d", "%1$s", "%@", "$1", "$12"]
SPANS += ["https://a.de/b?c=d&e=%20#f", "www.a.de", "a.b+c@d.co.kr", "`x = {1}; y`"]


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("around", ["{}", "Das ist {} von mir.", "({}), ja", "{}님, {}에서"])
def test_protected(span, around):
    assert set(spans(around.replace("{}", span))) == {span}


@pytest.mark.parametrize(
    "text", ["100%ige Sicherheit", "50% der Leute", "5 %", "$1.50", "$1,000", "{siehe oben}", "a@b", "50%s", "Preis: $"]
)
def test_not_protected(text):
    assert spans(text) == []


@given(st.text(alphabet="a {}%s$1`@.:/w(x)d한", max_size=40))
def test_joined_again_they_are_the_text(text):
    assert joined(split_protected(text)) == text
