"""The widgets of a panel: a slider and a box per number, the shape's sliders folded away, buttons, four lines of words, the picture."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as w

from cute_lab import mask_widget, steps
from cute_lab.capture import Number
from cute_lab.lab import Lab
from cute_lab.record import BlockSummary
from cute_lab.sliders import Range, shown
from cute_lab.views._text import clean

LINES = ("mask", "check", "cost", "time")
RUN_TIME, RECOMPILES = "run-time (no recompile)", "recompiles"
GREY = "color: var(--jp-ui-font-color2, #757575)"
RED = "color: var(--jp-error-color1, #c62828); white-space: pre-wrap; margin: 0; font-size: 12px; line-height: 1.4; max-height: 20em"
WORDS = "line-height: 1.5; padding: 2px 0"  # the widgets' own lines are as high as a button
TRACK = 310  # pixels of a slider without its name


class Controls:
    """`moved(name, value)` is called for each move of a slider or its box, `buttons` are name -> (help, what pressing does)."""

    def __init__(self, lab: Lab, moved: Callable[[str, Number], None], buttons: Mapping[str, tuple[str, Callable[[], object]]]) -> None:
        self._moved = moved
        self.widgets: list[Any] = []
        self.inputs: dict[str, list[Any]] = {}
        self.labels: dict[str, str] = {}
        values, fixed, found = lab.params, lab.traced.fixed, steps.ranges_of(lab)
        wide = max(110, min(260, 9 * max(map(len, found), default=0)))
        self._look = {"style": {"description_width": f"{wide}px"}, "layout": {"width": f"{wide + TRACK}px"}}
        rows = [self._number(name, r, values[name], fixed.get(name)) for name, r in found.items()]
        sizes = [self._size(name, places, getattr(lab.shape, name)) for name, places in steps.stops(lab).items()]
        fold = self._keep(w.Accordion([self._keep(w.VBox(sizes))], titles=[f"shape ({RECOMPILES})"], selected_index=None))
        self._status = self._keep(w.HTML())
        bar = [*(self._button(name, *what) for name, what in buttons.items()), self._status]
        self.lines = {name: self._keep(w.HTML(layout=w.Layout(min_height="26px", margin="0 2px"))) for name in LINES}
        esm = mask_widget.module()
        self.mask = None if esm is None else mask_widget.MaskPicture(esm, any_shell)
        self.image = self._keep(self.mask.widget if self.mask else w.Image(layout=w.Layout(width="100%", max_width="700px", height="auto")))
        self.image.layout.display = "none"
        any_shell(self.image)
        self.box = self._keep(w.VBox([*rows, fold, self._keep(w.HBox(bar)), *self.lines.values(), self.image]))

    # -- out --------------------------------------------------------------------------------------------------------------
    def say(self, line: str, text: str, *, error: bool = False, old: bool = False) -> None:
        if error:
            self.lines[line].value = f"<pre style='{RED}'>{html.escape(clean(text))}</pre>"
        else:
            words = f"<span style='{GREY}'>{marked(text)} (from earlier values)</span>" if old else marked(text)
            self.lines[line].value = f"<div style='{WORDS}'>{words}</div>"

    def picture(self, lab: Lab, blocks: BlockSummary | None) -> None:
        """Without one, its place stays as it is: the notebook must not jump."""
        if blocks is not None:
            if self.mask:
                self.mask.show(lab, blocks)
            else:
                self.image.value = steps.picture(lab, blocks)
            self.image.layout.display = ""
        self.image.layout.visibility = "hidden" if blocks is None else "visible"

    def status(self, text: str) -> None:
        self._status.value = f"<span style='{GREY}'>{marked(text)}</span>"

    def put(self, name: str, value: Number) -> None:
        for widget in self.inputs[name]:
            widget.value = value
            any_shell(widget)

    def close(self) -> None:
        for widget in self.widgets:
            for part in ("layout", "style"):  # widgets too, which ipywidgets would keep
                if widget.has_trait(part):
                    getattr(widget, part).close()
            widget.close()

    def bytes_held(self) -> int:
        """What its widgets hold but for the picture, as they are sent."""
        return sum(len(str(widget.get_state())) for widget in self.widgets if widget is not self.image)

    # -- in ---------------------------------------------------------------------------------------------------------------
    def _keep(self, widget: Any) -> Any:
        self.widgets.append(widget)
        return widget

    def _number(self, name: str, r: Range, value: Number, reason: str | None) -> Any:
        limits = {"min": r.low, "max": r.high, "step": r.step, "value": value}
        slide, box = (w.IntSlider, w.BoundedIntText) if r.whole else (w.FloatSlider, w.BoundedFloatText)
        pair = [
            self._keep(slide(**limits, **self._look, description=name, tooltip=name, readout=False)),
            self._keep(box(**limits, tooltip=name, layout=w.Layout(width="100px"))),
        ]
        self._keep(w.jslink(*((widget, "value") for widget in pair)))
        self._watch(name, pair)
        self.labels[name] = f"{shown(r.low)} to {shown(r.high)}, step {shown(r.step)} · {f'{RECOMPILES}: {reason}' if reason else RUN_TIME}"
        return self._keep(w.HBox([*pair, self._keep(w.HTML(f"<span style='{GREY}'>{html.escape(self.labels[name])}</span>"))]))

    def _size(self, name: str, places: tuple[int, ...], value: int) -> Any:
        options = [(f"{n:,}", n) for n in places]
        slide = self._keep(w.SelectionSlider(options=options, value=value, description=name, **self._look))
        self._watch(name, [slide])
        return slide

    def _watch(self, name: str, widgets: list[Any]) -> None:
        def moved(change: Any) -> None:
            any_shell(change["owner"])
            self._moved(name, change["new"])

        self.inputs[name] = widgets
        for widget in widgets:
            widget.observe(moved, "value")
            any_shell(widget)

    def _button(self, name: str, help: str, act: Callable[[], object]) -> Any:
        button = self._keep(w.Button(description=name, tooltip=help, layout=w.Layout(width="auto")))

        def pressed(_: object) -> None:
            try:
                act()
            except Exception as error:  # what fails in a callback is shown by nobody else
                self.status(str(error).split("\n")[0])

        button.on_click(pressed)
        any_shell(button)
        return button


def any_shell(widget: Any) -> None:
    """ipykernel 7.4 hands a widget's events to the shell that last used its comm: to the one of the cell that made it, which is busy
    while a cell runs. Without this note they go where the front end sends them."""
    if widget.comm is not None:
        vars(widget.comm).pop("_reply_subshell_id", None)


def marked(text: str) -> str:
    """Words as HTML; `backticks` mark code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(clean(text))).replace("\n", "<br>")
