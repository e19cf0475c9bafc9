"""What holds for every text: nothing raises, spans are exact, the order of sentences does not matter."""

from __future__ import annotations

import itertools
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.guards.names import check_names, find_names, tag_entities
from seatrial.guards.names.fold import WORD, fold
from seatrial.guards.names.source import Source
from seatrial.guards.verdict import Finding, Verdict

PIECES = st.sampled_from(
    [
        *(
            "张伟",
            "王经理",
            "老李",
            "欧阳靖",
            "约翰·史密斯",
            "單婉儀",
            "上海",
            "说",
            "表示",
            "的",
            "那三年",
            "总",
            "·",
        ),
        *(
            "Karen",
            "O’Malley",
            "Mun\u0303ez",
            "Dr. Lee",
            "mr",
            "of",
            "said",
            "thought that",
            "BestShopXYZ",
            "NATO",
        ),
        *(
            ": ",
            "：",
            "。",
            ".",
            "\n",
            " ",
            ", ",
            "、",
            "'s",
            "00:01:02,000 --> 00:01:03,000\n",
            "\u200b",
            "É",
            "ﬁ",
        ),
    ]
)
TEXTS = st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=30).map("".join))
CHINESE = ["陈思远", "林若曦", "赵一鸣", "周敏然", "欧阳靖", "司马青", "孙晓梅", "高远航", "单婉仪"]
ENGLISH = [
    "Karen Whitfield",
    "Tom Baker",
    "Nora O'Malley",
    "Ida Holm",
    "Jean-Luc Farre",
    "Zoë Muñez",
    "Ole Lind",
]


@given(TEXTS, TEXTS)
@settings(max_examples=150, deadline=None)
def test_no_text_makes_it_raise_and_spans_are_exact(summary: str, source: str) -> None:
    for mention in find_names(summary):
        assert summary[slice(*mention.span)] == mention.text
    for entity in tag_entities(summary):
        assert summary[slice(*entity.span)] == entity.text
    for transliterate in (False, True):
        for found in check_names(summary, source, transliterate=transliterate).findings:
            assert summary[slice(*found.span)] == found.text
            if found.nearest is not None:
                assert source[slice(*found.nearest.span)] == found.nearest.text


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_mentions_are_in_order_and_apart(text: str) -> None:
    mentions = find_names(text)
    assert all(a.span[1] <= b.span[0] for a, b in itertools.pairwise(mentions))
    assert all(m.span[0] < m.span[1] for m in mentions)


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    for word in WORD.findall(text):
        assert fold(fold(word)) == fold(word)


@given(st.sampled_from(ENGLISH), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_composed_and_decomposed_names_fold_alike(name: str, form: str) -> None:
    assert fold(unicodedata.normalize(form, name)) == fold(name)


def reasons(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return sorted((f.text, f.reason, str(f.verdict)) for f in findings)


SENTENCES = (
    "陈思远认为预算不够。",
    "林若曦表示仓库改造是重点。",
    "王经理请张工搭建环境。",
    "老李周末值班。",
    "陈思说可以。",
    "孙晓梅没有来。",
    "约翰·史密斯去谈海外渠道。",
)


@given(st.permutations(SENTENCES), st.permutations(SENTENCES[:5]))
@settings(max_examples=30, deadline=None)
def test_the_order_of_sentences_does_not_matter(summary: list[str], source: list[str]) -> None:
    plain = check_names("".join(SENTENCES), "".join(SENTENCES[:5]))
    mixed = check_names("".join(summary), "".join(source))
    assert reasons(mixed.findings) == reasons(plain.findings)
    assert mixed.verdict is plain.verdict


@given(
    st.permutations(
        ["Karen met Tom Baker.", "Then Ida Holm left.", "We saw Tam Baker.", "Dr. Lee spoke to Karen."]
    )
)
@settings(deadline=None)
def test_the_order_of_english_sentences_does_not_matter(summary: list[str]) -> None:
    source = "Karen called Tom Baker. Ida Holm wrote to Dr. Lee."
    expected = check_names(
        "Karen met Tom Baker. Then Ida Holm left. We saw Tam Baker. Dr. Lee spoke to Karen.", source
    )
    assert reasons(check_names(" ".join(summary), source).findings) == reasons(expected.findings)


@given(
    st.sampled_from(CHINESE),
    st.sampled_from(["{}同意了。", "会上{}没有发言。", "由{}负责，下周完成。", "记者问{}。"]),
)
@settings(deadline=None, max_examples=40)
def test_a_chinese_name_of_the_source_is_accepted(name: str, frame: str) -> None:
    report = check_names(frame.format(name), f"今天{name}说下周上线。大家都同意。")
    assert report.verdict is Verdict.OK


@given(st.sampled_from(CHINESE), st.sampled_from(CHINESE))
@settings(deadline=None, max_examples=40)
def test_another_chinese_name_is_flagged(name: str, other: str) -> None:
    report = check_names(f"{other}同意了。", f"今天{name}说下周上线。大家都同意。")
    assert (report.verdict is Verdict.OK) == (name == other)


def written_otherwise(name: str) -> st.SearchStrategy[str]:
    forms = [
        name,
        unicodedata.normalize("NFD", name),
        "".join(c for c in unicodedata.normalize("NFD", name) if not unicodedata.combining(c)),
        name.replace("'", "’"),
        name.replace("'", ""),
        name.upper(),
        name.replace("-", "\u2010"),
        name + "'s",
        " ".join(reversed(name.split())),
        f"{name[0]}. {name.split()[-1]}",
        name.split()[-1],
    ]
    return st.sampled_from(forms)


@given(st.data(), st.sampled_from(ENGLISH))
@settings(deadline=None)
def test_an_english_name_written_otherwise_is_accepted(data: st.DataObject, name: str) -> None:
    summary = f"In the end {data.draw(written_otherwise(name))} agreed."
    assert check_names(summary, f"Today {name} said that we launch. All agree.").verdict is Verdict.OK


@given(st.sampled_from(ENGLISH), st.integers(1, 20), st.sampled_from("bdgkmprtvz"))
@settings(deadline=None)
def test_one_changed_letter_is_flagged(name: str, at: int, letter: str) -> None:
    surname = name.split()[-1]
    at = 1 + at % (len(surname) - 1)
    changed = surname[:at] + letter + surname[at + 1 :]
    summary = f"In the end Ms. {changed} agreed."
    report = check_names(summary, f"Today {name} said that we launch. All agree.")
    same = fold(changed) == fold(surname)
    assert (report.verdict is Verdict.OK) == same


@given(st.lists(st.sampled_from(SENTENCES), max_size=6), st.lists(st.sampled_from(SENTENCES), max_size=6))
@settings(max_examples=40, deadline=None)
def test_leaving_sentences_untagged_changes_nothing(summary: list[str], source: list[str]) -> None:
    """The short cut (only sentences that can matter) against tagging everything."""

    class Whole(Source):
        def only_for(self, mentions: object) -> None:
            """Everything is tagged."""

    from seatrial.guards.names import check

    short = check_names("".join(summary), "".join(source))
    told, heard = Whole("".join(summary)), Whole("".join(source))
    told.known_from(heard)
    whole = check._looked_up(told, heard, False)
    assert [(f.reason, f.nearest) for f in short.findings if f.reason != "other name there"] == [
        (str(reason), None if str(reason) == "exact" and near and near.text == m.text else near)
        for span, (m, reason, near, _) in sorted(whole.items())
        if not any(f.span == span and f.reason == "other name there" for f in short.findings)
    ]
