"""Reports as Markdown."""

from driftbandit import report
from driftbandit.report import markdown


def test_blocks_as_markdown():
    blocks = [
        report.Heading("Part"),
        report.Text("word " * 40),
        report.Points(["one " * 40, "two"]),
        report.Facts({"seed": "0"}),
        report.Figure("below", "what it shows", lambda: 1 / 0, "drawn"),
        report.Figure("no file", "unseen", lambda: 1 / 0),
        report.Table(
            "above",
            ["a", "b"],
            [["x|y", report.Cell("1", note="(0–2)", tone="good")], ["z", report.Cell("")]],
        ),
    ]
    text = markdown.text(report.Report("Title", "", blocks), {"drawn": "picture.png"})
    lines = text.splitlines()
    assert lines[0] == "# Title"
    assert "## Part" in lines
    assert "no file" not in text
    assert max(map(len, lines)) <= 100
    assert lines.count("- two") == 1
    assert "- seed: 0" in lines
    assert "![what it shows](picture.png)" in lines
    assert lines[-4:] == ["| a | b |", "|---|---:|", r"| x\|y | **1** (0–2) |", "| z |  |"]
