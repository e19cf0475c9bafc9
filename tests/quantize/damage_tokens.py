"""Reads the hand-labelled texts, and makes a byte-level tokenizer that splits hanzi into pieces."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from seatrial.quantize.damage.classes import AMOUNT, BIT, DATE_TIME, DIGIT, NUMBER_WORD, PERSON, PLACE, UNIT

CODES = {
    "d": DIGIT,
    "n": NUMBER_WORD,
    "t": DATE_TIME,
    "a": AMOUNT,
    "u": UNIT,
    "p": PERSON,
    "o": PLACE,
}
Piece = tuple[tuple[int, int], int]  # span in characters, class bits


def hand_labelled(language: str) -> list[tuple[str, list[Piece]]]:
    """Each sentence with its hand-labelled tokens."""
    file = Path(__file__).with_name(f"damage_labels_{language}.txt")
    lines = file.read_text(encoding="utf-8").splitlines()
    return [_read(line, language) for line in lines if not line.startswith("#")]


def _read(line: str, language: str) -> tuple[str, list[Piece]]:
    text, pieces = "", []
    for word in line.split():
        glued = language == "zh" or word.startswith("~") or not text
        body, _, codes = word.removeprefix("~").partition("|")
        text += "" if glued else " "
        pieces.append(((len(text), len(text) + len(body)), sum(BIT[CODES[c]] for c in codes)))
        text += body
    return text, pieces


def byte_level_tokenizer(texts: list[str], vocabulary: int = 500) -> Tokenizer:
    """A byte-level BPE like those of current models, digits one by one, trained on `texts` in a moment."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
