"""Every sentence gets its own answer, however calls are shared, fail or are given up."""

import asyncio
import random
import threading
import time

import pytest

from headway.serving.batcher import (
    FEWEST_TO_SHARE,
    LATELY,
    PATIENCE,
    RECENT,
    SHARES,
    SLOW,
    WORK_PER_BATCH,
    Batcher,
    QueueFullError,
)
from tests.serving.conftest import until
from tests.serving.virtual_time import run_in_virtual_time


class Model:
    """Answers in capitals; notes its calls; fails for a text with an x; waits while `go_on` isn't set."""

    def __init__(self, seconds=0.0):
        self.calls, self.seconds = [], seconds
        self.go_on = threading.Event()
        self.go_on.set()
        self.running, self.most_running = 0, 0
        self._lock = threading.Lock()

    def __call__(self, group, texts):
        with self._lock:
            self.calls.append((group, texts))
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        self.go_on.wait(30)
        time.sleep(self.seconds)
        with self._lock:
            self.running -= 1
        if any("x" in text for text in texts):
            raise ValueError("x")
        return [f"{group}{text.upper()}" for text in texts]


def ask(batcher, texts, group="g", client=None, **options):
    """By default each request is that of another client."""
    return batcher.submit([(group, text) for text in texts], client=object() if client is None else client, **options)


def run(model, work, virtual=None, **settings):
    """`virtual`: seconds that a call of the model takes of an exact clock; else the clock is the real one."""

    async def running():
        batcher = Batcher(model, **{"workers": 2, "batch_size": 8, "queue": 1000, "linger": 0.002, **settings})
        try:
            return await work(batcher)
        finally:
            model.go_on.set()
            batcher.close()

    return asyncio.run(running()) if virtual is None else run_in_virtual_time(running(), virtual)


def test_each_request_gets_its_own_answers():
    chooser = random.Random(1)
    requests = [
        (chooser.choice("ab"), ["w" * chooser.randint(1, 50) + str(place) for place in range(chooser.randint(0, 20))])
        for _ in range(60)
    ]
    model = Model()

    async def work(batcher):
        return await asyncio.gather(*(ask(batcher, texts, group) for group, texts in requests))

    answers = run(model, work, queue=10_000)
    assert answers == [[f"{group}{text.upper()}" for text in texts] for group, texts in requests]
    assert max(len(texts) for _, texts in model.calls) == 8
    assert model.most_running == 2
    asked = [(group, text) for group, texts in requests for text in texts]
    assert set(asked) == {(group, text) for group, texts in model.calls for text in texts}


def test_what_comes_within_the_linger_shares_a_call():
    model = Model()

    async def work(batcher):
        return await asyncio.gather(*(ask(batcher, [text]) for text in "abcde"))

    run(model, work, virtual=0.0, linger=0.05)
    assert [sorted(texts) for _, texts in model.calls] == [list("abcde")]


def test_more_that_keeps_coming_is_waited_for_until_there_is_enough():
    model = Model()

    async def work(batcher):
        asked = []
        for number in range(40):
            asked.append(asyncio.create_task(ask(batcher, [str(number)])))
            await asyncio.sleep(0.01)
        await asyncio.gather(*asked)

    run(model, work, virtual=0.0, workers=1, linger=0.02, batch_size=100)
    assert [len(texts) for _, texts in model.calls] == [FEWEST_TO_SHARE] * 5


def test_those_who_were_answered_are_waited_for_but_not_for_ever():
    """They come again every 0.03 s, which is longer than the linger: six of the eight within PATIENCE lingers."""
    model = Model()

    async def work(batcher):
        await ask(batcher, [str(number) for number in range(8)])
        asked = []
        for number in range(12):
            asked.append(asyncio.create_task(ask(batcher, [str(number)])))
            await asyncio.sleep(0.03)
        await asyncio.gather(*asked)

    run(model, work, virtual=0.0, workers=1, linger=0.02, batch_size=100)
    assert [len(texts) for _, texts in model.calls] == [8, 6, 6]
    assert 5 * 0.03 < PATIENCE * 0.02 < 6 * 0.03


