"""python -m cute_lab demo | show RECORD | bench SUITE | share, verify, export NOTEBOOK: `python -m cute_lab --help` says what each does."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from cute_lab.errors import CuteLabError, OptionError
from cute_lab.notebook import execute as execute
from cute_lab.notebook import records as records
from cute_lab.private import DEFAULT
from cute_lab.quantities import number, short
from cute_lab.record import Record
from cute_lab.suite_record import AXES, load, names

NOTEBOOK = "01_first_variant"
OUT = Path("out")
HERE = Path(__file__).parent


def notebook_path(name: str = NOTEBOOK) -> Path:
    """In a wheel the notebooks lie in the package, in a checkout beside it."""
    folders = (HERE / "notebooks", HERE.parent / "notebooks")
    return next(path for folder in folders if (path := folder / f"{name}.ipynb").exists())


def table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def verification(record: Record) -> list[tuple[str, ...]]:
    head = ("generated code", "verdict", "points", "max error")
    rows = [(c.name, "equal" if c.ok else "DIFFERS", number(c.points), short(c.max_abs_error)) for c in record.checks]
    return [head, *rows]


def blocks(record: Record) -> str:
    b = record.blocks
    if b is None:
        return "no mask_mod: every block is computed"
    return f"{b.block_q}x{b.block_kv}: {number(b.full)} full, {number(b.partial)} partial, {number(b.empty)} empty of {number(b.blocks)}"


def machine_code(record: Record) -> list[tuple[str, ...]]:
    head = ("target", "direction", "registers", "stack bytes", "spilled stores", "spilled loads", "instructions")
    rows: list[tuple[str, ...]] = [head]
    for t in record.targets:
        figures = (t.registers, t.stack_bytes, t.spill_stores, t.spill_loads, t.instructions)
        shown = tuple(map(number, figures)) if t.status == "compiled" else ("refused: " + t.reason, "", "", "", "")
        rows.append((t.target, t.direction, *shown))
    return rows


def describe(record: Record) -> str:
    s = record.shape
    parts = [f"{record.name}  B{s.B} H{s.H} Hkv{s.Hkv} Sq{s.Sq} Skv{s.Skv} D{s.D} {s.dtype}", table(verification(record))]
    parts += [f"blocks {blocks(record)}", table(machine_code(record)) if record.targets else ""]
    return "\n\n".join(part for part in parts if part)


def demo() -> None:
    import nbformat

    path = notebook_path()
    print(f"running {path.name} in a fresh kernel; the first time it compiles for Hopper and Blackwell, no GPU needed", flush=True)
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    execute(notebook, path.parent)
    found = {record.hash: record for record in records(notebook)}.values()
    for record in found:
        print(f"\n{describe(record)}")
    print(f"\nthe notebook as a page: {write_html(notebook, OUT / f'{NOTEBOOK}.html')}")
    if not found or not all(check.ok for record in found for check in record.checks):
        raise OptionError("the generated code differs from the functions of the notebook, see above")


def write_html(notebook: Any, path: Path) -> Path:
    from nbconvert import HTMLExporter

    exporter = HTMLExporter()  # type: ignore[no-untyped-call]
    text, _ = exporter.from_notebook_node(notebook)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def show(path: str, views: str) -> None:
    from cute_lab.display import plain

    found = load(path)
    print(plain(found, views.split(",")) if isinstance(found, Record) else repr(found))


def listed(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers like 1024,8192") from None


def bench(given: argparse.Namespace) -> None:
    from cute_lab import suite, suite_table

    changed: dict[str, Any] = {name: getattr(given, name) for name in (*AXES, "B", "rounds", "dtype")}
    for name in ("variants", "against", "directions"):
        text = getattr(given, name)
        changed[name] = text.split(",") if text else None
    chosen = suite.read(given.suite, changed)
    if given.out:
        Path(given.out).open("a").close()  # an unwritable file is found now, not after the first hour
    words = [word for word in sys.argv[1:] if word != given.out]
    command = shlex.join(["python", "-m", "cute_lab", *(word for word in words if word != "--out")])
    try:
        found = suite.run(chosen, given.device, given.seed, command, save=given.out)
    finally:
        if given.out and not Path(given.out).stat().st_size:
            Path(given.out).unlink()  # nothing was measured: no file that looks like a record
    print(f"\n{suite_table.plain(found.records)}")
    if given.out:
        print(f"\n{given.out}: python -m cute_lab show {given.out}, or cute_lab.load({given.out!r}) in a notebook")
    if any(t.contender == "cute_lab" and t.status in ("wrong", "failed") for r in found.records if r.bench for t in r.bench.timings):
        raise OptionError("cute_lab's own kernel is wrong or failed, see above")


def add_bench(verbs: Any) -> None:
    shown = verbs.add_parser("bench", help="check and time a suite of variants on this machine's GPU")
    shown.add_argument("suite", help=f"{', '.join(names())}, or a .toml file")
    shown.add_argument("--out", help="the record's file; written after each variant")
    shown.add_argument("--variants", help="comma-separated names of the suite's variants")
    shown.add_argument("--against", help="comma-separated contenders")
    shown.add_argument("--directions", help="of forward,backward,forward+backward")
    for name in (*AXES, "B"):
        shown.add_argument(f"--{name}", type=listed, help="comma-separated sizes")
    shown.add_argument("--dtype", help="bf16 or fp16")
    shown.add_argument("--rounds", type=int, help="samples per contender; 0 only checks")
    shown.add_argument("--seed", type=int, default=0)
    shown.add_argument("--device", help="cuda:0; cpu times the host code and says nothing about a GPU")


def add_sharing(verbs: Any) -> None:
    shared = verbs.add_parser("share", help="make a notebook fit to be shared: no widget state, nothing private, sizes checked")
    shared.add_argument("notebook")
    shared.add_argument("--out", help="the file to write (NAME.shared.ipynb)")
    shared.add_argument("--in-place", action="store_true", help="write over the notebook")
    shared.add_argument("--check", action="store_true", help="write nothing; exit 1 if the notebook is not fit as it is")
    shared.add_argument("--keep-environment", action="store_true", help="leave in what --private names")
    words = "comma-separated: hostname, user, path, and fields of a record's environment (hostname,user,path)"
    shared.add_argument("--private", default=",".join(DEFAULT), help=words)
    again = verbs.add_parser("verify", help="run a notebook again in a fresh kernel and compare its records; exit 1 where they differ")
    again.add_argument("notebook")
    again.add_argument("--timeout", type=int, default=600, help="seconds for one cell (600)")
    page = verbs.add_parser("export", help="a notebook as one file for a browser; nothing else is loaded")
    page.add_argument("notebook")
    page.add_argument("--html", action="store_true", required=True, help="an interactive page")
    page.add_argument("--out", help="the file to write (NAME.html)")


def sharing(given: argparse.Namespace) -> int:
    if given.verb == "share":
        from cute_lab.share import share

        options = {name: getattr(given, name) for name in ("out", "check", "in_place", "keep_environment", "private")}
        shared = share(given.notebook, **options)
        print(shared)
        return 0 if shared.ok else 1
    if given.verb == "verify":
        from cute_lab.reverify import verify

        found = verify(given.notebook, timeout=given.timeout)
        print(found)
        return 0 if found.ok else 1
    from cute_lab.page_export import export_html

    print(export_html(given.notebook, given.out))
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cute_lab", description="CuTe Lab on the command line")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("demo", help="run the first notebook: check, block counts, registers; its page goes to out/")
    shown = verbs.add_parser("show", help="print a stored record")
    shown.add_argument("record", help="a file that Record.save wrote")
    shown.add_argument("--views", default="summary,mask,check,targets,lines", help="comma-separated")
    add_bench(verbs)
    add_sharing(verbs)
    given = parser.parse_args(arguments)
    try:
        if given.verb == "demo":
            demo()
        elif given.verb == "bench":
            bench(given)
        elif given.verb == "show":
            show(given.record, given.views)
        else:
            return sharing(given)
    except (CuteLabError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
