"""A plugin of pytest: which functions each test enters, or only the tests that are asked for, in their order.

MUTANTS_REACH=FILE writes the first, where the code tells `reached` what is entered (see `reaching.py`);
MUTANTS_TESTS=FILE, a JSON list of ids, asks for the second.
"""

from __future__ import annotations

import functools
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import reached

REACH, TESTS = os.environ.get("MUTANTS_REACH"), os.environ.get("MUTANTS_TESTS")

_lru_cache = functools.lru_cache
_caches: list[Any] = []


def _watched_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """`functools.lru_cache`, whose caches can be emptied: a test that finds an answer there enters nothing."""
    if callable(maxsize):
        _caches.append(_lru_cache(maxsize))
        return _caches[-1]

    def decorate(function: Any) -> Any:
        _caches.append(_lru_cache(maxsize, typed)(function))
        return _caches[-1]

    return decorate


class Watch:
    """Collects what is entered: of each test, and of each fixture that several tests share."""

    def __init__(self) -> None:
        self.of_test: dict[str, set[str]] = {}
        self.of_fixture: dict[Any, set[str]] = defaultdict(set)
        self.shared: dict[str, list[Any]] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any):
        before = set(reached.functions)
        reached.functions.clear()
        try:
            return (yield)
        finally:
            self.of_fixture[fixturedef] |= reached.functions
            reached.functions |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any):
        for cache in _caches:
            if cache.__module__.startswith(("headway", "tests", "test_")):
                cache.cache_clear()
        reached.functions.clear()
        try:
            return (yield)
        finally:
            self.of_test[item.nodeid] = set(reached.functions)
            definitions = item._fixtureinfo.name2fixturedefs.values()
            self.shared[item.nodeid] = [one for several in definitions for one in several if one.scope != "function"]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        found = {}
        for test, entered in self.of_test.items():
            if test not in self.failed:
                every = entered.union(*(self.of_fixture[one] for one in self.shared[test]))
                found[test] = {"seconds": round(self.seconds[test], 3), "entered": sorted(every)}
        name = f"{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}.json"
        (Path(str(REACH)) / name).write_text(json.dumps(found))


class Choice:
    """Runs the tests that are asked for and names the first that fails."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        places = {test: place for place, test in enumerate(json.loads(Path(str(TESTS)).read_text()))}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in places])
        items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            Path(f"{TESTS}.failed").write_text(report.nodeid)


def pytest_configure(config: Any) -> None:
    if REACH:
        config.pluginmanager.register(Watch())
    if TESTS:
        config.pluginmanager.register(Choice())


if REACH:
    functools.lru_cache = _watched_cache  # type: ignore[assignment]
