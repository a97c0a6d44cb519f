"""Requests that follow the OpenAPI document, and ones that do not, by schemathesis: the server never answers with 5xx
but where the database is away.
"""

from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance
from tests.surfaces.web.conftest import Served

EVENTS = "/api/v1/events"
# Asked of a small network, so that most of their options are reached: names that nobody knows are refused at once.
LONG = ("/api/v1/plan", "/api/v1/scaling", "/api/v1/advise")
SMALL = {"model": "alexnet", "device": "V100", "batch": 8}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]


def test_no_request_breaks_the_server(server: Served) -> None:
    document = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=60).json()
    described = schemathesis.openapi.from_dict(document)
    described.config.update(base_url=server.url)
    asked = []
    for found in described.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=5 if operation.path in LONG else 8,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Any) -> None:
            path = case.operation.path
            if path == EVENTS:
                listen(server.url, case)
                return
            if path in LONG and isinstance(case.body, dict):
                small = {name: value for name, value in SMALL.items() if path != "/api/v1/plan" or name != "device"}
                case.body = {**case.body, **small}
            case.validate_response(case.call(timeout=150), checks=CHECKS)

        ask()
        asked.append(operation.label)
    assert len(asked) > 20


def listen(url: str, case: Any) -> None:
    """The stream has no end: its beginning is looked at."""
    with httpx.stream("GET", url + EVENTS, params=dict(case.query or {}), timeout=60) as answer:
        assert answer.status_code < 500
        kind = answer.headers["content-type"]
        assert kind.startswith("text/event-stream" if answer.status_code == 200 else "application/problem+json")
        if answer.status_code == 200:
            assert next(answer.iter_lines()).startswith("retry:")
