"""Sliders above the card: a box of widgets whose mask follows at once, and whose check, cost and timing follow the mask.

What a moved slider does: its callback puts a note into a place for one and returns. A thread takes it, reads the newest values, shows
the mask, then the check, then the cost, and starts over as soon as newer values wait. Timing and compiling have threads of their own,
so that the mask never waits for them. No thread lives while there is nothing to do.

While a cell runs: JupyterLab 4.4 and newer sends widget events to a subshell, where ipykernel 7 and newer handles them beside the
running cell; results go out from the panel's own threads and never wait for the main one. They share the interpreter with the cell,
so a cell that computes in Python slows them down, and one that holds the interpreter lock in a long call of C stops them. A front end
that knows no subshells sends events to the queue of cells: they arrive when the cell is over, and only the newest values count.
"""

from __future__ import annotations

import base64
import threading
import traceback
from collections.abc import Callable
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import publish_display_data

from cute_lab import steps, stopwatch
from cute_lab.capture import Number
from cute_lab.controls import LINES, Controls
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.lab import Lab
from cute_lab.latest import Latest, Outdated, brisk
from cute_lab.record import SLIDERS, BlockSummary
from cute_lab.views._text import Lines, page

Retime = Callable[[Lab], str]  # runs and times again, on the GPU; returns a sentence
ERROR_CAP = 8000  # characters of one message
_open: set[Panel] = set()


