"""Protected text: what is one, and what is not."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.protected import (
    _LIKELY,
    Atom,
    _matches,
    joined,
    runs_of,
    split_protected,
    with_protected,
    with_runs,
)


def spans(text: str) -> list[str]:
    return [one.raw for one in split_protected(text) if isinstance(one, Atom)]


SPANS = {
    "braces": "{name} {} {0} {0:.2f} {name!r} {name:>10} {0,10:N2} {user.name} ${HOME} ${a.b} #{x} %{x} {{name}}",
    "doubled braces": "{{user.name}} {{{raw}}} {{count|number}} #{{x}}",
    "C": "%s %d %i %u %f %5.2f %-10s %+.2e %05d %#x %zu %zd %jd %td %ld %lu %lld %llu %hd %hhd %Lf %p %c %*d %.*f %%",
    "C with units and flags": "%'d %1$'d %I64d %ds %dm %ss",
    "others": "%n% %s% *|FNAME|* *|LIST:NAME|* &nbsp; &amp; &#160; &#x2019;",
    "Python": "%n %(x)d %(user.name)s %(price).2f %r",
    "positions": "%1$s %2$d %1$@ %1$.2f %@ %ld",
    "Java, Go, dates": "%,d %,.2f %b %tY %v %+v %#v %T %q %Y %-d",
    "Ruby": "%<x>s %<x>.2f",
    "percent signs": "%name% %APPDATA% %user.name% %ProgramFiles(x86)% %%name%% %1% %1",
    "shell": "$name $HOME $user.name $user->name $NAME$ $(name) $t(key) $1",
    "colons": ":name :user_name :smile: @:key @:message.hello @.lower:key @:(key)",
    "underscores, brackets, hashes": "__name__ __user_name__ [[name]] #name# ###T01### @user [^1]",
    "names": "long_name utf8_max_size long_name2 customer_ID Customer_ID2 DateSerial_H1 en_US",
    "calls and files": "fsync() getName() _x1() *.odt *.h",
    "escapes": r"\n \t \r \r\n \n\n \" \' \u00e4",
    "tags": "<0> </0> <1/> <b> </strong> <br/> <x:y/> <Name> <a-b> <ph.1>",
    "templates": "{%if%} <%=x%> <?x?>",
    "ends of a plural": "}} }other{ }=1{",
    "addresses": "https://a.de/b?c=d&e=%20#f www.a.de a.b+c@d.co.kr <https://a.de> <mailto:a@b.de>",
    "more addresses": "https://a.de/Hund_(Tier) https://a.de/b_(c)/d(e)f https://a.de/b_(c_(d)) WWW.A.DE HTTPS://A.DE/b Ftp://a.de",
}
WITH_SPACES = [
    "{{ user.name }}",
    "{ name }",
    "{ $user }",
    "{n, number}",
    "{d, date, short}",
    "{n,number,::currency/USD}",
]
WITH_SPACES += [
    "{% if x %}",
    "<%= x.y %>",
    '<a href="x y" id=1>',
    "<x id='1' />",
    r"<span style=\"color:%2$s;\">",
    "<br />",
]
WITH_SPACES += [
    "`x = {1}; y`",
    "`` a ` b ``",
    "{count, plural, one {",
    "{g, select, male {",
    "{n,plural,offset:1 =0 {",
    "[[ name ]]",
]
ONES = [span for kinds in SPANS.values() for span in kinds.split(" ")] + WITH_SPACES


@pytest.mark.parametrize("span", ONES)
@pytest.mark.parametrize("around", ["{}", "Das ist {} von mir.", "({}), ja", "{}님, {}에서"])
def test_protected(span, around):
    assert set(spans(around.replace("{}", span))) == {span}


@pytest.mark.parametrize(
    "span",
    [
        span
        for kind in ("braces", "C", "shell", "names", "underscores, brackets, hashes")
        for span in SPANS[kind].split(" ")
    ],
)
def test_korean_before_and_after_it(span):
    assert spans(f"문서{span}을") == [span]


ORDINARY = r"""
100%ige Sicherheit
50% der Leute
100 % der Leute
5 %
5%
50% off, 20% discount
zwischen 5% und 10%
5%-10%
zwischen 5 %und 10 %
%-Satz, der 5-%-Anteil
50%s
%50 indirim, %99 pamuk
%1.5
$1.50
$1,000
Preis: $
US$ 5, A$AP
a@b
um @ 5
{siehe oben}
{
}
a < b, b > a, a <b und c> d
x<=y, a<-b->c, <3, </3, <>
<<Hund>>
größer als >5 und <10
2 : 1
2:1
10:30
10:30:15 Uhr
Hinweis: Der Hund
Hinweis:der Hund
Liebe Mitarbeiter:innen
:-) :) :D :-P :( :p :o) ;-) 8:)
\o/ ¯\_(ツ)_/¯
C:\new
C:\temp\new.txt
\\server\new\table
and/or
____ (Name)
a_b_c
Sa_ve as, fo_r all, New_York, my_longName, name_
TODAY(), file(s), print (), (), a*.b, **.c
Auto_Width, P_DF, HT_TP, Open_Gl, Multiplayer_AI^Default, x_ID
[siehe oben]
[sic], [1], [2, 3]
a[i] = b[j]
(a) [b] (c)
#1
#Hund
Nr. #5#
C# und F#
AT&T, R&D;
5' 3"
www, wow, WWW
http: //x
ein Wort - noch eins
"""


@pytest.mark.parametrize("text", [line for line in ORDINARY.splitlines() if line])
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
        ("%1 of %2 files, %5 more", ["%1", "%2"]),
        ("%5", []),
        ("$1 of %2", ["$1"]),
        ("%s%s%d%%", ["%s", "%s", "%d", "%%"]),
        ("%%s", ["%%"]),
        ("%d:%02d, %Y-%m-%d", ["%d", "%02d", "%Y", "%m", "%d"]),
        ("%name%%count%", ["%name%", "%count%"]),
        ("$user's, $name-Datei, $a.", ["$user", "$name", "$a"]),
        ("Zeile\\nZeile", ["\\n"]),
        ("# Hunde, #마리, 총#개, #-mal", ["#", "#", "#", "#"]),
        ("@user, :name. :id", ["@user", ":name", ":id"]),
        ("https://a.de/b(c und", ["https://a.de/b(c"]),
        ("(https://a.de/), https://", ["https://a.de/"]),
    ],
)
def test_prices_and_numbered_placeholders(text, protected):
    assert spans(text) == protected


SYNTAX = {
    "[das Haus](https://x.org) [a][1] ![Bild](a_(b).png)": [
        *("[", "](https://x.org)", "[", "][1]", "![", "](a_(b).png)"),
    ],
    '[[a](b)](<c d> "e") [ja]': ["[", "[", "](b)", '](<c d> "e")'],
    "[ja] [offen": ["["],
    "Haus](https://x.org)": ["](https://x.org)"],
    "<0>Ein</0> <1/> <b>Hund</b> <Name> <br/>": ["<0>", "</0>", "<1/>", "<b>", "</b>", "<br/>"],
    "{n, plural, other {총 #마리}}": ["{n, plural, other {", "}}"],
    "{n, plural, one {# Hund} other {# Hunde}} {n}": ["{n, plural, one {", "} other {", "}}"],
    "{n,plural,offset:1 =0{kein Hund}one{{name}}other{{name} und #}}": [
        *("{n,plural,offset:1 =0{", "}one{", "}other{", "}}"),
    ],
    "{g, select, male {{n, plural, one {a} other {b}}} other {c}}": [
        *("{g, select, male {", "{n, plural, one {", "} other {", "}}", "} other {", "}}"),
    ],
}


@pytest.mark.parametrize("text", SYNTAX)
def test_syntax_is_what_words_are_in(text):
    elements = split_protected(text)
    assert [one.raw for one in elements if isinstance(one, Atom) and one.is_syntax] == SYNTAX[text]
    parts = with_protected(elements, lambda one: one.is_syntax)
    assert joined(parts) == text
    assert [one.raw for one in parts if isinstance(one, Atom)] == SYNTAX[text]


HOSTILE = (
    "{ } {{ {% <% < </ <a [ ![ ]( ](< ][ [[ [^ (( ` % %% %a %( %1$ %- %1. $ $( $a. $1 @ @: a@b. : :a __ __a_ # ##a"
)
HOSTILE += r" abc_ abc_def \ \n C:\ \\ {a, {a,plural, {a,plural,one{ }a {a,date, http:// https://a( www. <https://"


@pytest.mark.parametrize("opening", [*HOSTILE.split(" "), '<a b="', "](a '"])
@pytest.mark.parametrize("filling", ["", "a", " ", "[", "}", " b=c"])
def test_hostile_text_takes_milliseconds(opening, filling):
    for text in ((opening + filling) * 10_000, opening * 5_000 + filling * 5_000):
        assert any(seconds(text[:10_000]) < 0.25 for _ in range(3)), "quadratic time is seconds"


def seconds(text: str) -> float:
    start = time.process_time()
    split_protected(text)
    return time.process_time() - start


@pytest.mark.parametrize("span", [*ONES, *SYNTAX, "$1 $2", "%1 %2"])
def test_the_quick_look_misses_nothing(span):
    """Of whatever part of it."""
    for start, end in itertools.combinations(range(len(span) + 1), 2):
        text = span[start:end]
        assert _LIKELY.search(text) is not None or _matches(text) == []


def test_the_quick_look_is_enough_for_most_text():
    assert (
        _LIKELY.search("Wow: »Ein Mann« (40) läuft um 10:30 Uhr – 3,5 km; was sonst? Ja! «What's up?» 2+2=4 & so")
        is None
    )


@given(st.text(alphabet="a {}%s$1`@.:/w(x)d한<>[]#_,", max_size=40))
def test_joined_again_they_are_the_text(text):
    assert joined(split_protected(text)) == text


@given(st.text(alphabet="a {}%s$1`@.:/w(x)d한<>[]#_,é\u0301ी\u3002", max_size=40))
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
