"""Requests that follow the OpenAPI document, and ones that do not, by schemathesis: the server never answers with 5xx
but where the database is away.
"""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance
from tests.web.conftest import Served

# Planning over all offers and endless streams are asked elsewhere; here they would take minutes.
LEFT_OUT = ("/api/v1/events", "/api/v1/plan", "/api/v1/scaling", "/api/v1/advise")

schema = schemathesis.pytest.from_fixture("described").exclude(path=list(LEFT_OUT))


@pytest.fixture
def described(server: Served) -> object:
    document = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=60).json()
    made = schemathesis.openapi.from_dict(document)
    made.config.update(base_url=server.url)
    return made


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_breaks_the_server(case: Any) -> None:
    answer = case.call()
    case.validate_response(answer, checks=[not_a_server_error, status_code_conformance, content_type_conformance])
