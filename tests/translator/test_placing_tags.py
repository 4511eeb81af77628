"""Tags in a translation: around the words that are aligned with their own, each once, in valid nesting."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.documents.parsing import parse_document
from headway.text.protected import joined, split_protected, syntax_name, with_protected, with_runs
from headway.translator.placing import MOST_NODES, TagLayout, tag_pairs

WORD = re.compile(r"\w+|[^\w\s]")


def spans(text):
    return [match.span() for match in WORD.finditer(text)]


def plain(sentence):
    """What the model gets of it."""
    return sentence.layout.plain


def placed(text, translation, links, format_="html"):
    """links: numbers of aligned words and punctuation marks, those of the source first."""
    document = parse_document(text, format_, "de")
    [sentence] = document.sentences
    source, target = spans(plain(sentence)), spans(translation)
    elements = sentence.from_whole(translation, [(*target[j], *source[i]) for i, j in links])
    return None if elements is None else document.joined([elements])


def straight(count):
    return [(number, number) for number in range(count)]


@pytest.mark.parametrize(
    ("text", "translation", "links", "wanted"),
    [
        pytest.param(
            "Ein <b>Hund</b> sieht einen Ball.",
            "A dog sees a ball.",
            straight(6),
            "A <b>dog</b> sees a ball.",
            id="straight",
        ),
        pytest.param(
            "Ich habe <a href=x>den Ball</a> <i>gesehen</i>.",
            "I have seen the ball.",
            [(0, 0), (1, 1), (4, 2), (2, 3), (3, 4), (5, 5)],
            "I have <i>seen</i> <a href=x>the ball</a>.",
            id="another order",
        ),
        pytest.param(
            "Er <b>nimmt</b> morgen <i>teil</i>.",
            "He participates tomorrow.",
            [(0, 0), (1, 1), (2, 2)],
            "He <b>participates</b> <i>tomorrow</i>.",
            id="many to one: the other takes what is near",
        ),
        pytest.param(
            "Ich <b>weiß</b> es.",
            "Je ne sais pas ça.",
            [(0, 0), (1, 1), (1, 2), (1, 3), (2, 4)],
            "Je <b>ne sais pas</b> ça.",
            id="one to many",
        ),
        pytest.param(
            "Ich <b>verstehe nicht</b> alles.",
            "Je ne comprends vraiment pas tout.",
            [(0, 0), (2, 1), (1, 2), (2, 4), (3, 5)],
            "Je <b>ne comprends vraiment pas</b> tout.",
            id="a word without alignment between",
        ),
        pytest.param(
            "Ein <b>Hund</b> läuft sehr schnell weg.",
            "A dog runs away very fast the.",
            [(0, 0), (1, 1), (2, 2), (5, 3), (3, 4), (4, 5), (1, 6)],
            "A <b>dog</b> runs away very fast the.",
            id="a stray link far away",
        ),
        pytest.param(
            "Ein <b>Hund</b> läuft.",
            "A dog runs.",
            [(0, 0), (2, 2)],
            "A <b>dog</b> runs.",
            id="without alignment on both sides",
        ),
        pytest.param(
            "Ein <b>ja</b> <i>Hund</i> läuft.",
            "A dog runs.",
            [(0, 0), (2, 1), (3, 2)],
            "<b>A</b> <i>dog</i> runs.",
            id="without a counterpart",
        ),
        pytest.param(
            "Ein <b>kleiner <i>Hund</i></b> läuft.",
            "A dog small runs.",
            [(0, 0), (2, 1), (1, 2), (3, 3)],
            "A <b><i>dog</i> small</b> runs.",
            id="nested",
        ),
        pytest.param(
            "<b>Ein <i>Hund</i></b> <u>läuft</u>.",
            "runs a dog.",
            [(2, 0), (0, 1), (1, 2), (3, 3)],
            "<u>runs</u> <b>a <i>dog</i></b>.",
            id="nested and moved",
        ),
        pytest.param(
            "<a href=x><b>Hund</b></a> läuft",
            "dog runs",
            straight(2),
            "<a href=x><b>dog</b></a> runs",
            id="the same words twice",
        ),
        pytest.param(
            "<b>a b</b> <i>c d</i>",
            "A C B D",
            [(0, 0), (2, 1), (1, 2), (3, 3)],
            "<b>A</b> <i>C</i> B D",
            id="interleaved elements don't overlap",
        ),
        pytest.param("<b>Hund</b>, komm!", "dog, come!", straight(4), "<b>dog</b>, come!", id="no comma inside"),
        pytest.param("<b>Hund,</b> komm!", "dog, come!", straight(4), "<b>dog,</b> come!", id="its own comma inside"),
        pytest.param(
            "<q>„Halt!“</q>, rief er.",
            "“Stop!”, he cried.",
            [(1, 1), (6, 5), (5, 4)],
            "<q>“Stop!”</q>, he cried.",
            id="its own quotation marks inside",
        ),
        pytest.param(
            "Ein <b> Hund </b> läuft.", "A dog runs.", straight(4), "A <b>dog</b> runs.", id="words, not spaces"
        ),
        pytest.param("<b>Ein Hund</b>.", "A dog.", [], "<b>A dog</b>.", id="all words need no alignment"),
        pytest.param(
            "<b>Ein <i>Hund</i></b>.", "A dog.", straight(3), "<b>A <i>dog</i></b>.", id="all words, and some"
        ),
        pytest.param(
            "Der Donau<wbr>dampfer <!-- x -->fährt.",
            "The steamer goes.",
            straight(4),
            "The <wbr>steamer <!-- x -->goes.",
            id="empty elements before the word that followed",
        ),
        pytest.param(
            "Der <a name=x></a>Hund <img src=x> läuft.",
            "Runs dog the.",
            [(0, 2), (1, 1), (2, 0)],
            "<img src=x> Runs <a name=x></a>dog the.",
            id="pairs without words move, too",
        ),
        pytest.param(
            "Ein Hund<sup><a href=1>[1]</a></sup> läuft.",
            "A dog runs.",
            straight(4),
            "A dog<sup><a href=1>[1]</a></sup> runs.",
            id="the number of a note",
        ),
        pytest.param(
            "Ein <b>Hund</b><wbr><a name=x></a> läuft.",
            "A dog runs.",
            straight(4),
            "A <b>dog</b><wbr><a name=x></a> runs.",
            id="empty elements just after another stay outside",
        ),
        pytest.param(
            "Ein Hund<b><sup>1</sup></b> läuft.",
            "A dog runs.",
            straight(4),
            "A dog<b><sup>1</sup></b> runs.",
            id="in bold",
        ),
        pytest.param("Das ist H<sub>2</sub>O.", "That is H2O.", straight(4), "That is H<sub>2</sub>O.", id="in a word"),
        pytest.param(
            "H2O ist H<sub>2</sub>O.", "H2O is H2O.", straight(4), "H2O is H<sub>2</sub>O.", id="in the second"
        ),
        pytest.param(
            "Mit <code>ls -l</code> geht es.",
            "It works with.",
            [(0, 2), (1, 1), (2, 0)],
            "It <code>ls -l</code> works with.",
            id="code",
        ),
        pytest.param(
            "Siehe <b>https://a.de/b-c</b> 😀 {} oder <i>{name}</i>.",
            "Or {name} see {} https://a.de/b-c.",
            [(0, 4)],
            "Or <i>{name}</i> see 😀 {} <b>https://a.de/b-c</b>.",
            id="protected text is one word and its own counterpart",
        ),
        pytest.param(
            "Das <b>ist so", "That is so", straight(3), "That <b>is so", id="a tag whose partner is elsewhere"
        ),
        pytest.param(
            "Das ist</b> so", "So is that", [(0, 2), (1, 1), (2, 0)], "So is that</b>", id="the other partner"
        ),
        pytest.param("<b>Hund</b> und Ja", "Hund &amp; <x>", [(0, 0)], "<b>Hund</b> &amp;amp; &lt;x&gt;", id="escaped"),
        pytest.param("Ein <b>Hund</b> läuft.", "개가 달린다.", [(1, 0), (2, 1)], "<b>개가</b> 달린다.", id="Korean"),
    ],
)
def test_worked_examples(text, translation, links, wanted):
    assert placed(text, translation, links) == wanted


def test_characters_are_words_where_there_are_no_spaces():
    document = parse_document("Ein <b>Hund</b> läuft.", "html", "de")
    [sentence] = document.sentences
    elements = sentence.from_whole("小狗跑。", [(0, 2, 4, 8), (2, 3, 9, 14), (3, 4, 14, 15)])
    assert document.joined([elements]) == "<b>小狗</b>跑。"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Von 😀 nach 👍🏽 gehen.", "👍🏽 go from 😀 to."),
        ("Von nach😀 gehen 👍🏽.", "go from to😀 👍🏽."),
        ("Von nach gehen 👍🏽!", "go from to 👍🏽."),
    ],
)
def test_emoji_move_with_the_words_beside_them(text, wanted):
    assert placed(text, "go from to.", [(2, 0), (0, 1), (1, 2)], "text") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "when <code>x</code>'s purge",
        "when <img src=a>'s purge",
        "see the <b><img src=a>(3) man page</b>",
        "see the <img src=a>(3) man page",
        "costs <img src=a>$5, or <img src=a>so",
        "a word <img src=a>, another",
        "a word<img src=a>, another",
        "a word <img src=a> and <img src=a>another<img src=a> one",
        "(<img src=a>) and “<img src=a>a”, <img src=a>“b”",
    ],
)
def test_a_text_that_stays_as_it_is_keeps_its_spaces(text):
    document = parse_document(text, "html", "de")
    [sentence] = document.sentences
    whole = spans(plain(sentence))
    elements = sentence.from_whole(plain(sentence), [(*one, *one) for one in whole])
    assert document.joined([elements]) == text


@pytest.mark.parametrize(
    ("text", "translation", "links"),
    [
        ("Ein <b>Hund</b> läuft.", "A dog runs.", []),
        ("Ein <b>Hund</b> läuft.", "...", [(0, 0)]),
        ("<b>Ein</b> <i>Hund</i>", "Dog", [(0, 0)]),
    ],
)
def test_tags_without_a_place_are_told(text, translation, links):
    assert placed(text, translation, links) is None


@pytest.mark.parametrize("text", ["Ein <b>a <i>b</b> c</i> d", "<b>" + "a <i>b</i> " * 200])
def test_what_is_not_nested_or_too_much_is_split(text):
    [sentence] = parse_document(text, "html", "de").sentences
    assert sentence.layout is None
    assert len(sentence.runs) > 1


@st.composite
def nested(draw, depth=0):
    """HTML of one sentence, whose tags are numbered."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["word"] * 4 + ["mark", "void", "emoji"] + ["element"] * 2 * (depth < 3)))
        if kind == "element":
            name = draw(st.sampled_from(["b", "i", "a", "span", "sup"]))
            parts.append(f"<{name} id=n>{draw(nested(depth + 1))}</{name}>")
        else:
            words = {
                "word": ["eins", "zwei", "H2O", "7", "{x}"],
                "mark": [",", "„", "!"],
                "void": ["<wbr id=n>"],
                "emoji": ["😀"],
            }
            parts.append(draw(st.sampled_from(words[kind])))
        parts.append(draw(st.sampled_from(["", " "])))
    text = "".join(parts)
    if depth:
        return text
    numbers = iter(range(1000))
    return re.sub("id=n", lambda _: f"id={next(numbers)}", f"Ja {text} nun")


