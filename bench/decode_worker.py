"""One engine behind a pipe: reads and steps tokens on command and says how long it took.

Each engine of bench/decode.py lives in a process of its own, so that neither their thread pools nor their
memory meet; one of them may be another Python altogether (a natively built llama-cpp-python). Commands are
JSON lines: `{"do": "reset"}`, `{"do": "read", "tokens": n}`, `{"do": "step", "tokens": n}`; every answer
has `seconds`. Reading extends the context and stays; steps are taken back, so that a context can be
measured again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

VOCABULARY, CAPACITY = 40_000, 4608


class Engine(Protocol):
    about: dict[str, Any]

    def reset(self) -> None: ...
    def read(self, tokens: list[int]) -> None: ...
    def step(self, tokens: list[int]) -> None: ...
    def back_to(self, length: int) -> None: ...


class Seatrial:
    """A bundle of this project."""

    def __init__(self, path: str, threads: int) -> None:
        from pathlib import Path

        from seatrial.export.bundle import open_bundle
        from seatrial.export.session import Session

        self.session = Session(
            open_bundle(Path(path), check_hashes=False), capacity=CAPACITY, threads=threads
        )
        self.session.prefill([1] * 32)  # opens the second graph of an int8 cache outside of any measurement
        kv = self.session.kv_bytes_per_token(1)
        self.about = {"weight_bytes": self.session.weight_bytes_per_token, "kv_bytes_per_position": kv}

    def reset(self) -> None:
        self.session.reset()

    def read(self, tokens: list[int]) -> None:
        self.session.prefill(tokens)

    def step(self, tokens: list[int]) -> None:
        for token in tokens:
            self.session.step(token)

    def back_to(self, length: int) -> None:
        self.session.truncate(length)


class LlamaCpp:
    """llama.cpp through llama-cpp-python's low-level calls; `path` is `model.gguf:f16` or
    `model.gguf:q8_0`.
    """

    def __init__(self, path: str, threads: int) -> None:
        import llama_cpp

        file, kind = path.rsplit(":", 1)
        types = {"f16": llama_cpp.GGML_TYPE_F16, "q8_0": llama_cpp.GGML_TYPE_Q8_0}
        self.library = llama_cpp
        self.llama = llama_cpp.Llama(
            file, n_ctx=CAPACITY, n_threads=threads, n_threads_batch=threads, n_batch=512, n_ubatch=512,
            flash_attn=True, type_k=types[kind], type_v=types[kind], verbose=False,
        )  # fmt: skip
        self.context = self.llama.ctx
        features = llama_cpp.llama_print_system_info().decode()
        self.about = {"version": llama_cpp.__version__, "features": features}

    def reset(self) -> None:
        self.back_to(0)

    def read(self, tokens: list[int]) -> None:
        for start in range(0, len(tokens), 512):
            self._decode(tokens[start : start + 512])

    def step(self, tokens: list[int]) -> None:
        for token in tokens:
            self._decode([token])
            self.library.llama_get_logits_ith(self.context, -1)

    def _decode(self, tokens: list[int]) -> None:
        array = (self.library.llama_token * len(tokens))(*tokens)
        if self.library.llama_decode(self.context, self.library.llama_batch_get_one(array, len(tokens))):
            raise RuntimeError("llama_decode failed")

    def back_to(self, length: int) -> None:
        memory = self.library.llama_get_memory(self.context)
        self.library.llama_memory_seq_rm(memory, 0, length, -1)


class Xllamacpp:
    """The same GGUF in the xllamacpp wheel, which only has a server: its own timings are taken over."""

    def __init__(self, path: str, threads: int) -> None:
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = path.rsplit(":", 1)[0]
        parameters.n_ctx, parameters.n_parallel, parameters.warmup = CAPACITY, 1, False
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        self.server = xllamacpp.Server(parameters)
        self.prompt: list[int] = []
        self.fresh = True
        self.about = {
            "version": getattr(xllamacpp, "__version__", "?"),
            "features": xllamacpp.get_system_info(),
        }
        self.seconds: float | None = None

    def reset(self) -> None:
        self.prompt, self.fresh = [], True

    def read(self, tokens: list[int]) -> None:
        self.prompt = self.prompt + tokens
        timings = self._complete(1)
        if self.fresh and timings["prompt_n"] < len(tokens):
            raise RuntimeError(f"the server read {timings['prompt_n']} of {len(tokens)} tokens")
        self.fresh = False
        self.seconds = timings["prompt_ms"] / 1e3

    def step(self, tokens: list[int]) -> None:
        self.seconds = self._complete(len(tokens))["predicted_ms"] / 1e3

    def _complete(self, count: int) -> dict[str, Any]:
        answer = self.server.handle_completions(
            {
                "prompt": self.prompt,
                "n_predict": count,
                "ignore_eos": True,
                "temperature": 0,
                # After a reset nothing may be left of an earlier round, or the prefill is not one.
                "cache_prompt": not self.fresh,
            }
        )
        return (answer if isinstance(answer, dict) else json.loads(answer))["timings"]

    def back_to(self, length: int) -> None:
        self.prompt = self.prompt[:length]


class Genai:
    """onnxruntime-genai with a folder that its own builder made."""

    def __init__(self, path: str, threads: int) -> None:
        import onnxruntime_genai as genai

        config = genai.Config(path)
        config.overlay(
            json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}})
        )
        self.library, self.model = genai, genai.Model(config)
        self.about = {"version": genai.__version__}
        self.reset()

    def reset(self) -> None:
        parameters = self.library.GeneratorParams(self.model)
        parameters.set_search_options(max_length=CAPACITY, do_sample=False)
        self.generator = self.library.Generator(self.model, parameters)

    def read(self, tokens: list[int]) -> None:
        self.generator.append_tokens(tokens)
        self.generator.get_logits()

    def step(self, tokens: list[int]) -> None:
        for token in tokens:
            self.generator.append_tokens([token])
            self.generator.get_logits()

    def back_to(self, length: int) -> None:
        self.generator.rewind_to(length)


KINDS = {"seatrial": Seatrial, "llama_cpp": LlamaCpp, "xllamacpp": Xllamacpp, "genai": Genai}


def tokens_for(start: int, count: int) -> list[int]:
    """Fixed tokens without a pattern, the same for every engine."""
    return [100 + (place * 7919 + place * place * 31) % VOCABULARY for place in range(start, start + count)]


def answer(
    engine: Engine, command: dict[str, Any], length: int, clock: Callable[[], float]
) -> tuple[float, int]:
    """Seconds of one command, and the context's length after it."""
    if command["do"] == "reset":
        engine.reset()
        return 0.0, 0
    tokens = tokens_for(length, command["tokens"])
    started = clock()
    if command["do"] == "read":
        engine.read(tokens)
        length += len(tokens)
    else:
        engine.step(tokens)
    seconds = getattr(engine, "seconds", None) or clock() - started
    engine.back_to(length)
    return seconds, length


def main() -> None:
    """`decode_worker.py KIND PATH THREADS wall|cpu`, then commands on stdin."""
    kind, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    clock = time.process_time if sys.argv[4] == "cpu" else time.perf_counter
    engine = KINDS[kind](path, threads)
    print(json.dumps({"about": engine.about}), flush=True)
    length = 0
    for line in sys.stdin:
        seconds, length = answer(engine, json.loads(line), length, clock)
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
