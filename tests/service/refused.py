"""What every refusal of the service has in common."""

from driftbandit.service.middleware import HEADERS

FORBIDDEN = ("Traceback", 'File "', "site-packages", "/src/driftbandit", ".py", "sqlite:/")


def check_headers(answer):
    """Every answer has the headers that browsers obey."""
    for name, value in HEADERS:
        assert answer.headers[name.decode()] == value.decode()


def check_refused(answer, status, field=None):
    """A problem document with the status and the field, which tells nothing of the inside."""
    check_headers(answer)
    assert answer.status_code == status, (answer.status_code, answer.text[:500])
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json()
    assert set(document) <= {"type", "title", "status", "detail", "field"}
    assert document["status"] == status
    assert document["detail"]
    assert document.get("field") == field, document
    assert len(answer.content) < 3000
    for text in FORBIDDEN:
        assert text not in answer.text