@given(nested(), st.data())
def test_every_tag_comes_back_once_in_valid_nesting(text, data):
    document = parse_document(text, "html", "de")
    words = data.draw(st.lists(st.sampled_from(["dog", "cat", "H2O", ",", "개", "犬", "{x}"]), min_size=1, max_size=8))
    translation = "".join(word + data.draw(st.sampled_from(["", " "])) for word in words).strip()
    target = spans(translation)
    translated = []
    for sentence in document.sentences:
        source = spans(plain(sentence))
        alignment = [
            (*one, *source[number]) for one in target if (number := data.draw(st.integers(-1, len(source) - 1))) >= 0
        ]
        found = sentence.from_whole(translation, alignment)
        translated.append(with_runs(sentence.elements, ["x"] * len(sentence.runs)) if found is None else found)
        if found is not None:
            said = "".join(one for one in found if isinstance(one, str))
            assert list(filter(str.isalnum, said)) == list(filter(str.isalnum, translation)) or "<sup" in text
    answer = document.joined(translated)
    tags = re.compile(r"<[^>]*>")
    assert sorted(tags.findall(answer)) == sorted(tags.findall(text))
    assert answer.count("😀") == text.count("😀")
    open_names = []
    for tag in tags.findall(answer):
        if tag.startswith("</"):
            assert open_names.pop() == tag[2:-1]
        elif not tag.startswith("<wbr"):
            open_names.append(tag[1:].split(" ")[0])
    assert open_names == []
    around, found_around = ({one: set(path) for one, path in ancestors(each)} for each in (text, answer))
    assert found_around == around or len(document.sentences) > 1, "what was inside stays inside"
    for empty in re.findall(r"<(b|i|a|span|sup) id=\d+>\s*</", answer):
        assert re.search(rf"<{empty} id=\d+>[^<\w]*</", text), "no element loses its words"