def test_clients_that_ask_again_and_again_are_shared_evenly():
    """Those who were just answered are waited for: with what waits already they make a worker's part."""
    model = Model()

    async def client(batcher, name):
        await asyncio.sleep(0.016 * name)
        for number in range(8):
            await ask(batcher, [f"{name} {number}"])
            await asyncio.sleep(0.02)

    async def work(batcher):
        await asyncio.gather(*(client(batcher, name) for name in range(40)))

    run(model, work, virtual=0.2, batch_size=64, linger=0.01)
    settled = [len(texts) for _, texts in model.calls[7:-4]]
    assert sum(settled) / len(settled) > 15


def test_requests_for_the_same_text_count_each():
    """All ten who were answered have asked again, two of them for the same text: nobody else is waited for."""
    model = Model()

    async def work(batcher):
        await ask(batcher, [str(number) for number in range(10)])
        start = asyncio.get_running_loop().time()
        await asyncio.gather(*(ask(batcher, [str(max(number, 1))]) for number in range(10)))
        return asyncio.get_running_loop().time() - start

    assert run(model, work, virtual=0.0, workers=1, batch_size=100, linger=0.01) == 0
    assert [len(texts) for _, texts in model.calls] == [10, 9]


def test_idle_workers_share_what_is_there_whatever_was_before():
    model = Model()

    async def work(batcher):
        for count in (60, 20):
            await ask(batcher, [str(number) for number in range(count)], client="one")

    run(model, work, batch_size=64)
    assert [len(texts) for _, texts in model.calls] == [30, 30, 10, 10]


def test_one_client_alone_waits_no_longer_than_the_linger():
    model = Model()

    async def work(batcher):
        await ask(batcher, [str(number) for number in range(30)])
        await ask(batcher, ["a"])  # it is waited for whether the others come back
        start = asyncio.get_running_loop().time()
        for number in range(10):
            await ask(batcher, [str(number)])
        return asyncio.get_running_loop().time() - start

    assert run(model, work, virtual=0.0, linger=0.01) == pytest.approx(10 * 0.01)


def test_warming_up_reaches_every_worker():
    model = Model(seconds=0.05)

    async def work(batcher):
        await asyncio.to_thread(batcher.warm_up, lambda: model("g", ["a", "b"]))
        assert await ask(batcher, ["c"]) == ["gC"]

    run(model, work)
    assert [texts for _, texts in model.calls] == [["a", "b"], ["a", "b"], ["c"]]
    assert model.most_running == 2


def test_the_oldest_goes_first_with_those_of_its_length():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        first = asyncio.create_task(ask(batcher, ["first"]))
        await until(lambda: model.calls)
        lengths = [5, 90, 6, 91, 4, 92, 5, 93]
        others = [asyncio.create_task(ask(batcher, [f"{n:w<{length}}"])) for n, length in enumerate(lengths)]
        await until(lambda: batcher.waiting == 8)
        model.go_on.set()
        await asyncio.gather(first, *others)

    run(model, work, workers=1, batch_size=4)
    assert [sorted(map(len, texts)) for _, texts in model.calls[1:]] == [[4, 5, 5, 6], [90, 91, 92, 93]]


def test_a_call_is_bounded_in_work():
    model = Model()
    texts = [f"{number}" + "w" * 1000 for number in range(30)]
    for weight in (1, 5):
        model.calls.clear()
        options = {"workers": 1, "batch_size": 100, "work_of": lambda _, text, weight=weight: weight * len(text)}
        run(model, lambda batcher: ask(batcher, texts), **options)
        largest = max(sum(map(len, call)) for _, call in model.calls)
        assert 0.8 * WORK_PER_BATCH < weight * largest <= WORK_PER_BATCH


def test_one_failing_text_fails_its_request_alone():
    model, failures = Model(), []

    async def work(batcher):
        return await asyncio.gather(*(ask(batcher, [text]) for text in "abxcd"), return_exceptions=True)

    found = run(model, work, on_failure=failures.append)
    assert list(map(type, failures)) == [ValueError]
    assert [answer for answer in found if isinstance(answer, list)] == [["gA"], ["gB"], ["gC"], ["gD"]]
    assert isinstance(found[2], ValueError)


