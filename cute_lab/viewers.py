"""What each viewer shows of an output, as data: the forms that it can draw, in the order in which it prefers them.

Measured in JupyterLab 4.6 and nbconvert 7.17; GitHub, nbviewer, VS Code and Colab by their documentation and their issue trackers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cute_lab.record import MIME, SLIDERS

WIDGET = "application/vnd.jupyter.widget-view+json"
PLOTLY = "application/vnd.plotly.v1+json"
HTML, MARKDOWN, LATEX, PLAIN = "text/html", "text/markdown", "text/latex", "text/plain"
PNG, JPEG, SVG = "image/png", "image/jpeg", "image/svg+xml"
NOTHING = "nothing"
STILL = {MARKDOWN: "markdown", PNG: "picture", JPEG: "picture", LATEX: "formula", PLAIN: "plain text"}
LIVE = {MIME: "live card", PLOTLY: "live plot"}


@dataclass(frozen=True)
class Viewer:
    """`shows`: MIME type -> what a person sees, the preferred one first. What is not in it is not drawn at all."""

    name: str
    shows: dict[str, str]

    def of(self, forms: Collection[str]) -> str:
        return next((words for mime, words in self.shows.items() if mime in forms), NOTHING)


def _shows(*first: tuple[str, str], html: str = "html", without: Collection[str] = ()) -> dict[str, str]:
    """JupyterLab's and nbconvert's common order: html, markdown, latex, svg, png, jpeg, plain."""
    rest = {HTML: html, MARKDOWN: "markdown", LATEX: "formula", SVG: "drawing", PNG: "picture", JPEG: "picture", PLAIN: "plain text"}
    return {**dict(first), **{mime: words for mime, words in rest.items() if mime not in without}}


VIEWERS = (
    Viewer(
        "JupyterLab with cute_lab", _shows((MIME, "live card"), (SLIDERS, "a line"), (WIDGET, "error: no model"), (PLOTLY, "live plot"))
    ),
    Viewer(
        "JupyterLab with cute_lab (untrusted)",
        _shows((MIME, "live card"), (SLIDERS, "a line"), (PLOTLY, "live plot"), html="html, no scripts", without=(SVG,)),
    ),
    Viewer("JupyterLab without cute_lab", _shows((WIDGET, "error: no model"), (PLOTLY, "live plot"))),
    Viewer("HTML export", _shows()),
    Viewer("HTML export without scripts", _shows(html="tags as text", without=(SVG,))),
    Viewer("GitHub", _shows(html="html, no styles")),
    Viewer("nbviewer", _shows()),
    Viewer("VS Code", _shows((PLOTLY, "live plot"))),
    Viewer("Colab", _shows((PLOTLY, "live plot"))),
)


def shown(forms: Collection[str]) -> tuple[str, ...]:
    """What each of VIEWERS shows of an output with these MIME types."""
    return tuple(viewer.of(forms) for viewer in VIEWERS)


def table(rows: list[tuple[str, tuple[str, ...]]]) -> str:
    """`rows` are (output, what each viewer shows); equal ones stand in one line, by their places."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for place, words in rows:
        groups.setdefault(words, []).append(place)
    lines: list[str] = []
    for words, places in groups.items():
        lines.append(f"{'; '.join(places)}:")
        same: dict[str, list[str]] = {}
        for viewer, word in zip(VIEWERS, words, strict=True):
            same.setdefault(word, []).append(viewer.name)
        lines += [f"    {word:<18}{', '.join(names) if len(same) > 1 else 'everywhere'}" for word, names in same.items()]
    return "\n".join(lines)
