"""What the model is asked: the request in the transcript's language, with facts to look at twice on a retry.

The transcript comes before the request's second half, so that a retry shares its whole beginning with the
first attempt and the engine keeps what it has already read. A prompt of the user's own (`--prompt FILE`)
takes the places `{transcript}`, `{words}` and `{facts}`. Nothing here knows a tokenizer or a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import UserError

Message = dict[str, str]

_HAN = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")

_ENGLISH = """Below is the transcript of a meeting.

{transcript}

Write a summary of this meeting in about {words} words for somebody who was not there: what was decided, by \
whom, with the amounts and dates. Copy every figure and every name exactly as it stands in the \
transcript.{facts}"""

_CHINESE = """下面是一次会议的记录。

{transcript}

请用大约{words}字为没有参加会议的人写一份摘要：决定了什么、由谁负责、金额和日期是多少。数字和人名必须与记录完全一致。{facts}"""

_FACTS = {
    "en": "\n\nThese sentences of the transcript hold the right figures and names:\n{lines}",
    "zh": "\n\n以下原句中的数字和人名是正确的：\n{lines}",
}

# Words a summary of so many tokens can hold: 1.3 tokens a word in English; a Chinese character is about one
# token or more, depending on the vocabulary. A wish to the model, not a limit.
_WORDS_PER_TOKEN = {"en": 0.75, "zh": 0.8}


@dataclass(frozen=True)
class Prompt:
    """A template and the language of its words."""

    template: str
    language: str  # "en" | "zh"

    def messages(self, transcript: str, budget: int, facts: Sequence[str] = ()) -> list[Message]:
        """The conversation to put before the model: one message of the user."""
        words = max(10, round(budget * _WORDS_PER_TOKEN[self.language] / 10) * 10)
        lines = "\n".join(f"- {fact}" for fact in facts)
        told = _FACTS[self.language].format(lines=lines) if facts else ""
        values = {"{transcript}": transcript, "{words}": str(words), "{facts}": told}
        pattern = re.compile("|".join(re.escape(place) for place in values))
        return [{"role": "user", "content": pattern.sub(lambda m: values[m[0]], self.template)}]


def language_of(text: str) -> str:
    """`zh` when at least a third of the letters are Chinese characters, else `en`."""
    letters = len(_LETTER.findall(text))
    return "zh" if letters and len(_HAN.findall(text)) * 3 >= letters else "en"


def default_prompt(text: str) -> Prompt:
    """The built-in request in the language of `text`."""
    language = language_of(text)
    return Prompt(_CHINESE if language == "zh" else _ENGLISH, language)


def own_prompt(template: str, text: str, path: Path) -> Prompt:
    """The user's own template. `UserError` unless it says where the transcript goes."""
    if "{transcript}" not in template:
        raise UserError(
            f"prompt file {path} does not say where the transcript goes: write {{transcript}} there"
        )
    if "{facts}" not in template:
        template += "{facts}"
    return Prompt(template, language_of(text))
