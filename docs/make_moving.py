"""Makes the README's moving pictures of the page, docs/pictures/page.gif and page.ko.gif.

    python docs/make_moving.py headway-demo/page.html

Chromium shows the page that `headway demo` wrote: the words of a translation one after the other, the whole machine,
the heads, and the training under its slider.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parent / "pictures"
FILES = {"en": "page.gif", "ko": "page.ko.gif"}
WIDTH, HEIGHT = 1200, 690
"""Pixels of the window."""
SHOWN = 840, 483
"""Pixels of the picture."""
COLOURS, FREQUENT = 200, 40
"""Of the palette, and those of them that are taken as they are."""
TABS = {"machine": 1, "heads": 2, "training": 6}
"""Their places among the views."""
Frame = tuple[Image.Image, int]
"""A picture and its milliseconds."""


def frames(page: Any) -> Iterator[Frame]:
    """The scenes, one after the other."""

    def shot(milliseconds: int) -> Frame:
        page.wait_for_timeout(300)
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        return image.resize(SHOWN, Image.Resampling.LANCZOS), milliseconds

    words = page.locator(".words.target button")
    words.first.wait_for()
    for i in range(words.count()):
        words.nth(i).hover()
        yield shot(800)
    tabs = page.get_by_role("tab")
    for name, milliseconds in (("machine", 2600), ("heads", 2600)):
        tabs.nth(TABS[name]).click()
        page.wait_for_timeout(1200)
        yield shot(milliseconds)
    tabs.nth(TABS["training"]).click()
    slider = page.locator("input[type=range]:visible").first
    slider.wait_for()
    moments = int(slider.get_attribute("max") or 0)
    for moment in range(moments + 1):
        slider.fill(str(moment))
        yield shot(2200 if moment == moments else 450)


def palette_of(images: list[Image.Image]) -> Image.Image:
    """The most frequent colours as they are, which are paper, ink and lines, and others between all that occur."""
    counts: Counter[Any] = Counter()
    for image in images:
        counts.update({colour: count for count, colour in image.getcolors(SHOWN[0] * SHOWN[1]) or []})
    frequent = [colour for colour, _ in counts.most_common(FREQUENT)]
    each = Image.new("RGB", (len(counts), 1))
    each.putdata(list(counts))
    others = each.quantize(COLOURS - FREQUENT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*(value for colour in frequent for value in colour), *others])
    return palette


def write(images: list[Frame], output: Path) -> None:
    """One palette for all frames, so that what stands still costs nothing."""
    palette = palette_of([image for image, _ in images])
    first, *rest = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image, _ in images)
    durations = [milliseconds for _, milliseconds in images]
    first.save(output, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)
    print(f"{output}: {len(images)} frames, {output.stat().st_size / 1000:,.0f} kB")


def main(document: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for language, name in FILES.items():
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT},
                locale=language,
                reduced_motion="reduce",
                color_scheme="light",
            )
            page.set_default_timeout(120_000)
            page.goto(document.resolve().as_uri())
            write(list(frames(page)), PICTURES / name)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
