"""The report in a real browser, from disk, with the network off.

Chromium comes from the system's packages (`.ci/run` installs it). Where there is none, and only outside CI,
these tests are left out.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.guards.check import check
from seatrial.report import write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="no Chromium on this machine; CI installs it"
)

SOURCE = (
    """Dana Reyes: The pilot costs 42,000 dollars <script>window.hacked = true</script> and starts on 3 March.
Tom Hale: \u202eWe have 118 sites\u202c, so about 356 dollars each. & that is <b>all</b>.
周敏然：试点预算三十七万五，四月九号开始。
"""
    + "".join(f"Dana Reyes: And then item number {n}, nothing new.\n" for n in range(100, 160))
    + ("Tom Hale: The reserve is 85,000 dollars.\n")
)
SUMMARY = "The pilot costs $24,000 at 118 sites.\n周敏然说预算37.5万元。\nThe reserve is $85,000."


def run_folder(folder: Path) -> Path:
    """A run's output folder with a document of `run --json`, its source and its trace."""
    folder.mkdir(parents=True)
    guards = [report.to_json() for report in check(SUMMARY, SOURCE).reports]
    (folder / "source.txt").write_text(SOURCE, encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(document(folder, guards)), encoding="utf-8")
    rows = [
        {"event": "token", "index": n, "device_s": 0.01, "entropy": n % 7, "smoothed": 3.0, "alert": n > 18}
        for n in range(20)
    ]
    (folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def document(folder: Path, guards: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "status": "fallback", "summary": SUMMARY, "summary_kind": "extractive", "device": "thin-laptop-8gb",
        "model": "tiny", "weights": "int4", "kv": "int8",
        "sizes": {"fp32_bytes": 540e6, "bundle_bytes": 101e6},
        "prefill": {"first_token_device_s": 0.3, "first_token_host_s": 4.2},
        "decode": {"device_ms_per_token": 11.2, "host_ms_per_token": None},
        "memory": {
            "ceiling_bytes": 6e9, "mechanism": "cgroup-v1",
            "peak_private_bytes": 470e6, "peak_mapped_bytes": None,
        },
        "guards": [{"guard": "memory", "verdict": "ok", "findings": []}, *guards],
        "attempts": [{"text": "loop loop loop", "refused": "breakdown", "guards": guards[:0]}],
        "fallbacks": [{"trigger": "breakdown", "action": "extractive summary", "at_token": 19}],
        "thresholds": {"entropy_nats": 5.0}, "trace": str(folder / "trace.jsonl"),
        "source": str(folder / "source.txt"), "notes": ["a note with <i>tags</i>"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module", params=["en", "zh"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    write_report([run_folder(folder / "run")], folder / "report.html", language=request.param)
    return folder / "report.html"


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.problems = []
    opened.on("console", lambda message: opened.problems.append(message.text))
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on(
        "request", lambda request: opened.problems.append(request.url) if "file:" not in request.url else None
    )
    opened.goto(report.as_uri())
    yield opened
    context.close()


def test_opens_without_network_errors_or_script_errors(page: Any) -> None:
    assert page.locator("svg").count() >= 2
    assert page.problems == []


def test_text_of_the_source_is_text(page: Any) -> None:
    assert page.evaluate("window.hacked") is None
    shown = page.locator(".text.source p").evaluate_all("nodes => nodes.map(node => node.textContent)")
    assert "\n".join(shown) == SOURCE
    assert page.locator(".text script, .text b, li i").count() == 0


def test_right_to_left_marks_stay_in_their_line(page: Any) -> None:
    """An override that is never closed must not turn the lines behind it."""
    line = page.locator(".text.source p").nth(1)
    assert line.evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"


def test_hover_and_focus_show_the_reason(page: Any) -> None:
    wrong = page.locator(".in-summary.mark.fail").first
    assert wrong.inner_text() == "$24,000"
    wrong.hover()
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert wrong.get_attribute("data-reason") in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator(".in-summary.mark.ok").first.focus()
    assert tip.is_visible()


def test_press_goes_to_the_source_and_back(page: Any) -> None:
    mark = page.locator(".in-summary.mark", has_text="$85,000").first
    target = page.locator(f"#{mark.get_attribute('data-target')}")
    assert target.evaluate(_IN_VIEW) is False
    mark.press("Enter")
    page.wait_for_function(f"(node => ({_IN_VIEW})(node))(document.querySelector('.mark.here'))")
    assert target.inner_text() == "85,000 dollars"
    target.click()
    assert "here" in mark.get_attribute("class")


_IN_VIEW = """node => {
  const box = node.getBoundingClientRect(), frame = node.closest(".source").getBoundingClientRect();
  return box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
}"""


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_its_window_and_is_not_empty(browser: Any, report: Path, width: int, scheme: str) -> None:
    context = browser.new_context(offline=True, viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(report.as_uri())
    picture = opened.screenshot(full_page=True)
    overflow = opened.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    background = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    context.close()
    assert overflow <= 0
    assert (background == "rgb(253, 253, 251)") == (scheme == "light")
    assert len(picture) > 20_000  # an empty page of this size compresses to a tenth of it


def test_the_file_is_small(report: Path) -> None:
    assert report.stat().st_size < 3_000_000