def test_beyond_the_queue_nothing_is_taken():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        running = asyncio.create_task(ask(batcher, ["a"]))
        await until(lambda: model.calls)
        waiting = [asyncio.create_task(ask(batcher, [f"b{number}", f"c{number}"])) for number in range(7)]
        waiting.append(asyncio.create_task(ask(batcher, ["b"])))
        await until(lambda: batcher.waiting == 15)
        waiting.append(asyncio.create_task(ask(batcher, ["d", "e"])))  # whose second sentence follows
        await until(lambda: batcher.waiting == 16)
        assert batcher.is_full
        with pytest.raises(QueueFullError):
            await ask(batcher, ["f"])
        model.go_on.set()
        await asyncio.gather(running, *waiting)
        assert await ask(batcher, ["d"]) == ["gD"]
        assert batcher.waiting == 0

    run(model, work, workers=1, queue=16)


def test_no_request_takes_more_than_its_share_of_the_queue():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        long = asyncio.create_task(ask(batcher, [f"a{number}" for number in range(5000)]))
        await until(lambda: model.calls)
        assert batcher.waiting <= 64 // SHARES
        others = [asyncio.create_task(ask(batcher, [f"b{number}"])) for number in range(50)]
        await until(lambda: batcher.waiting > 50)
        most = []
        model.go_on.set()
        while not long.done():
            most.append(batcher.waiting)
            await asyncio.sleep(0.001)
        assert max(most) <= 64
        assert await long == [f"gA{number}" for number in range(5000)]
        await asyncio.gather(*others)

    run(model, work, workers=1, queue=64, linger=0)


