"""Schemathesis makes requests of all kinds from the OpenAPI description, right and wrong ones."""

import pytest
from benchmarks.load import ServerProcess
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

schemathesis = pytest.importorskip("schemathesis")
ROUTES = ["POST /translate", "POST /detect", "POST /inspect", "POST /align", "GET /languages", "GET /frontend/settings"]
ROUTES += ["GET /health", "GET /ready", "GET /metrics", "POST /translate_file"]


@pytest.fixture(scope="module")
def server(trained):
    with ServerProcess(trained, "--timeout", 5) as server:
        yield server


@pytest.fixture(scope="module")
def operations(server):
    description = schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/openapi.json")
    return {one.ok().label: one.ok() for one in description.get_all_operations()}


def test_all_routes_are_described(operations):
    assert set(operations) == set(ROUTES)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("route", ROUTES)
def test_no_case_is_a_defect(operations, route, mode):
    check(operations[route], mode, 30)


def check(operation, mode, cases):
    """Never a defect; an error is JSON, and one that is described."""

    @settings(max_examples=cases, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case):
        answer = case.call()
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        if answer.status_code >= 400:
            assert set(answer.json()) <= {"error", "status"}

    try:
        ask()
    except Unsatisfiable:
        assert mode is schemathesis.GenerationMode.NEGATIVE, "there are no wrong requests to a route without fields"
