"""What a person needs of a picture, measured: every text on the page, and no text on another."""

from __future__ import annotations

import itertools

from matplotlib.figure import Figure

_SLACK = 0.5  # of a pixel: neighbours may touch


def unreadable(figure: Figure) -> list[str]:
    """A sentence for each text that leaves the page or overlaps another."""
    figure.draw_without_rendering()
    page = figure.bbox
    texts = [text for axes in figure.axes for text in axes.texts if text.get_text()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    found = [
        f"{text!r} leaves the page"
        for text, box in boxes
        if box.x0 < page.x0 or box.y0 < page.y0 or box.x1 > page.x1 or box.y1 > page.y1
    ]
    return found + [
        f"{left!r} lies on {right!r}"
        for (left, a), (right, b) in itertools.combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > _SLACK and min(a.y1, b.y1) - max(a.y0, b.y0) > _SLACK
    ]


def texts_of(figure: Figure) -> list[str]:
    """All that is written, with line breaks as spaces."""
    return [" ".join(text.get_text().split()) for axes in figure.axes for text in axes.texts]
