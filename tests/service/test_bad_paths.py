"""Paths, methods and queries that are not the service's, or that try to leave it."""

import pytest

from service.inprocess import Service, answer_of, request_of
from service.refused import check_headers, check_refused
from service.systems_served import DOCUMENT


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def one(service):
    return service.create("one", system=DOCUMENT)


TRICKS = [
    "..", ".", "../..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%2f..%2fone",
    "one%2f..%2fone",
    "%00", "one%00", "one%0a", "one%0d%0aX-Evil:%201", "%ff%fe", "%c3%a9", "%u0041", "one;x=1", "%",
    "one%20", "one.", "-one", "_one", "ONE", "%6fne%2f", "'%20OR%201=1--", "%3Cscript%3E", "one//",
    "x" * 65, "x" * 8000, "*", "~", "%F0%9F%98%80", "{id}", "one\\", "one%5c..",
]  # fmt: skip


@pytest.mark.parametrize("id_", TRICKS)
def test_tricks_in_ids(service, one, id_):
    version = one.version
    for method, path in [
        ("GET", f"/v1/experiments/{id_}"),
        ("GET", f"/v1/experiments/{id_}/state"),
        ("GET", f"/v1/experiments/{id_}/log.parquet"),
        ("POST", f"/v1/experiments/{id_}/decisions"),
        ("POST", f"/v1/experiments/{id_}/pause"),
    ]:
        said = request_of(path, "Content-Length: 2", method=method, body=b"{}")
        answer = answer_of(service.sent(said))
        assert answer.status_code in (404, 405), (path, answer.text)
        check_refused(answer, answer.status_code, answer.json().get("field"))
        assert "X-Evil" not in answer.headers
    assert one.version == version


FILES = [
    "..%2fapp.py",
    "../app.py",
    "%2e%2e/%2e%2e/errors.py",
    "..%5capp.py",
    "",
    "%00",
    "x" * 5000,
]
FILES += [
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "page.css%00.js",
    "....//app.py",
    "nothing",
]


@pytest.mark.parametrize("path", FILES)
def test_only_the_files_of_the_page_are_served(service, path):
    check_refused(answer_of(service.sent(request_of(f"/page/{path}", method="GET"))), 404)


UNKNOWN = ["/v1", "/v1/", "/v2/experiments", "/v1/experiments/", "/v1/experiments/one/", "/docs"]
UNKNOWN += ["/redoc", "/.git/config", "/favicon.ico", "/v1/experiments/one/nothing", "//", "/page"]
UNKNOWN += ["/v1/experiments/one/decisions/0", "/V1/experiments", "/openapi.json/", "/metrics/"]


@pytest.mark.parametrize("path", UNKNOWN)
def test_unknown_paths(service, one, path):
    for method in ("GET", "POST", "DELETE"):
        said = request_of(path, "Content-Length: 2", method=method, body=b"{}")
        check_refused(answer_of(service.sent(said)), 404)


KNOWN = {
    "/v1/experiments": {"GET", "POST"},
    "/v1/experiments/one": {"GET"},
    "/v1/experiments/one/decisions": {"POST"},
    "/v1/experiments/one/rewards": {"POST"},
    "/v1/experiments/one/arms": {"POST"},
    "/v1/experiments/one/arms/retire": {"POST"},
    "/v1/experiments/one/model": {"POST"},
    "/v1/experiments/one/refit": {"POST"},
    "/v1/experiments/one/pause": {"POST"},
    "/v1/experiments/one/resume": {"POST"},
    "/v1/experiments/one/state": {"GET"},
    "/v1/experiments/one/events": {"GET"},
    "/v1/experiments/one/samples": {"GET"},
    "/v1/experiments/one/log.parquet": {"GET"},
    "/v1/experiments/one/live": {"GET"},
    "/healthz": {"GET"},
    "/readyz": {"GET"},
    "/metrics": {"GET"},
    "/": {"GET"},
}


@pytest.mark.parametrize("path", KNOWN)
def test_other_methods(service, one, path):
    version = one.version
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - KNOWN[path]:
        answer = service.client.request(method, path, json={})
        check_refused(answer, 405)
        assert answer.headers["Allow"]
        assert "Access-Control-Allow-Origin" not in answer.headers
    head = service.client.head(path)
    check_headers(head)
    assert (head.status_code, head.content) == (405, b"")
    assert one.version == version


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("events?after=-1", "after"),
        ("events?after=1e9", "after"),
        ("events?after=9007199254740993", "after"),
        (f"events?after={'9' * 5000}", "after"),
        ("events?after=NaN", "after"),
        ("events?after=%00", "after"),
        ("events?limit=0", "limit"),
        ("events?limit=10001", "limit"),
        ("events?limit=", "limit"),
        ("events?limit=1;DROP%20TABLE%20events", "limit"),
        ("samples?limit=-5", "limit"),
        ("samples?limit=1001", "limit"),
        ("samples?limit=%ff", "limit"),
    ],
)
def test_queries_of_the_wrong_form(service, one, query, field):
    check_refused(service.get(f"{one.path}/{query}"), 422, field)
