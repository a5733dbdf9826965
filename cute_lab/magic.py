"""%%cute_attention: a cell's two functions and its options -> a Lab in the notebook and its views below the cell. %cute_share.

The equals of `cute_lab.attention(...)` and of `python -m cute_lab share`. Mistakes are raised, never printed; an unknown option is a
UsageError, as in every magic.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand

from cute_lab import comm
from cute_lab.options import AUTO, MAGIC, NONE, PARSER, SHAPE, complete, fragment, parse
from cute_lab.record import Note


class Stopped(KeyboardInterrupt):
    """A cell that a person has interrupted: said in a sentence, without the stack of what was under way."""

    def _render_traceback_(self) -> list[str]:
        return [f"Stopped: {self}"]


@magics_class
class CuteMagics(Magics):
    @no_var_expand
    @line_cell_magic
    def cute_attention(self, line: str, cell: str | None = None) -> None:
        __tracebackhide__ = True
        given = parse(line)
        if "--help" in given:
            print(PARSER.format_help())
            return
        if cell is None:
            raise UsageError(f"%%{MAGIC} is a cell magic: its line, then the functions; %{MAGIC} --help lists the options")
        try:
            self._run(line, cell, given)
        except KeyboardInterrupt as stop:
            raise (stop if isinstance(stop, Stopped) else Stopped("run the cell again for the rest.")) from None

    def _run(self, line: str, cell: str, given: dict[str, Any]) -> None:
        __tracebackhide__ = True
        from cute_lab import cell as cells
        from cute_lab import display
        from cute_lab.lab import attention
        from cute_lab.record import Cell

        shell: Any = self.shell
        magic = f"%%{MAGIC} {line}".rstrip()
        text = f"# {magic}\n{cell}"  # the %% line keeps its place: line numbers are the editor's
        # compile.cache would name it after a file of this process; this name is the text's own, and says "cell" in messages
        filename = cells.remember(text)
        shell.compile._filename_map[filename] = shell.execution_count - 1  # tracebacks say In[n]; IPython has counted already
        mods = cells.from_text(text, shell.user_ns, filename, dict(given.get("--param", ())))
        out = given.get("--out", "lab")
        shape = {flag.strip("-"): given[flag] for flag in SHAPE if flag in given}
        targets = tuple(dict.fromkeys(name for name in given.get("--target", ()) if name not in (AUTO, NONE)))
        record_cell = Cell(f"{magic}\n{cell}", magic, out)
        wanted: dict[str, Any] = {
            "target": targets or (NONE if NONE in given.get("--target", ()) else AUTO),
            "params": mods.params,
            "fast_math": "--fast-math" in given,
        }
        lab = attention(mods.score_mod, mods.mask_mod, **shape, **wanted, name=out, cell=record_cell)
        mods.forget_unused()
        shell.user_ns[out] = lab
        live = _sliders(lab) if shell.has_trait("kernel") else None
        names = given.get("--views")
        shown: tuple[str, ...] = ()
        compiled = targets or NONE not in given.get("--target", ())
        if not compiled or shell.has_trait("kernel"):
            record = lab.record(())
            if compiled:
                if live:
                    live.awaits(lab.targets)
                record = dataclasses.replace(record, notes=(*record.notes, _compiling(lab.targets)))
            shown = display.show(record, names)  # the proof at once,
            if live:
                live.refresh()
        if compiled:  # the machine code joins it when it is there; a terminal can't replace and waits
            try:
                record = lab.record(backward="--backward" in given)
            except BaseException as error:
                stopped = isinstance(error, KeyboardInterrupt)
                if shown:  # nothing is being compiled any more
                    left = (_uncompiled(lab.targets),) if stopped else ()
                    display.show(dataclasses.replace(record, notes=(*record.notes[:-1], *left)), names, replace=shown)
                if stopped:
                    raise Stopped("the kernel is not compiled. Run the cell again for the machine code.") from None
                raise
            finally:
                if live:
                    live.awaits(())
                    live.refresh()  # its cost is known now
            shown = display.show(record, names, replace=shown)
        if "--bench" in given:
            from cute_lab import bench

            found = bench.bench(lab, given.get("--against"), {}, bench.WAY, bench.ROUNDS, 0, None, False)
            record = dataclasses.replace(record, bench=found)
            display.show(record, names, replace=shown)  # the summary has the speed now
            display.show(record, ("throughput", "timings"))

    @no_var_expand
    @line_magic
    def cute_share(self, line: str) -> None:
        """%cute_share [NOTEBOOK.ipynb] [--out FILE] [--check] [--in-place] [--keep-environment] [--private hostname,user,path]

        Makes a notebook fit to be shared, this one without a path. What is shared is the file on the disk: save it first.
        """
        __tracebackhide__ = True
        from cute_lab import share_magic

        print(share_magic.run(line, self.shell.user_ns))  # type: ignore[union-attr]


def _compiling(targets: tuple[str, ...]) -> Note:
    return Note("info", f"⚙ The kernel is being compiled for {_names(targets)}: the machine code joins this card when it is there.")


def _uncompiled(targets: tuple[str, ...]) -> Note:
    return Note("info", f"⚙ Stopped before the kernel was compiled for {_names(targets)}: run the cell again for the machine code.")


def _names(targets: tuple[str, ...]) -> str:
    return " and ".join(f"`{name}`" for name in targets)


def _sliders(lab: Any) -> Any:
    """The panel, above the card, where the cell declares sliders. It starts to work when the card is there: not both at once."""
    from cute_lab import stopwatch
    from cute_lab.panel import Panel
    from cute_lab.steps import ranges_of

    if not ranges_of(lab):
        return None
    panel = Panel(lab, *stopwatch.default())
    panel.show()
    return panel


CuteMagics.cute_attention.__doc__ = PARSER.format_help()


@context_matcher(identifier="cute_lab")  # type: ignore[untyped-decorator]
def matcher(context: CompletionContext) -> SimpleMatcherResult:
    """Options and their values on the %% line, in any front end."""
    found: list[str] = []
    if context.cursor_line == 0 and context.full_text.startswith(f"%%{MAGIC} "):
        found = complete(context.text_until_cursor, context.full_text)
    completions = [SimpleCompletion(name, type="param") for name in found]
    part = fragment(context.text_until_cursor) if found else context.token
    return SimpleMatcherResult(completions=completions, matched_fragment=part, suppress=bool(found), ordered=True)


def load_ipython_extension(shell: InteractiveShell) -> None:
    shell.register_magics(CuteMagics)
    if matcher not in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.append(matcher)
    comm.register(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    for kind in ("line", "cell"):
        for name in (MAGIC, "cute_share"):
            shell.magics_manager.magics[kind].pop(name, None)
    if matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(matcher)
    comm.unregister(shell)
