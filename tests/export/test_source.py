"""What `--model` may be, and how the embedded model is fetched: resumed, checked, and never half there."""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tiny_exports import Made

from seatrial.errors import UserError
from seatrial.export.cache import cache_folder
from seatrial.export.embedded import resume_download
from seatrial.export.source import resolve

CONTENT = bytes(range(256)) * 4096


class Server(BaseHTTPRequestHandler):
    """A file server with ranges; `/plain` ignores them, `/short` hangs up early."""

    def do_GET(self) -> None:
        start = 0
        if (asked := self.headers.get("Range")) and self.path != "/plain":
            start = int(re.fullmatch(r"bytes=(\d+)-", asked).group(1))  # type: ignore[union-attr]
        part = CONTENT[start : len(CONTENT) // 2 if self.path == "/short" else None]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        """Tests stay silent."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        thread = threading.Thread(target=functools.partial(running.serve_forever, poll_interval=0.02))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def ignore(_message: str, _share: float | None) -> None:
    """Progress nobody reads."""


@pytest.mark.parametrize("have", [0, 1, 1000, len(CONTENT) - 1, len(CONTENT)])
@pytest.mark.parametrize("path", ["ranges", "plain"])
def test_downloads_go_on_from_what_is_there(server: str, tmp_path: Path, path: str, have: int) -> None:
    part = tmp_path / "file.part"
    part.write_bytes(CONTENT[:have])
    resume_download(f"{server}/{path}", part, len(CONTENT), ignore)
    assert part.read_bytes() == CONTENT


def test_a_file_address_is_resumed_too(tmp_path: Path) -> None:
    (tmp_path / "mirror").write_bytes(CONTENT)
    part = tmp_path / "file.part"
    part.write_bytes(CONTENT[:12345])
    resume_download((tmp_path / "mirror").as_uri(), part, len(CONTENT), ignore)
    assert part.read_bytes() == CONTENT


def test_a_broken_connection_keeps_what_came(server: str, tmp_path: Path) -> None:
    part = tmp_path / "file.part"
    with pytest.raises(OSError, match="ended after"):
        resume_download(f"{server}/short", part, len(CONTENT), ignore)
    assert part.stat().st_size == len(CONTENT) // 2
    resume_download(f"{server}/ranges", part, len(CONTENT), ignore)
    assert part.read_bytes() == CONTENT


def test_too_many_bytes_are_refused(server: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="more than the expected"):
        resume_download(f"{server}/ranges", tmp_path / "file.part", 1000, ignore)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("no/such/folder/here", "no model at"),
        ("missing.gguf", "no model at"),
        ("two words", "no model at"),
    ],
)
def test_names_that_are_nothing(name: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        resolve(name)


def test_a_hub_id_without_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError) as caught:
        resolve("nobody/no-such-model-here")
    assert "\n" not in str(caught.value)
    assert "cannot be reached" in str(caught.value)


def test_folders_by_what_is_in_them(llama: Made, tmp_path: Path) -> None:
    assert resolve(llama.source).kind == "hf"
    assert resolve(str(llama.bundle)).kind == "bundle"
    assert resolve(llama.bundle / "model.onnx").kind == "onnx"
    with pytest.raises(UserError, match=r"no config\.json, no \.onnx file"):
        resolve(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="no weights"):
        resolve(tmp_path)


def test_gguf_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(60))
    source = resolve(path)
    assert source.kind == "gguf"
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match="not a GGUF file"):
        resolve(path)


def test_the_cache_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "here" / "it is"))
    assert cache_folder() == tmp_path / "here" / "it is"
    assert cache_folder().is_dir()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="SEATRIAL_CACHE"):
        cache_folder()
