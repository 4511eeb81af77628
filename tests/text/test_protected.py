"""Protected text: what is one, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.protected import Atom, joined, runs_of, split_protected, with_runs


def spans(text: str) -> list[str]:
    return [one.raw for one in split_protected(text) if isinstance(one, Atom)]


SPANS = ["{name}", "{}", "{0:.2f}", "{{ user.name }}", "${HOME}", "%s", "%5.2f", "%(x)d", "%1$s", "%@", "$1"]
SPANS += ["https://a.de/b?c=d&e=%20#f", "www.a.de", "a.b+c@d.co.kr", "`x = {1}; y`"]
SPANS += [
    "https://a.de/Hund_(Tier)",
    "https://a.de/b_(c)/d(e)f",
    "https://a.de/b_(c_(d))",
    "WWW.A.DE",
    "HTTPS://A.DE/b",
    "Ftp://a.de",
]


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("around", ["{}", "Das ist {} von mir.", "({}), ja", "{}님, {}에서"])
def test_protected(span, around):
    assert set(spans(around.replace("{}", span))) == {span}


@pytest.mark.parametrize(
    "text", ["100%ige Sicherheit", "50% der Leute", "5 %", "$1.50", "$1,000", "{siehe oben}", "a@b", "50%s", "Preis: $"]
)
def test_not_protected(text):
    assert spans(text) == []


@pytest.mark.parametrize(
    ("text", "protected"),
    [
        ("It costs $5.", []),
        ("From $20 to $30, or $2 a day, $0 for members", []),
        ("$5-$10", []),
        ("US$1, A$1, $1 million, $1 Milliarde, $1 Thousand", []),
        ("$1 of $2 files", ["$1", "$2"]),
        ("$2 von $1 wurde gelöscht", ["$2", "$1"]),
        ("총$1개 중 $2개", ["$1", "$2"]),
        ("$1 paid $5 for $2 files of $3", ["$1", "$2", "$3"]),
        ("$1 paid $20", ["$1"]),
        (" ".join(f"${number}" for number in range(1, 13)), [f"${number}" for number in range(1, 13)]),
        ("{name} owes $3", ["{name}"]),
        ("https://a.de/b(c und", ["https://a.de/b(c"]),
        ("(https://a.de/), https://", ["https://a.de/"]),
    ],
)
def test_prices_and_numbered_placeholders(text, protected):
    assert spans(text) == protected


@given(st.text(alphabet="a {}%s$1`@.:/w(x)d한", max_size=40))
def test_joined_again_they_are_the_text(text):
    assert joined(split_protected(text)) == text


@given(st.text(alphabet="a {}%s$1`@.:/w(x)d한,é\u0301ी\u3002", max_size=40))
def test_runs_put_back_they_are_the_text(text):
    elements = split_protected(text)
    assert joined(with_runs(elements, runs_of(elements))) == text


def test_runs_of_a_document_keep_protected_text_whole():
    tag = Atom("<b>", "")
    elements = ["Eins, ", tag, "({name})", tag, " zwei %s", tag, "`c`."]
    assert runs_of(elements) == ["Eins", "{name}", "zwei %s", "`c`."]
    assert with_runs(["die Firma ", tag], ["the Acme Inc."], kept_ends=("Acme Inc.",)) == ["the Acme Inc. ", tag]
    assert joined(with_runs(elements, runs_of(elements))) == "Eins, <b>({name})<b> zwei %s<b>`c`."


@pytest.mark.parametrize(
    ("text", "runs", "translated"),
    [
        ("Schreib an a@b.de, bitte.", ["Schreib an", "bitte."], "A a@b.de, B."),
        ("Öffne (`a`), dann `b`.", ["Öffne", "dann"], "A (`a`), B `b`."),
        ("Nimm {a} „hier“.", ["Nimm", "hier"], "A {a} „B“."),
        ("Kommst du? {a}", ["Kommst du?"], "A. {a}"),
        ("हिन्दी{a}", ["हिन्दी"], "A{a}"),
        ("{a}", [], "{a}"),
        ("Ende. {a} mit", ["Ende.", "mit"], "A. {a} B"),
        ("z.B. {a}", ["z.B."], "A. {a}"),
        ("你好。{a}", ["你好。"], "A.{a}"),
    ],
)
def test_punctuation_between_words_and_protected_text_stays(text, runs, translated):
    """The full stop of a translation is that of its run, if the run has one."""
    elements = split_protected(text)
    assert runs_of(elements) == runs
    assert joined(with_runs(elements, [f"{name}." for name in "AB"[: len(runs)]])) == translated