def ancestors(text):
    """Each element's number with those that it is in."""
    inside = []
    for tag in re.findall(r"<[^>]*>", text):
        if tag.startswith("</"):
            inside.pop()
            continue
        number = re.search(r"id=(\d+)", tag)[1]
        yield number, tuple(inside)
        if not tag.startswith("<wbr"):
            inside.append(number)


def is_syntax(atom):
    return atom.is_syntax


def layout(text):
    """Of a text with links of Markdown and tags, as a translator gets it."""
    return TagLayout.of(with_protected(split_protected(text), is_syntax), syntax_name)


def put_back(text, translation, alignment, tag=0):
    """alignment: for each word and punctuation mark of the translation the one of the source. tag: the characters that
    stand before the source."""
    one = layout(text)
    source = spans(one.plain)
    links = [
        (*span, *(place + tag for place in source[number]))
        for span, number in zip(spans(translation), alignment, strict=True)
        if number is not None
    ]
    found = one.placed(translation, links, tag)
    return found and joined(found)


@pytest.mark.parametrize(
    ("text", "translation", "alignment", "wanted"),
    [
        ("[Ein Hund](a.b) läuft.", "A dog runs.", [0, 1, 2, 3], "[A dog](a.b) runs."),
        ("Heute läuft [ein Hund](a.b).", "A dog runs today.", [2, 3, 1, 0, 4], "[A dog](a.b) runs today."),
        ("Ein <0>Hund</0>, der läuft", "A dog, who runs", [0, 1, 2, 3, 4], "A <0>dog</0>, who runs"),
        ("[a](x) <b>b</b> c", "c b a", [2, 1, 0], "c <b>b</b> [a](x)"),
        ("<b>a <i>b</i> c</b> d", "d a b c", [3, 0, 1, 2], "d <b>a <i>b</i> c</b>"),
        ("<b><i>a</i></b> c", "a c", [0, 1], "<b><i>a</i></b> c"),
        ("![a b](x)", "b and a", [None, None, None], "![b and a](x)"),
        ("<b>a b.</b>", "a b.", [0, 1, 2], "<b>a b.</b>"),
        ("<b>a b</b>.", "a b.", [0, 1, 2], "<b>a b</b>."),
        ("x [a b][1] c", "x a and b c", [0, 1, None, 2, 3], "x [a and b][1] c"),
        ("x [a b](y) c", "a c b x b", [1, 3, 2, 0, 2], "[a](y) c b x b"),
        ("<b>a</b> c", "x c", [None, 1], "<b>x</b> c"),
        ("<b>a</b> c", "x c", [None, None], None),
        ("<b>a</b> <i>b</i>", "x", [0], None),
        ("a <1/> b", "b a", [1, 0], "<1/> b a"),
        ("a <1/> <b>b c</b> d", "c b d a", [2, 1, 3, 0], "<1/> <b>c b</b> d a"),
        ("<b>«a</b> <i>b.</i>", "b « a", [2, 0, 1], "<i>b</i> <b>« a</b>"),
        ("[](x) y", "z", [0], "[](x) z"),
        ("a</b> c", "c a", [1, 0], "c a</b>"),
    ],
)
def test_links_and_tags_in_a_text(text, translation, alignment, wanted):
    assert put_back(text, translation, alignment) == put_back(text, translation, alignment, tag=6) == wanted