class Panel:
    """The sliders of a Lab. `set` moves them from Python, `settled` waits for what is shown then, `pinned` are the Labs kept by Pin."""

    def __init__(self, lab: Lab, retime: Retime | None = None, interrupt: Callable[[], None] | None = None) -> None:
        self.lab, self.retime, self.interrupt = lab, retime, interrupt
        self.pinned: list[Lab] = []
        self.closed = False
        self._lock = threading.Lock()
        self._ranges = steps.ranges_of(lab)
        self._numbers: dict[str, Number] = {name: lab.params[name] for name in self._ranges}
        self._sizes: dict[str, int] = {name: getattr(lab.shape, name) for name in steps.stops(lab)}
        self._step = LINES[0]  # what the first thread is at
        self.text = dict.fromkeys(LINES, "")
        self._shown: tuple[Lab, BlockSummary] | None = None  # the block map in the picture
        self._now: Lab | None = None  # what all lines are about
        self._error: BaseException | None = None
        self._code: tuple[Any, ...] = ()  # what the cost line is about: shape, text, targets
        self._compiling: tuple[Any, ...] = ()
        self._awaited: tuple[str, ...] = ()  # targets that the cell itself compiles for
        self._displays: list[str] = []
        self._place: tuple[str, int] | None = None
        self._follower: Latest[None] = Latest("cute_lab-panel", self._follow, self._failed)
        self._timer: Latest[Lab] = Latest("cute_lab-panel-time", self._time, lambda error: self._say("time", error))
        self._compiler: Latest[None] = Latest("cute_lab-panel-compile", self._compile, self._not_compiled)
        self.controls = Controls(
            lab,
            self._moved,
            {
                "Run": ("mask, check and timing again", self.refresh),
                "Stop": ("leave the check and the timing where they are", self.stop),
                "Compile": (f"for {', '.join(lab.targets)}; no GPU needed", lambda: self._compiler.put(None)),
                "Pin values": (f"keep them in {lab.name}.panel().pinned", self.pin),
            },
        )
        _open.add(self)

    # -- from Python ------------------------------------------------------------------------------------------------------
    def set(self, **values: Number) -> None:
        """Moves sliders: `panel.set(window=512, Sq=16384)`. What follows is shown as if a person had moved them."""
        numbers, sizes = steps.asked(self.lab, values)
        for name, value in {**numbers, **sizes}.items():
            self.controls.put(name, value)
        self.refresh()

    def refresh(self) -> None:
        """Mask, check, cost and timing again, with what the functions capture now."""
        self._follower.put(None)

    def awaits(self, targets: tuple[str, ...]) -> None:
        """The cell compiles for these; () when it has."""
        self._awaited = targets

    def stop(self) -> None:
        """What is under way ends at its next step; the next move of a slider starts anew."""
        for worker in (self._follower, self._timer, self._compiler):
            worker.stop()
        if self.interrupt is not None:
            self.interrupt()
        if self._compiling:
            self._compiling = ()
            self._say("cost", "⚙ not waited for any more; what the compiler finishes is kept for the next Compile")

    def pin(self) -> Lab:
        self.pinned.append(self.present())
        self.controls.status(f"pinned {len(self.pinned)}: {steps.values_words(self.pinned[-1])}")
        return self.pinned[-1]

    def present(self) -> Lab:
        """The Lab where the sliders stand."""
        with self._lock:
            numbers, sizes = dict(self._numbers), dict(self._sizes)
        return steps.moved(self.lab, numbers, sizes)

    @property
    def sentence(self) -> str:
        return steps.sentence(self._ranges, self._numbers)

    def settled(self, timeout: float = 120.0) -> Lab:
        """Waits until everything is shown for the newest values; the Lab with these. Raises what went wrong with them."""
        if not (self._follower.idle(timeout) and self._timer.idle(timeout)):
            raise OptionError(f"the panel is still at work after {timeout:g} s", example="panel.settled(timeout=600)")
        if self._error is not None:
            raise self._error
        if self._now is None:
            raise OptionError("the panel was stopped before it had shown all", example="panel.refresh()")
        return self._now

    def close(self) -> None:
        """Ends its work and its widgets. The outputs that show it keep its last picture, or its last words."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        _open.discard(self)
        if self.interrupt is not None:
            self.interrupt()
        for worker, patience in ((self._follower, 30.0), (self._timer, 30.0), (self._compiler, 0.0)):  # a compiler ends by itself
            worker.close(patience)
        self.controls.close()
        for display_id in self._displays:
            publish_display_data(data=self._still(), transient={"display_id": display_id}, update=True)  # type: ignore[no-untyped-call]

    # -- the threads ------------------------------------------------------------------------------------------------------
    def _moved(self, name: str, value: Number) -> None:
        with self._lock:
            where: dict[str, Any] = self._numbers if name in self._numbers else self._sizes
            if where[name] == value:  # a slider and its box both report a move
                return
            where[name] = value
        self.refresh()

    def _follow(self, _: None, outdated: Outdated) -> None:
        self._error, self._now, self._step = None, None, "mask"
        with brisk:
            lab = self.present()
            blocks, words = steps.step_mask(lab)
            self._shown = (lab, blocks) if blocks else None
            self.controls.picture(lab, blocks)
        if (lab.params, lab.shape) != (self.lab.params, self.lab.shape):
            words += f" The card is the cell's own run, {steps.values_words(self.lab)}."
        self._say("mask", words)  # also where newer values wait: a picture must follow a hand that does not rest
        code = (lab.shape, lab.source)
        self._fade("check", *["cost"] * (code != self._code[:2]), *["time"] * (self.retime is not None))
        if outdated():
            return
        self._step = "check"
        words = steps.step_check(lab)
        if outdated():
            return
        self._say("check", words)
        self._step = "cost"
        if self._awaited:
            self._say("cost", f"⚙ compiling for {' and '.join(self._awaited)} …")
        elif code != self._compiling and self._code != (*code, known := steps.compiled(lab)):
            self._say("cost", steps.step_cost(lab, known))
            self._code = (*code, known)
        self._now = lab
        self._timer.put(lab)

    def _failed(self, error: BaseException) -> None:
        """At the line of the step that failed; what came before it holds for these values, what would come after is not known."""
        self._error, self._code = error, ()
        at = LINES.index(self._step)
        if at == 0:
            self._shown = None
            self.controls.picture(self.lab, None)
        self._say(LINES[at], error)
        for line in LINES[at + 1 :]:
            self._say(line, "")

    def _time(self, lab: Lab, outdated: Outdated) -> None:
        if self.retime is None:
            self._say("time", steps.not_timed(lab))
            return
        self._say("time", "⏱ timing …")
        words = self.retime(lab)
        if not outdated():
            self._say("time", f"⏱ {words}")

    def _compile(self, _: None, outdated: Outdated) -> None:
        lab = self.present()
        self._compiling = code = (lab.shape, lab.source)
        self._say("cost", f"⚙ compiling for {' and '.join(lab.targets)} …")
        words = steps.step_cost(lab, lab.targets)
        self._compiling, self._code = (), ()
        now = self.present()
        if not outdated() and code == (now.shape, now.source):
            self._say("cost", words)
            self._code = (*code, steps.compiled(lab))

    def _not_compiled(self, error: BaseException) -> None:
        self._compiling, self._code = (), ()
        self._say("cost", error)

    # -- what is shown ----------------------------------------------------------------------------------------------------
    def _say(self, line: str, what: str | BaseException) -> None:
        self.text[line] = what if isinstance(what, str) else message(what)
        self.controls.say(line, self.text[line], error=not isinstance(what, str))

    def _fade(self, *lines: str) -> None:
        for line in lines:
            if self.text[line]:
                self.controls.say(line, self.text[line], old=True)

    def show(self) -> None:
        """In the notebook, as an output of its own. A second run of a cell ends the panel that its first run has shown."""
        shell = get_ipython()
        if shell is None:
            print(self)
            return
        parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
        cell = parent.get("metadata", {}).get("cellId")
        for panel in [p for p in _open if cell and p._place and p._place[0] == cell and p._place[1] != shell.execution_count]:
            panel._displays.clear()  # these outputs are gone
            panel.close()
        self._place = (cell, shell.execution_count) if cell else None
        if self.closed:
            data = self._still()
        else:
            view = {"version_major": 2, "version_minor": 0, "model_id": self.controls.box.model_id}
            data = {"application/vnd.jupyter.widget-view+json": view, SLIDERS: {"words": self.sentence}, "text/plain": self.sentence}
        self._displays.append(f"cute-lab-sliders-{id(self):x}-{len(self._displays)}")
        publish_display_data(data=data, transient={"display_id": self._displays[-1]})  # type: ignore[no-untyped-call]

    def _still(self) -> dict[str, Any]:
        png = self.png
        if png is None:
            return {SLIDERS: {"words": self.sentence}, **page(Lines(tuple(str(self).split("\n"))))}
        return {SLIDERS: {"words": self.sentence}, "image/png": base64.b64encode(png).decode(), "text/plain": str(self)}

    @property
    def png(self) -> bytes | None:
        """The block map that it shows, for outputs without widgets."""
        shown = self._shown
        return None if shown is None else steps.picture(*shown)

    @property
    def mask_widget(self) -> Any:
        """The block map alone, an anywidget, for front ends without ipywidgets: marimo's `mo.ui.anywidget(panel.mask_widget)`. It follows
        `set`. None where the front end is not built, or there is no mask."""
        return None if self.controls.mask is None or self.lab.graph.mask is None else self.controls.mask.widget

    def _ipython_display_(self) -> None:
        self.show()

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(text for text in self.text.values() if text)])

    def __repr__(self) -> str:
        return f"<Panel of {self.lab.name}, {self.sentence.rpartition('; ')[0]}{', closed' * self.closed}>"


def of(lab: Lab, retime: Retime | None = None) -> Panel:
    """The open panel of this very Lab, or a new one that is at work already."""
    found = next((panel for panel in _open if panel.lab is lab), None)
    if found is None:
        timer, stop = stopwatch.default()
        found = Panel(lab, retime or timer, None if retime else stop)
        found.refresh()
    elif retime is not None:
        found.retime = retime
    return found


def message(error: BaseException) -> str:
    if isinstance(error, CuteLabError):
        return str(error)
    return "".join(traceback.format_exception(error))[-ERROR_CAP:]