def test_no_client_takes_more_than_its_share_however_many_requests_it_sends():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        asked = [
            asyncio.create_task(ask(batcher, [f"a{number} {n}" for n in range(20)], client="many"))
            for number in range(10)
        ]
        await until(lambda: model.calls)
        await asyncio.sleep(0.01)
        assert batcher.waiting == 64 // SHARES
        other = asyncio.create_task(ask(batcher, ["b"], client="other"))
        await until(lambda: batcher.waiting == 64 // SHARES + 1)
        asked[3].cancel()
        model.go_on.set()
        assert await other == ["gB"]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [len(one) for one in found if isinstance(one, list)] == [20] * 9
        assert not any(one.places or one.jobs for one in batcher._clients.values())

    run(model, work, workers=1, batch_size=4, queue=64, linger=0)
    called = [texts for _, texts in model.calls]
    assert next(number for number, texts in enumerate(called) if "b" in texts) <= 2


def test_a_list_is_not_starved_by_clients_that_come_again_and_again():
    model = Model()

    async def single(batcher, name, end):
        number = 0
        while not end.is_set():
            await ask(batcher, [f"{name} {number}"], client=name)
            number += 1

    async def work(batcher):
        end = asyncio.Event()
        singles = [asyncio.create_task(single(batcher, f"single {name}", end)) for name in range(24)]
        await asyncio.sleep(1)
        started = asyncio.get_running_loop().time()
        await ask(batcher, [f"list {number}" for number in range(64)], client="list")
        took = asyncio.get_running_loop().time() - started
        end.set()
        await asyncio.gather(*singles)
        return took

    assert run(model, work, virtual=0.02, workers=1, linger=0) < 64 / 8 * 0.02 * 40


def test_clients_take_turns_by_what_they_were_served():
    """One that sends long texts waits longer for its next turn than one that sends short ones."""
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        first = asyncio.create_task(ask(batcher, ["begin"]))
        await until(lambda: model.calls)
        texts = {
            name: [f"{name}{number}" + "w" * size for number in range(30)] for name, size in (("l", 380), ("s", 0))
        }
        asked = [asyncio.create_task(ask(batcher, some, group=name, client=name)) for name, some in texts.items()]
        await until(lambda: batcher.waiting == 60)
        model.go_on.set()
        await asyncio.gather(first, *asked)

    run(model, work, workers=1, batch_size=1, queue=1000, linger=0)
    order = [group for group, _ in model.calls[1:]]
    assert order[:34].count("s") == 30


def test_the_last_idle_worker_is_for_other_clients():
    """One that fills all workers has them all only while it is alone."""
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        many = asyncio.create_task(ask(batcher, [f"many {number}" for number in range(60)], client="many"))
        await until(lambda: model.running == 2)
        model.go_on.set()
        await asyncio.sleep(0)
        await ask(batcher, ["first"], client="other")
        took = []
        for number in range(5):
            started = time.perf_counter()
            await ask(batcher, [f"other {number}"], client="other")
            took.append(time.perf_counter() - started)
        assert max(took) < 0.15, "it never waits for a call to end"
        assert not many.done()
        await many

    model.seconds = 0.1
    run(model, work, workers=2, batch_size=2, linger=0)


@pytest.mark.parametrize(
    ("call", "quiet", "waits"),
    [
        (2 * SLOW, RECENT + 5, 2 * SLOW),
        (2 * SLOW, LATELY + 5, 3 * SLOW),
        (SLOW / 2, RECENT + 5, 3 * SLOW / 4),
        (SLOW / 2, 1, SLOW / 2),
    ],
    ids=["slow calls, lately another", "slow calls, alone", "quick calls", "quick calls, another has just asked"],
)
def test_slow_calls_of_a_client_leave_a_worker_to_others(call, quiet, waits):
    """They would wait for the end of such a call, even if they have asked nothing for a while."""
    model = Model()

    async def work(batcher):
        await ask(batcher, ["first"], client="other")
        many = asyncio.create_task(ask(batcher, [f"many {number}" for number in range(200)], client="many"))
        await asyncio.sleep(call * round(quiet / call) + call / 2)
        started = asyncio.get_running_loop().time()
        await ask(batcher, ["second"], client="other")
        many.cancel()
        return asyncio.get_running_loop().time() - started

    assert run(model, work, virtual=call, batch_size=1, linger=0) == pytest.approx(waits)


def test_requests_take_turns():
    """A single sentence isn't behind all those of a list that came before."""
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        long = asyncio.create_task(ask(batcher, [f"long {number}" for number in range(100)]))
        await until(lambda: model.calls)
        single = asyncio.create_task(ask(batcher, ["of another length"]))
        await until(lambda: batcher.waiting >= 97)
        model.go_on.set()
        await asyncio.gather(long, single)

    run(model, work, workers=1, batch_size=4, queue=10_000, linger=0)
    places = [number for number, (_, texts) in enumerate(model.calls) if "of another length" in texts]
    assert places[0] <= 3


def test_a_text_that_waits_already_is_translated_once():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        running = asyncio.create_task(ask(batcher, ["a"]))
        await until(lambda: model.calls)
        same = [asyncio.create_task(ask(batcher, ["b", f"c{number}"])) for number in range(3)]
        await until(lambda: batcher.waiting == 4)
        same[0].cancel()
        await until(lambda: batcher.waiting == 3)
        model.go_on.set()
        assert await asyncio.gather(running, *same[1:]) == [["gA"], ["gB", "gC1"], ["gB", "gC2"]]

    run(model, work, workers=1)
    assert [text for _, texts in model.calls for text in texts].count("b") == 1


def test_an_admitted_request_has_its_rest():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        running = [asyncio.create_task(ask(batcher, [text])) for text in "abc"]
        await until(lambda: batcher.is_full)
        with pytest.raises(QueueFullError):
            await ask(batcher, ["d"])
        rest = asyncio.create_task(ask(batcher, ["d"], admitted=True))
        await until(lambda: batcher.waiting == 3)
        model.go_on.set()
        assert await rest == ["gD"]
        await asyncio.gather(*running)

    run(model, work, workers=1, queue=2, linger=0)


def test_who_gives_up_frees_the_place():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        running = asyncio.create_task(ask(batcher, ["a"]))
        await until(lambda: model.calls)
        gone = asyncio.create_task(ask(batcher, [f"gone {number}" for number in range(9)]))
        stays = asyncio.create_task(ask(batcher, ["b"]))
        await until(lambda: batcher.waiting == 10)
        gone.cancel()
        await until(lambda: batcher.waiting == 1)
        running.cancel()  # a call that runs already is not stopped, and harms nobody
        model.go_on.set()
        assert await stays == ["gB"]

    run(model, work, workers=1)
    assert not [text for _, texts in model.calls for text in texts if "gone" in text]


def test_a_call_that_does_not_end_is_seen():
    model = Model()

    async def work(batcher):
        assert batcher.longest_call == 0
        first = asyncio.create_task(ask(batcher, ["a"]))
        await asyncio.sleep(1)
        second = asyncio.create_task(ask(batcher, ["b"]))
        await asyncio.sleep(2)
        assert batcher.longest_call == 3
        await first
        assert batcher.longest_call == 9
        await second
        assert batcher.longest_call == 0

    run(model, work, virtual=10.0, linger=0)
