"""The tokenizer of a bundle: text to ids and back, and the chat template.

Only `tokenizers` and `jinja2`: running a finished bundle must not need transformers. Templates come from
whoever made the model, so `chat_template` renders them under guard. Text is data: a special token
spelled out in a transcript is encoded as plain characters, so that none ends a turn by writing `<|im_end|>`.

It knows nothing about languages, prompts or sampling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers.decoders import DecodeStream

from seatrial.errors import UserError
from seatrial.export.chat_template import render_chat

Message = Mapping[str, str]  # {"role": ..., "content": ...}


class Tokenizer:
    """Text <-> token ids of one model, with its chat template and its end tokens."""

    def __init__(
        self, engine: tokenizers.Tokenizer, *, template: str | None, eos_ids: frozenset[int], names: dict
    ) -> None:
        self._engine = engine
        self._engine.encode_special_tokens = True  # see the module's docstring
        self._template = template
        self._names = names
        self._special = {
            token.content
            for token in engine.get_added_tokens_decoder().values()
            if token.special and token.content
        }
        self.eos_ids = eos_ids

    @classmethod
    def load(cls, folder: str | Path) -> Tokenizer:
        """Read `tokenizer.json`, `tokenizer_config.json` and the end tokens of a bundle's folder.

        Raises `UserError` when `tokenizer.json` is missing or broken.
        """
        folder = Path(folder)
        settings = read_json(folder / "tokenizer_config.json")
        engine = _read_engine(folder / "tokenizer.json")
        engine.no_truncation()
        engine.no_padding()
        return cls(
            engine,
            template=_read_template(folder, settings),
            eos_ids=_read_eos(folder, settings, engine),
            names={
                key: _text_of(settings.get(key))
                for key in ("bos_token", "eos_token", "unk_token", "pad_token")
            },
        )

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, added tokens included (the model's logits may be wider)."""
        return int(self._engine.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text: nothing is added, and special tokens in the text are ordinary characters."""
        return list(self._engine.encode(text, add_special_tokens=False).ids)

    def encode_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids as of `encode`, and the characters `[start, end)` of `text` that each of them stands for.

        Pieces of one character that takes several ids all have that character's span.
        """
        found = self._engine.encode(text, add_special_tokens=False)
        return list(found.ids), [(int(start), int(end)) for start, end in found.offsets]

    def prefix_ids(self) -> list[int]:
        """Ids the model expects before any text (a begin token), as `tokenizer.json` says; often none."""
        ids = self._engine.encode("a", add_special_tokens=True).ids
        plain = self.encode("a")
        starts = [i for i in range(len(ids)) if ids[i : i + len(plain)] == plain]
        return list(ids[: starts[0]]) if starts else []

    def count(self, text: str) -> int:
        """Number of tokens of plain text."""
        return len(self._engine.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of some ids; special tokens are left out."""
        return str(self._engine.decode(list(ids), skip_special_tokens=True))

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> list[int]:
        """Ids of a conversation in the model's own template, no extra special tokens added.

        Raises `UserError` when the model brings no template or the template refuses the messages.
        """
        if self._template is None:
            raise UserError(
                "this model has no chat template (no chat_template in tokenizer_config.json): "
                "use an instruction-tuned model, or add chat_template.jinja to its folder"
            )
        spelled_out = [{**message, "content": self._disarm(message["content"])} for message in messages]
        text = render_chat(
            self._template, spelled_out, self._names, add_generation_prompt=add_generation_prompt
        )
        self._engine.encode_special_tokens = False
        try:
            return list(self._engine.encode(text, add_special_tokens=False).ids)
        finally:
            self._engine.encode_special_tokens = True

    def stream(self) -> Stream:
        """Decoder for ids that come one at a time."""
        return Stream(self)

    def _disarm(self, content: str) -> str:
        """`content`, each special token in it broken by a space after its first character."""
        for token in self._special:
            if token in content:
                content = content.replace(token, f"{token[0]} {token[1:]}")
        return content


class Stream:
    """Turns ids into pieces of text as soon as they are whole characters.

    A character of several bytes (Chinese, emoji) may take several ids: until the last one `push` gives "".
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = DecodeStream(skip_special_tokens=True)
        self._ids: list[int] = []
        self._given = 0  # characters

    def push(self, token: int) -> str:
        """The text that this id completes, possibly none."""
        self._ids.append(token)
        piece = self._decoder.step(self._tokenizer._engine, token) or ""
        self._given += len(piece)
        return piece

    def finish(self) -> str:
        """What was held back, with the replacement character for bytes that never became one."""
        rest = self._tokenizer.decode(self._ids)[self._given :]
        self._given += len(rest)
        return rest


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, {} when there is no such file; `UserError` when it is not JSON."""
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(
            f"{path} is not valid JSON ({error}): copy it again from the model's source"
        ) from error
    if not isinstance(document, dict):
        raise UserError(f"{path} must hold a JSON object, but holds a {type(document).__name__}")
    return document


def _read_engine(path: Path) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise UserError(f"{path.parent} has no tokenizer.json: a bundle needs one, export the model again")
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise UserError(
            f"{path} cannot be read as a tokenizer ({error}): copy it again from the model's source"
        ) from error


def _read_template(folder: Path, settings: dict[str, Any]) -> str | None:
    """The template in `chat_template.jinja`, else in tokenizer_config.json (a text or a named list)."""
    own_file = folder / "chat_template.jinja"
    if own_file.is_file():
        return own_file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _read_eos(folder: Path, settings: dict[str, Any], engine: tokenizers.Tokenizer) -> frozenset[int]:
    """End tokens: the generation config's, else the config's, else onnxruntime-genai's, else the tokenizer's
    own `eos_token`.
    """
    genai = read_json(folder / "genai_config.json").get("model")
    places = [read_json(folder / name) for name in ("generation_config.json", "config.json")]
    for place in (*places, genai if isinstance(genai, dict) else {}):
        value = place.get("eos_token_id")
        if value is not None:
            return frozenset(value if isinstance(value, list) else [value])
    token = _text_of(settings.get("eos_token"))
    number = None if token is None else engine.token_to_id(token)
    return frozenset() if number is None else frozenset([number])


def _text_of(token: Any) -> str | None:
    """A token's text; the files write it as a text or as an object with `content`."""
    return token.get("content") if isinstance(token, dict) else token
