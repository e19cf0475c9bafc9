"""Draws docs/report.png, the README's picture of a report: `python docs/make_picture.py RUN_FOLDER`.

RUN_FOLDER is what `seatrial run sample:en --out RUN_FOLDER` left; needs Chromium and the dev group.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from seatrial.report import write_report

PICTURE = Path(__file__).with_name("report.png")


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    page_file = Path(tempfile.mkdtemp()) / "report.html"
    write_report([Path(sys.argv[1])], page_file)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 820}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.locator(".in-summary.mark.fail").first.hover()
        page.locator("#tip").wait_for()
        page.screenshot(path=PICTURE)
        browser.close()
    shutil.rmtree(page_file.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
