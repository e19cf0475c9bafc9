"""How onnxruntime is opened here: one place for its options and for the wording of its refusals."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import onnxruntime as ort
from onnxruntime import OrtAllocatorType, OrtArenaCfg, OrtMemoryInfo, OrtMemType

from seatrial.errors import UserError
from seatrial.export.release import return_free_heap

PROVIDERS = ["CPUExecutionProvider"]
_UNTILED = "ORT_GQA_DISABLE_FLASH_ATTENTION"
_environment = threading.Lock()


def session_options(threads: int) -> ort.SessionOptions:
    """Options of every decoder session: threads set once, quiet, no memory patterns.

    The shapes change with every token (the mask grows), so a memory pattern per shape would only pile up.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    _register_arena()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = 3
    return options


def shrinking_run() -> ort.RunOptions:
    """A run that gives its arena back: pieces of a prompt need more for every one, steps need next to
    nothing.
    """
    run = ort.RunOptions()
    run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return run


@contextmanager
def untiled_attention() -> Iterator[None]:
    """Sessions opened inside compute attention over the whole cache at once, not tile by tile.

    For one token over an int8 cache onnxruntime 1.32's tiled kernel is the slow one: at 4,096 positions the
    embedded model's 30 layers take 9.7 ms tiled and 6.5 ms whole with two threads, 2.2 and 1.0 ms at 512.
    With a float cache it is the other way round (`bench/attention.py` prints both). The kernel reads the
    switch from the environment while it is opened and nowhere else; one that the user has set is left alone.
    """
    with _environment:
        ours = _UNTILED not in os.environ
        if ours:
            os.environ[_UNTILED] = "1"
        try:
            yield
        finally:
            if ours:
                os.environ.pop(_UNTILED, None)


def open_session(model: str | bytes, options: ort.SessionOptions, where: Path) -> ort.InferenceSession:
    """An onnxruntime session on the CPU, external data taken from the folder `where`.

    Raises `UserError` naming `where` when onnxruntime refuses the model.
    """
    if isinstance(model, bytes):
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(where))
    try:
        session = ort.InferenceSession(model, options, providers=PROVIDERS)
    except Exception as error:  # onnxruntime's exceptions share no public base class
        raise UserError(f"{where}: onnxruntime {ort.__version__} cannot open this model: {error}") from error
    # Opening takes much more than is kept; what glibc would hold back counts against a memory ceiling.
    return_free_heap()
    return session


@lru_cache(maxsize=1)
def _register_arena() -> None:
    """One arena for all sessions of the process, grown by what is asked for and not to the next power of
    two.
    """
    memory = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)
    same_as_requested = 1
    arena = OrtArenaCfg(0, same_as_requested, -1, -1)
    ort.create_and_register_allocator(memory, arena)
