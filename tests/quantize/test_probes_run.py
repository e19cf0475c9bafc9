"""Probes with a real session: answers do not depend on the questions before, and a run can be interrupted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from damage_bundle import bigram_bundle

from seatrial.cli import run_command
from seatrial.errors import UserError
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.probes.page import PageJob, make_page
from seatrial.quantize.probes.run import (
    FILE,
    ProbePlan,
    _append,
    _finished,
    continue_text,
    filler_sentences,
    run_probes,
)

PLAN = ProbePlan("test", ((512, 3),), distractors=(0, 4))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return bigram_bundle(tmp_path_factory.mktemp("probes") / "bundle", vocabulary=600)


@pytest.fixture(scope="module")
def tokenizer(bundle):
    return Tokenizer.load(bundle.folder)


def silent(_what, _share):
    pass


def test_equal_bundles_copy_equally(bundle, tokenizer, tmp_path):
    found = run_probes(bundle, bundle, tokenizer, PLAN, tmp_path, silent, threads=1)
    assert found["pages"] == len(PLAN.jobs())
    assert found["all"]["harms"] == found["all"]["repairs"] == 0
    assert found["all"]["n"] == sum(cell["n"] for cell in found["kind"].values())
    assert set(found["language"]) == {"en", "zh"} and set(found["distractors"]) == {"0", "4"}


def test_an_interrupted_run_goes_on_and_ends_the_same(bundle, tokenizer, tmp_path):
    whole = run_probes(bundle, bundle, tokenizer, PLAN, tmp_path / "whole", silent, threads=1)
    file = tmp_path / "cut" / FILE
    file.parent.mkdir()
    lines = (tmp_path / "whole" / FILE).read_text(encoding="utf-8").splitlines(keepends=True)
    marked = json.loads(lines[0])
    marked["mark"] = "kept"
    file.write_text(json.dumps(marked) + "\n" + lines[1] + lines[2][:40], encoding="utf-8")
    shares = []
    again = run_probes(
        bundle,
        bundle,
        tokenizer,
        PLAN,
        tmp_path / "cut",
        lambda _what, share: shares.append(share),
        threads=1,
    )
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(PLAN.jobs()) and rows[0]["mark"] == "kept"
    assert again == whole
    assert shares == sorted(shares) and shares[-1] == 1


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0c"])
def test_an_answer_may_hold_what_ends_a_line_elsewhere(mark, tmp_path):
    rows = [{"page": "1", "written": f"周敏{mark}然"}, {"page": "2", "written": f"$4{mark}8"}]
    for row in rows:
        _append(tmp_path / FILE, row)
    before = (tmp_path / FILE).stat()
    assert list(_finished(tmp_path / FILE)) == rows
    after = (tmp_path / FILE).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)  # nothing was cut


@pytest.mark.parametrize("name", ["周敏然", "Leona Prattwell"])
def test_a_line_cut_anywhere_is_dropped_and_the_file_goes_on(name, tmp_path):
    file, row = tmp_path / FILE, {"page": "1", "written": name}
    _append(file, row)
    line = file.read_bytes()
    for cut in range(1, len(line)):  # also inside a hanzi
        file.write_bytes(line + line[:cut])
        assert list(_finished(file)) == [row]
        assert file.read_bytes() == line
        assert list(tmp_path.iterdir()) == [file]
    _append(file, row)
    assert list(_finished(file)) == [row, row]


def test_the_summary_gets_the_seed_and_the_draws(bundle, tokenizer, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(
        "seatrial.quantize.probes.run.summarize", lambda _pages, _plan, **how: given.update(how) or {}
    )
    plan = ProbePlan("seeded", ((512, 1),), distractors=(0,), languages=("en",), seed=7)
    run_probes(bundle, bundle, tokenizer, plan, tmp_path, silent, threads=1, draws=50)
    assert given == {"seed": 7, "draws": 50}


def test_contexts_longer_than_the_model_are_left_out_or_refused(bundle, tokenizer, tmp_path):
    plan = ProbePlan("long", ((16384, 1),))
    with pytest.raises(UserError, match="longer than the model"):
        run_probes(bundle, bundle, tokenizer, plan, tmp_path, silent)
    both = ProbePlan("both", ((16384, 1), (512, 1)), distractors=(0,), languages=("en",))
    found = run_probes(bundle, bundle, tokenizer, both, tmp_path, silent)
    assert found["contexts_left_out"] == [16384] and list(found["context"]) == ["512"]


def test_an_answer_does_not_depend_on_earlier_questions(int4_bundle):
    """The page's keys and values are kept; each question must find them as they were."""
    tokenizer = Tokenizer.load(int4_bundle.folder)
    page = make_page(PageJob("en", 256, 0, 0), filler_sentences("en"), tokenizer.count)
    ids = tokenizer.encode(page.text)
    with Session(int4_bundle, capacity=400) as session:
        session.prefill(ids)
        shared = []
        for _, needle in page.needles:
            session.truncate(len(ids))
            shared.append(continue_text(session, tokenizer, needle.question, 12))
        session.reset()
        session.prefill(ids)
        fresh = continue_text(session, tokenizer, page.needles[-1][1].question, 12)
    assert shared[-1] == fresh
    assert any(shared)


def test_the_command_runs_the_probes_that_fit(bundle, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path))
    monkeypatch.setattr("seatrial.quantize.probes.run.QUICK", PLAN)
    text = tmp_path / "text.txt"
    text.write_text("Revenue was $3.7 million in May. 收入是370万元。", encoding="utf-8")
    folder = str(bundle.folder)
    code = run_command(["damage", folder, folder, "--text", str(text), "--quick", "--json", "--quiet"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["probes"]["all"]["verdict"] in ("none", "cannot tell")
    assert document["minimum_detectable"]["copies"] is None or document["minimum_detectable"]["copies"] > 0
    code = run_command(["damage", folder, folder, "--text", str(text), "--quick", "--quiet"])
    out = capsys.readouterr().out
    assert code == 0 and "copy probes (test, 12 pages)" in out
