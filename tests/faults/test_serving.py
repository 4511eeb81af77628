"""A thousand requests of each kind to each route, made from the description: never a defect."""

import pytest
from benchmarks.load import ServerProcess

from tests.system.conftest import trained
from tests.system.test_serving_description import ROUTES, check, operations, schemathesis

__all__ = ["operations", "trained"]


@pytest.fixture(scope="module")
def server(trained):
    with ServerProcess(trained, "--timeout", 5) as server:
        yield server


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("route", ROUTES)
def test_no_case_is_a_defect(operations, route, mode):
    check(operations[route], mode, 1000)
