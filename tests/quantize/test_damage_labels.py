"""Labels against 650 tokens labelled by hand, and alignment against the bytes themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from seatrial.errors import UserError
from seatrial.quantize.damage.align import align
from seatrial.quantize.damage.classes import (
    AMOUNT,
    BIT,
    CLASSES,
    COPIES,
    DIGIT,
    LENGTHS,
    NUMBER_WORD,
    OTHER,
    PERSON,
    POSITIONS,
    class_matrix,
    known_class,
    length_bucket,
)
from seatrial.quantize.damage.documents import own_documents
from seatrial.quantize.damage.labels import label_text

sys.path.insert(0, str(Path(__file__).parent))
from damage_tokens import byte_level_tokenizer, hand_labelled


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_level_tokenizer([d.text for language in ("en", "zh") for d in own_documents(language)])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hand_labelled_tokens_are_labelled_right(language, tokenizer):
    """97 % of the tokens of a real tokenizer have the label of the hand-labelled piece they begin in."""
    right = tokens = pieces_seen = 0
    for text, pieces in hand_labelled(language):
        labelled = label_text(text)
        owner = {c: want for (start, end), want in pieces for c in range(start, end)}
        spans = tokenizer.encode(text).offsets
        found = align(labelled, spans).masks
        for (start, end), got in zip(spans, found, strict=True):
            inside = [owner[c] for c in range(start, end) if c in owner]
            if inside:
                tokens += 1
                right += int(got) == inside[0]
        pieces_seen += len(pieces)
    assert pieces_seen >= 300 and tokens >= pieces_seen
    assert right / tokens >= 0.97, f"{language}: {right} of {tokens} tokens"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hand_labelled_pieces_are_labelled_right(language):
    """The same for the pieces themselves, whatever a tokenizer would make of them."""
    wrong, pieces_seen = [], 0
    for text, pieces in hand_labelled(language):
        masks = label_text(text).masks
        for (start, end), want in pieces:
            got = int(next((m for m in masks[start:end] if m), 0))
            pieces_seen += 1
            if got != want:
                wrong.append(text[start:end])
    assert len(wrong) <= 0.03 * pieces_seen, wrong


ALPHABET = st.text(
    st.sampled_from("0123456789,.万亿元百分之点三月日张总周敏然青溪 $€%kgVasquezMr\n🙂é٣１")
    | st.characters(codec="utf-8"),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(text=ALPHABET)
def test_any_text_is_labelled_and_aligned_by_its_bytes(text, tokenizer):
    """The plain reference puts every token's bytes into the text by counting them."""
    labelled = label_text(text)
    assert len(labelled.masks) == len(text)
    encoding = tokenizer.encode(text)
    expected, at = [], 0
    starts = np.cumsum([0] + [len(c.encode()) for c in text])
    for token in encoding.tokens:
        end = at + len(token)  # byte-level: one printed character is one byte
        characters = range(int(np.searchsorted(starts, at, "right")) - 1, int(np.searchsorted(starts, end)))
        expected.append(next((int(labelled.masks[c]) for c in characters if labelled.masks[c]), 0))
        at = end
    assert at == len(text.encode())
    assert align(labelled, encoding.offsets).masks.tolist() == expected


def test_every_piece_of_a_hanzi_has_its_label(tokenizer):
    text = "请周敏然付37.5万元"
    encoding = tokenizer.encode(text)
    labels = align(label_text(text), encoding.offsets)
    assert len(encoding.ids) > len(text)
    for (start, _), mask in zip(encoding.offsets, labels.masks, strict=True):
        if text[start] in "周敏然":
            assert mask == BIT[PERSON]
        if text[start] in "37.5":
            assert mask == BIT[DIGIT] | BIT[AMOUNT]
        if text[start] == "万":
            assert mask == BIT[NUMBER_WORD] | BIT[AMOUNT]


def test_positions_lengths_and_copies_of_a_figure(tokenizer):
    text = "We owe $48,250 now. Of the $48,250 we paid 7 back; $48,205 was wrong."
    encoding = tokenizer.encode(text)
    labelled = label_text(text)
    labels = align(labelled, encoding.offsets)
    assert [(text[i.span[0] : i.span[1]], i.copyable) for i in labelled.items] == [
        ("$48,250", False),
        ("$48,250", True),
        ("7", False),
        ("$48,205", False),
    ]
    first = np.flatnonzero(labels.item == 0)
    assert labels.position[first[0]] == POSITIONS.index("first")
    assert labels.position[first[-1]] == POSITIONS.index("last")
    assert set(labels.position[first[1:-1]]) == {POSITIONS.index("inner")}
    assert labels.position[labels.item == 2].tolist() == [POSITIONS.index("single")]
    assert set(labels.length[first]) == {LENGTHS.index("5-8")}
    assert set(labels.copy[labels.item == 1]) == {COPIES.index("copyable")}
    assert set(labels.copy[labels.item == 3]) == {COPIES.index("novel")}


def test_the_same_value_written_otherwise_is_copyable():
    items = {i.span: i for i in label_text("收入37.5万元，也就是375,000元。张总说，张总不同意。").items}
    assert [i.copyable for i in items.values()][:2] == [False, True]
    assert [i.copyable for i in items.values()][-2:] == [False, True]


def test_other_is_the_absence_of_all_classes():
    matrix = class_matrix(np.array([0, BIT[DIGIT], BIT[DIGIT] | BIT[AMOUNT]], np.uint8))
    named = [[name for name, inside in zip(CLASSES, row, strict=True) if inside] for row in matrix]
    assert named == [[OTHER], [DIGIT], [DIGIT, AMOUNT]]


def test_length_buckets():
    assert [LENGTHS[length_bucket(size)] for size in (1, 2, 3, 4, 5, 8, 9, 40)] == [
        "1-2", "1-2", "3-4", "3-4", "5-8", "5-8", "9+", "9+",
    ]  # fmt: skip


def test_offsets_that_leave_the_text_are_refused():
    with pytest.raises(UserError, match="offsets"):
        align(label_text("abc"), [(0, 2), (2, 9)])
    with pytest.raises(UserError, match="offsets"):
        align(label_text("abcdef"), [(3, 5), (0, 2)])


def test_unknown_classes_are_refused_with_the_list():
    with pytest.raises(UserError, match=r"digits.*number_word"):
        known_class("digits")
