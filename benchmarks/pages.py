"""What a reader gets of a page and when: words and figures of its first screen, paint, search; its size.

    python -m benchmarks.pages [PAGE...]

The pages are those of examples/, unless others are named. A browser opens each once at full speed, and once with its
processor slowed four times. An element counts if its top is within the first 900 of 1280 x 900 pixels.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

from benchmarks.here import describe_here

EXAMPLES = Path("examples")
WIDTH, HEIGHT = 1280, 900
THROTTLE = 4
SEARCH = "jit"
"""A word that most pages have, so that a search has many matches."""


@dataclass(frozen=True)
class Opened:
    """What a browser says of a page; times with its processor slowed.

    Args:
      words: Of the first screen, without those in figures and in the tables of heat maps.
      figures: Of the first screen: drawings and heat maps.
      paint_ms: First contentful paint.
      ready_ms: End of the load event.
      search_ms: From a typed word to the list of its matches, the second time.
      results_ms: From a click on "All results" to their first rows.
      sort_ms: From a click on a column's head to the sorted rows.
    """

    words: int
    figures: int
    paint_ms: float
    ready_ms: float
    search_ms: float
    results_ms: float
    sort_ms: float

    def __str__(self) -> str:
        return (
            f"{self.words} words and {self.figures} figures on the first screen; with the processor slowed {THROTTLE} "
            f"times: first paint {self.paint_ms:.0f} ms, ready {self.ready_ms:.0f} ms, search {self.search_ms:.0f} ms, "
            f"all results {self.results_ms:.0f} ms, sorted {self.sort_ms:.0f} ms"
        )


def main() -> None:
    """Print a line for each page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    pages: Sequence[Path] = parser.parse_args().pages or sorted(EXAMPLES.rglob("*.html"))
    print(describe_here("playwright"), flush=True)
    for page in pages:
        print(f"{page}: {page.stat().st_size / 1e3:.0f} kB; {open_page(page)}", flush=True)


def open_page(page: Path) -> Opened:
    """Open a page, search it and sort its results.

    Raises:
      SystemExit: There is no Chromium.
    """
    from playwright.sync_api import sync_playwright

    path = which("chromium") or which("google-chrome")
    if path is None:
        raise SystemExit("no Chromium on PATH: install it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        view.goto(page.resolve().as_uri())
        counts: dict[str, int] = view.evaluate(_COUNT)
        view.close()
        view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        view.context.new_cdp_session(view).send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})
        view.goto(page.resolve().as_uri())
        view.wait_for_function(f"{_PAINTED}.length > 0")
        paint_ms = view.evaluate(f"{_PAINTED}[0].startTime")
        ready_ms = view.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        results_ms = _time(view, "location.hash = '#all'", "document.querySelector('#all tbody tr')")
        head = "document.querySelectorAll('#all thead button')[4].click()"
        sort_ms = _time(view, head, "document.querySelector('#all th[aria-sort]')")
        for word in (SEARCH[:-1], SEARCH):
            typed = (
                f"const box = byId('search'); box.focus(); box.value = '{word}'; box.dispatchEvent(new Event('input'))"
            )
            matched = f"decodeURIComponent(location.hash).includes('q={word}') && /match/.test(byId('all').innerText)"
            search_ms = _time(view, typed, matched)
        browser.close()
    return Opened(
        **counts, paint_ms=paint_ms, ready_ms=ready_ms, search_ms=search_ms, results_ms=results_ms, sort_ms=sort_ms
    )


def _time(view: Any, act: str, done: str) -> float:
    """Milliseconds from an act until something is true and drawn."""
    timed: float = view.evaluate(
        f"""async () => {{
          const byId = (id) => document.getElementById(id);
          const drawn = () => new Promise(requestAnimationFrame);
          const began = performance.now();
          {act};
          do await drawn(); while (!({done}));
          return performance.now() - began;
        }}"""
    )
    return timed


_PAINTED = "performance.getEntriesByName('first-contentful-paint')"

_COUNT = """() => {
  const isThere = (box) => box.width > 2 && box.height > 2 && box.top < innerHeight && box.bottom > 0;
  const range = document.createRange();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let words = 0;
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (text.parentElement.closest("svg, table.heat, script, style, title")) continue;
    if (!text.parentElement.checkVisibility({ visibilityProperty: true })) continue;
    range.selectNodeContents(text);
    if (isThere(range.getBoundingClientRect())) words += text.data.split(/\\s+/).filter(Boolean).length;
  }
  const drawings = [...document.querySelectorAll("svg.figure, table.heat")];
  const figures = drawings.filter((one) => one.checkVisibility() && isThere(one.getBoundingClientRect()));
  return { words, figures: figures.length };
}"""


if __name__ == "__main__":
    main()
