"""The generated corpus: the target is a function of the source, no date is in two splits."""

import datetime
import re
from calendar import month_name

import pytest

from headway.corpora.dates import dates_corpus
from headway.errors import UserError


@pytest.fixture(scope="module")
def corpus():
    return dates_corpus("en", "ko", sizes=(3000, 300, 300))


def test_the_target_is_a_function_of_the_source(corpus):
    meaning = {}
    for pairs in corpus.pairs.values():
        for source, target in pairs:
            assert meaning.setdefault(source, target) == target


def test_no_date_is_in_two_splits(corpus):
    dates = {
        split: {tuple(re.findall(r"\d+", target)[:3]) for _, target in pairs} for split, pairs in corpus.pairs.items()
    }
    assert not dates["train"] & dates["test"]
    assert not dates["train"] & dates["valid"]
    assert not dates["valid"] & dates["test"]


def test_pairs_mean_the_same_moment(corpus):
    weekdays = "월화수목금토일"
    for source, target in corpus.pairs["train"]:
        year, month, day, *clock = map(int, re.findall(r"\d+", target))
        date = datetime.date(year, month, day)
        assert 1900 <= year <= 2100
        assert str(year) in source
        figures = re.match(r"(\d\d?)(?: / |/)(\d\d?)(?: / |/)\d{4}\b", source)  # 03/04/1999: en has the month first
        if figures:
            assert tuple(map(int, figures.groups())) == (month, day)
        else:
            assert re.search(rf"\b{date.strftime('%b')}", source)
        weekday = re.search("(.)요일", target)
        assert (weekday is not None) == (date.strftime("%a") in source)
        assert weekday is None or weekdays[date.weekday()] == weekday.group(1)
        if clock:
            hour = clock[0] % 12 + (12 if "오후" in target else 0)
            written = re.search(r"(\d+):(\d+)( [AP]M)?$", source)
            found = (
                int(written.group(1))
                if not written.group(3)
                else int(written.group(1)) % 12 + 12 * ("P" in written.group(3))
            )
            assert (found, int(written.group(2))) == (hour, clock[1])


def test_alignments_join_the_words_of_the_same_part(corpus):
    """The words are recognised by their form, not by the pattern that wrote them."""
    source_forms = {
        "month day year": r"\d\d?/\d\d?/\d{4},?",
        "weekday": r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,",
        "month": r"[A-Z][a-z]{2,}",
        "day": r"\d\d?,",
        "year": r"\d{4},?",
        "clock": r"\d+:\d\d",
        "half": r"[AP]M",
    }
    target_forms = {
        "weekday": r".요일",
        "month": r"\d+월",
        "day": r"\d+일",
        "year": r"\d+년",
        "clock": r"\d+:\d\d",
        "half": r"오[전후]",
    }

    def parts(text, forms):
        apart = re.match(r"(\d\d) / (\d\d) / (\d{4},?)", text)
        named = ["month", "", "day", "", "year"] if apart else []
        return named + [
            next(name for name, form in forms.items() if re.fullmatch(form, word))
            for word in text.split()[len(named) :]
        ]

    for split, pairs in corpus.pairs.items():
        for (source, target), alignment in zip(pairs, corpus.alignments[split], strict=True):
            one, other = parts(source, source_forms), parts(target, target_forms)
            wanted = [f"{i}-{j}" for i, part in enumerate(one) for j, same in enumerate(other) if same in part.split()]
            if "half" in other and "half" not in one:  # 15:05 is 오후 and 3:05
                wanted.append(f"{one.index('clock')}-{other.index('half')}")
            assert sorted(alignment.split()) == sorted(wanted)


@pytest.mark.parametrize(
    ("source", "first", "second"), [("en", "month", "day"), ("en_GB", "day", "month"), ("fr", "day", "month")]
)
def test_in_figures_the_language_says_what_comes_first(source, first, second):
    """So that order is meaning, and the truth of a corpus is never in doubt. The target spells the month."""
    seen = {"close": 0, "apart": 0}
    for text, translation in dates_corpus(source, "en" if source != "en" else "en_GB", sizes=(600, 1, 1)).pairs[
        "train"
    ]:
        if found := re.match(r"(\d\d?)( ?)/ ?(\d\d?) ?/ ?(\d{4})", text):
            name = next(month for month in month_name[1:] if month in translation)
            day = int(re.search(r"\b(\d\d?)\b", translation.split(" at ")[0])[1])
            parts = {"month": list(month_name).index(name), "day": day}
            assert (int(found[1]), int(found[3])) == (parts[first], parts[second])
            seen["apart" if found[2] else "close"] += 1
    assert min(seen.values()) > 20


def test_it_is_the_same_every_time(corpus):
    assert dates_corpus("en", "ko", sizes=(3000, 300, 300)) == corpus


@pytest.mark.parametrize("target", ["de", "ja", "ar", "th"])
def test_other_locales(target):
    corpus = dates_corpus("en", target, sizes=(50, 10, 10))
    assert [len(pairs) for pairs in corpus.pairs.values()] == [50, 10, 10]
    assert all(source and translation for source, translation in corpus.pairs["train"])


def test_unknown_locale():
    with pytest.raises(UserError, match="'xx'"):
        dates_corpus("xx", "ko")