@pytest.mark.parametrize("text", ["[a <b>c](x) d</b>", "[a](b) " * (MOST_NODES + 1)])
def test_overlapping_or_too_many_links_are_not_put_back(text):
    assert layout(text) is None


LINKS = ["[", "](x)", "![", "<0>", "</0>", "<b>", "</b>", "<1/>", "{name}", "%s", "eins", "zwei,", "!", " "]


@given(st.lists(st.sampled_from(LINKS), max_size=12).map("".join), st.data())
def test_all_syntax_of_a_text_comes_back_once_in_valid_nesting(text, data):
    one = layout(text)
    if one is None:
        return
    translation = data.draw(st.sampled_from(["cat", "a cat, a dog!", "dog {name} cat", "小狗跑。", ""]))
    numbers = st.integers(-1, len(one.plain))
    links = [(*span, start := data.draw(numbers), start + 3) for span in spans(translation)]
    found = one.placed(translation, links)
    if found is None:
        return
    said = "".join(each for each in found if isinstance(each, str))
    assert list(filter(str.isalnum, said)) == list(filter(str.isalnum, translation))
    syntax = [[each for each in some if not isinstance(each, str)] for some in (found, split_protected(text))]
    assert Counter(syntax[0]) == Counter(filter(is_syntax, syntax[1]))
    pairs = [tag_pairs(some, syntax_name) for some in (found, with_protected(split_protected(text), is_syntax))]
    assert len(pairs[0]) >= len(pairs[1])


def test_words_beside_a_tag_around_punctuation_are_words_of_their_own():
    [sentence] = parse_document("Pfad<b> - </b>Hund<i>,</i> ja", "html", "de").sentences
    assert plain(sentence) == "Pfad Hund ja"
    assert placed("Pfad<b> - </b>Hund", "PATH DOG", straight(2)) == "PATH <b> - </b>DOG"
