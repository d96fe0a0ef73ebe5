"""Draws the pictures that the documentation shows: `python docs/pictures.py [NAME...]`, from the pages in examples/.

A picture is a part of a report in Chromium, with a numbered mark at each thing that the text below explains.
`nox -s docs -- --update` runs this after outputs.py.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

CHECKOUT = Path(__file__).resolve().parents[1]
DOCS = CHECKOUT / "docs"
EXAMPLES = CHECKOUT / "examples"
CPU, OWN_STEP = "cpu.html", "own_train_step/page.html"


@dataclass(frozen=True)
class Picture:
    """A view of a page.

    Args:
      report: The page, in examples/.
      view: Its fragment.
      size: Of the window, in pixels.
      marks: CSS selectors of what gets a number, in order.
      unfold: Summaries of folds to open, by their beginning.
      top: Selector of what the picture begins with; by default the top of the page.
    """

    report: str
    view: str
    size: tuple[int, int] = (1280, 900)
    marks: Sequence[str] = ()
    unfold: Sequence[str] = ()
    top: str = ""


PICTURES: Mapping[str, Picture] = {
    "report.png": Picture(CPU, "#overview"),
    "tutorial/your_train_step.png": Picture(OWN_STEP, "#overview", (1280, 560)),
    "tutorial/overview.png": Picture(
        CPU,
        "#overview",
        (1280, 680),
        (
            "#overview h1",
            '[data-card="changed"] h2',
            '[data-card="trust"] h2',
            '[data-card="jit"] h2',
            '[data-card="time"] h2',
            ".cards .card h3",
        ),
    ),
    "tutorial/case.png": Picture(
        OWN_STEP,
        "#case=train_step/train_step[batch=32]",
        (1280, 1000),
        ("#case h1", *(f'#case [data-card="{card}"] h2' for card in ("speed", "time", "first"))),
    ),
}
"""By the file in docs/."""

NUMBER = """([selector, number]) => {
  const target = document.querySelector(selector);
  if (!target) return false;
  const range = document.createRange();
  range.selectNodeContents(target);
  const { left, top, height } = range.getBoundingClientRect();
  const mark = document.createElement("div");
  mark.textContent = number;
  Object.assign(mark.style, {
    position: "absolute", left: `${Math.max(left + scrollX - 26, 1)}px`, top: `${top + scrollY + height / 2 - 10}px`,
    width: "20px", height: "20px", borderRadius: "50%", background: "#b3005e", color: "#fff",
    font: "600 13px/20px sans-serif", textAlign: "center", zIndex: 9,
  });
  document.body.append(mark);
  return true;
}"""
UNFOLD = """(beginning) => {
  const found = [...document.querySelectorAll("summary")].find((one) => one.textContent.trim().startsWith(beginning));
  if (found) found.parentElement.open = true;
  return Boolean(found);
}"""


def draw(browser_page: Page, picture: Picture, path: Path) -> None:
    """Write a picture.

    Raises:
      ValueError: The page has no such thing to mark or to open.
    """
    width, height = picture.size
    browser_page.set_viewport_size({"width": width, "height": height})
    browser_page.goto("about:blank")
    browser_page.goto((EXAMPLES / picture.report).as_uri() + picture.view)
    browser_page.wait_for_function("!document.querySelector('[aria-busy=true]')")
    browser_page.wait_for_timeout(500)
    for beginning in picture.unfold:
        if not browser_page.evaluate(UNFOLD, beginning):
            raise ValueError(f"{picture.report}{picture.view}: no fold begins with {beginning!r}")
    if picture.top:
        browser_page.locator(picture.top).first.scroll_into_view_if_needed()
    for number, selector in enumerate(picture.marks, 1):
        if not browser_page.evaluate(NUMBER, [selector, number]):
            raise ValueError(f"{picture.report}{picture.view}: no {selector}")
    browser_page.screenshot(path=path)


def main(names: Sequence[str]) -> int:
    """Draw the named pictures, or all; return the exit code."""
    if unknown := set(names) - set(PICTURES):
        sys.exit(f"no picture {', '.join(sorted(unknown))}; there are: {', '.join(PICTURES)}")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("pictures need Chromium: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        # Marks are styles of their own, which the page's policy forbids.
        page = browser.new_context(color_scheme="light", bypass_csp=True).new_page()
        for name in names or PICTURES:
            draw(page, PICTURES[name], DOCS / name)
            print(f"docs/{name}")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
