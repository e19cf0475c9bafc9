"""A chat template rendered as what it is: a program that came with somebody's model.

It runs in jinja2's immutable sandbox, within a time limit and a memory limit. Loops are stopped between two
lines of the template; what one line alone would blow up (a long repetition) ends at the memory limit.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from seatrial.errors import UserError

SECONDS = 5.0
_MEMORY_BYTES = 512 << 20  # more than the process has when it begins
_LARGEST_POWER = 64
_FILE = "<chat template>"


class _Sandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox, which would compute any power."""

    intercepted_binops = frozenset(["**"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if not isinstance(right, int | float) or abs(right) > _LARGEST_POWER:
            raise TemplateError(f"a power above {_LARGEST_POWER}")
        return super().call_binop(context, operator, left, right)


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, str]],
    names: Mapping[str, Any],
    *,
    add_generation_prompt: bool = True,
    seconds: float = SECONDS,
) -> str:
    """The text of a conversation. `names` are the special tokens by name.

    Raises `UserError` when the template refuses the messages, reaches for what is not its business, or does
    not end in time or memory.
    """
    given = {key: value for key, value in names.items() if value is not None}
    environment = _environment()
    try:
        with _time_limit(seconds), _memory_limit(_MEMORY_BYTES):
            # Constants are folded while it is compiled: that counts too.
            code = environment.compile(template, filename=_FILE)
            compiled = environment.template_class.from_code(environment, code, environment.make_globals({}))
            return compiled.render(
                messages=list(messages),
                add_generation_prompt=add_generation_prompt,
                tools=None,
                documents=None,
                **given,
            )
    except (TemplateError, TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"the model's chat template refused the messages ({reason}): change the prompt's roles"
        ) from error
    except MemoryError as error:
        raise UserError(
            f"the model's chat template takes more than {_MEMORY_BYTES >> 20} MiB and was stopped: its "
            "folder is not to be trusted, or its template is broken"
        ) from error


def _environment() -> _Sandbox:
    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value, **kw: json.dumps(value, ensure_ascii=False, **kw)
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise in the template's own lines once the time is over; other code is not traced."""
    end, before = time.monotonic() + seconds, sys.gettrace()

    def within(_frame: Any, _event: str, _argument: Any) -> Any:
        if time.monotonic() > end:
            raise UserError(
                f"the model's chat template did not end within {seconds:g} s and was stopped: its folder is "
                "not to be trusted, or its template is broken"
            )
        return within

    def entered(frame: Any, event: str, argument: Any) -> Any:
        return within(frame, event, argument) if frame.f_code.co_filename == _FILE else None

    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _memory_limit(extra_bytes: int) -> Iterator[None]:
    """No more than this above what the process has mapped now; nothing where the system has no such limit."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    known = [limit for limit in (soft, hard, mapped + extra_bytes) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
