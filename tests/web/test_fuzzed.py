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
from tests.web.conftest import Served

# Planning over all offers and endless streams are asked elsewhere; here they would take minutes.
LEFT_OUT = ("/api/v1/events", "/api/v1/plan", "/api/v1/scaling", "/api/v1/advise")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]


def test_no_request_breaks_the_server(server: Served) -> None:
    document = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=60).json()
    described = schemathesis.openapi.from_dict(document)
    described.config.update(base_url=server.url)
    asked = []
    for found in described.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if operation.path in LEFT_OUT:
            continue

        @given(case=operation.as_strategy())
        @settings(
            max_examples=8,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Any) -> None:
            case.validate_response(case.call(timeout=60), checks=CHECKS)

        ask()
        asked.append(operation.label)
    assert len(asked) > 15
