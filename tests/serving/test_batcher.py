"""Every sentence gets its own answer, however calls are shared, fail or are given up."""

import asyncio
import random
import threading
import time

import pytest

from headway.serving.batcher import CHARACTERS_PER_BATCH, Batcher, QueueFullError


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


def run(model, work, **settings):
    async def running():
        batcher = Batcher(model, **{"workers": 2, "batch_size": 8, "queue": 100, "linger": 0.002, **settings})
        try:
            return await work(batcher)
        finally:
            model.go_on.set()
            batcher.close()

    return asyncio.run(running())


async def until(condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never was so")


def test_each_request_gets_its_own_answers():
    chooser = random.Random(1)
    requests = [
        (chooser.choice("ab"), ["w" * chooser.randint(1, 50) + str(place) for place in range(chooser.randint(0, 20))])
        for _ in range(60)
    ]
    model = Model()

    async def work(batcher):
        return await asyncio.gather(*(batcher.submit(group, texts) for group, texts in requests))

    answers = run(model, work, queue=10_000)
    assert answers == [[f"{group}{text.upper()}" for text in texts] for group, texts in requests]
    assert max(len(texts) for _, texts in model.calls) == 8
    assert model.most_running == 2
    assert sum(len(texts) for _, texts in model.calls) == sum(len(texts) for _, texts in requests)


def test_what_comes_within_the_linger_shares_a_call():
    model = Model()

    async def work(batcher):
        return await asyncio.gather(*(batcher.submit("g", [text]) for text in "abcde"))

    run(model, work, linger=0.05)
    assert [sorted(texts) for _, texts in model.calls] == [list("abcde")]


def test_more_that_keeps_coming_is_waited_for_but_not_for_ever():
    model = Model()

    async def work(batcher):
        asked = []
        for number in range(40):
            asked.append(asyncio.create_task(batcher.submit("g", [str(number)])))
            await asyncio.sleep(0.01)
        await asyncio.gather(*asked)

    run(model, work, workers=1, linger=0.02, batch_size=100)
    sizes = [len(texts) for _, texts in model.calls]
    assert sum(sizes) == 40
    assert 1 < len(sizes) < 10


def test_warming_up_reaches_every_worker():
    model = Model(seconds=0.05)

    async def work(batcher):
        await asyncio.to_thread(batcher.warm_up, "g", ["a", "b"])
        assert await batcher.submit("g", ["c"]) == ["gC"]

    run(model, work)
    assert [texts for _, texts in model.calls] == [["a", "b"], ["a", "b"], ["c"]]
    assert model.most_running == 2


def test_the_oldest_goes_first_with_those_of_its_length():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        first = asyncio.create_task(batcher.submit("g", ["first"]))
        await until(lambda: model.calls)
        lengths = [5, 90, 6, 91, 4, 92, 5, 93]
        others = [asyncio.create_task(batcher.submit("g", ["w" * length])) for length in lengths]
        await until(lambda: batcher.waiting == 8)
        model.go_on.set()
        await asyncio.gather(first, *others)

    run(model, work, workers=1, batch_size=4)
    assert [sorted(map(len, texts)) for _, texts in model.calls[1:]] == [[4, 5, 5, 6], [90, 91, 92, 93]]


def test_a_call_is_bounded_in_characters():
    model = Model()
    texts = ["w" * 5000 for _ in range(10)]
    run(model, lambda batcher: batcher.submit("g", texts), workers=1)
    assert max(sum(map(len, call)) for _, call in model.calls) <= CHARACTERS_PER_BATCH


def test_one_failing_text_fails_its_request_alone():
    model = Model()

    async def work(batcher):
        return await asyncio.gather(*(batcher.submit("g", [text]) for text in "abxcd"), return_exceptions=True)

    found = run(model, work)
    assert [answer for answer in found if isinstance(answer, list)] == [["gA"], ["gB"], ["gC"], ["gD"]]
    assert isinstance(found[2], ValueError)


def test_beyond_the_queue_nothing_is_taken():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        running = asyncio.create_task(batcher.submit("g", ["a"]))
        await until(lambda: model.calls)
        waiting = asyncio.create_task(batcher.submit("g", ["b"] * 5))
        await until(lambda: batcher.waiting == 5)
        assert batcher.is_full
        with pytest.raises(QueueFullError):
            await batcher.submit("g", ["c"])
        model.go_on.set()
        await asyncio.gather(running, waiting)
        assert await batcher.submit("g", ["c"]) == ["gC"]
        assert batcher.waiting == 0

    run(model, work, workers=1, queue=5)


def test_who_gives_up_frees_the_place():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        running = asyncio.create_task(batcher.submit("g", ["a"]))
        await until(lambda: model.calls)
        gone = asyncio.create_task(batcher.submit("g", ["gone"] * 9))
        stays = asyncio.create_task(batcher.submit("g", ["b"]))
        await until(lambda: batcher.waiting == 10)
        gone.cancel()
        await until(lambda: batcher.waiting == 1)
        running.cancel()  # a call that runs already is not stopped, and harms nobody
        model.go_on.set()
        assert await stays == ["gB"]

    run(model, work, workers=1)
    assert "gone" not in [text for _, texts in model.calls for text in texts]


def test_a_call_that_does_not_end_is_seen():
    model = Model()

    async def work(batcher):
        model.go_on.clear()
        running = asyncio.create_task(batcher.submit("g", ["a"]))
        await until(lambda: model.calls)
        await asyncio.sleep(0.05)
        assert 0.05 <= batcher.longest_call < 5
        model.go_on.set()
        await running
        await until(lambda: batcher.longest_call == 0)

    run(model, work)
