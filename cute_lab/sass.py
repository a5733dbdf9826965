"""SASS as data: disassembly, registers from the ELF, main loop, pipes, and what each user line costs. No torch.

The cost of a tile is `TC + max(MUFU, issue)` in cycles of one scheduler: tensor-core time of the tile's products,
plus the slower of exponentials and instruction issue in the main loop. On an H200, calibrated on the dense kernel
alone, it ranked five variants right with a mean error of 7 %: read differences below 10 % as equal, and compare
within one target only. Having a score_mod at all costs about 9 % more that no count shows. Blackwell is not calibrated.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from cute_lab.errors import OptionError
from cute_lab.targets import Target

NVDISASM, TOOLKIT = "nvidia-cuda-nvdisasm", "/usr/local/cuda"
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
LABEL = re.compile(r"^(\.L_x_\d+):")
MARKER = re.compile(r'^\s*//## File "(.*)", line (\d+)')
BRANCH = re.compile(r"\bBRA\b.*`\((\.L_x_\d+)\)")
OPCODE = re.compile(r"^(?:@!?U?P\w+\s+)?([A-Z0-9_]+)")
SLOW_PATH = 24  # longest block around a call that still counts as a rare slow path (division, square root)

# fmt: off
# Pipe -> opcodes; a name ending in * is a prefix. The first pipe that lists an opcode has it.
PIPES: dict[str, tuple[str, ...]] = {
    "tensor": ("HGMMA", "QGMMA", "IGMMA", "UTCHMMA", "UTCQMMA", "UTCMMA", "HMMA", "IMMA", "QMMA", "OMMA"),
    "mufu": ("MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV"),
    "fma": ("FFMA*", "FMUL*", "FADD*", "HFMA2*", "HADD2*", "HMUL2*", "IMAD*", "FSWZADD"),
    "fp64": ("DADD", "DMUL", "DFMA", "DSETP"),
    "memory": ("LD*", "ST*", "ATOM*", "RED", "REDG", "SHFL", "ULDC", "UTMA*", "UBLK*", "UTCCP", "SYNCS", "SU*"),
    "control": ("BRA", "BRX", "JMP", "EXIT", "CALL", "RET", "BSSY", "BSYNC", "BREAK", "BAR", "NOP", "WARPSYNC*",
                "DEPBAR", "FENCE", "NANOSLEEP", "WARPGROUP*", "YIELD", "USETMAXREG", "MEMBAR", "CCTL*", "ERRBAR",
                "ELECT", "UCGABAR*", "ACQBULK", "ACQSHMINIT", "UTCBAR", "UTCATOMSWS", "UVIRTCOUNT", "ENDCOLLECTIVE"),
    "uniform": ("U*", "R2UR", "S2UR", "REDUX", "CREDUX"),
    "alu": ("*",),
}
# fmt: on


@dataclass(frozen=True)
class LineCost:
    """What one line costs per tile. `line` is the user's line, or 0 where the generated line belongs to none."""

    line: int
    generated: tuple[int, ...]
    instructions: int
    pipes: dict[str, int]
    cycles: int  # of one scheduler: MUFU at its rate, everything else one issue slot
    share: float  # of the cycles of all lines of the mods


@dataclass(frozen=True)
class Instruction:
    text: str
    opcode: str
    pipe: str
    file: str
    line: int
    row: int  # index of its line in the listing


@dataclass(frozen=True)
class Listing:
    lines: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]  # label -> index of the instruction behind it

    def branches(self) -> Iterable[tuple[int, int]]:
        for i, ins in enumerate(self.instructions):
            match = BRANCH.search(ins.text)
            if match is not None:
                yield i, self.labels[match.group(1)]


@cache
def pipe_of(opcode: str) -> str:
    for pipe, names in PIPES.items():
        if any(opcode == name or (name.endswith("*") and opcode.startswith(name[:-1])) for name in names):
            return pipe
    raise AssertionError("the last pipe takes every opcode")


@lru_cache
def disassembler() -> tuple[str, str]:
    """nvdisasm and its version: the wheel's, else a CUDA toolkit's. OptionError where there is none."""
    try:
        files, version = importlib.metadata.files(NVDISASM) or [], importlib.metadata.version(NVDISASM)
        found = [str(file.locate()) for file in files if file.name.startswith("nvdisasm")]
    except importlib.metadata.PackageNotFoundError:
        folders = (None, *(os.path.join(home, "bin") for home in (os.environ.get("CUDA_HOME"), TOOLKIT) if home))
        found = [tool for folder in folders if (tool := shutil.which("nvdisasm", path=folder))][:1]
        said = subprocess.run([*found, "--version"], capture_output=True, text=True, check=False).stdout if found else ""
        version = said.strip().rpartition("\n")[2]  # "Build cuda_13.0.r13.0/compiler..."
    if not found:
        raise OptionError(f"{NVDISASM} is not installed", detail="Machine code is read with it.", example=f"pip install {NVDISASM}")
    return found[0], version


def disassemble(cubin: bytes) -> str:
    """Text of the cubin with its source markers."""
    tool, _ = disassembler()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as image:
        image.write(cubin)
        image.flush()
        return subprocess.run([tool, "-g", "-c", image.name], capture_output=True, text=True, check=True).stdout


def parse(text: str) -> Listing:
    """Labels and instructions of an nvdisasm text; source markers go to the instructions, headers away."""
    lines: list[str] = []
    instructions: list[Instruction] = []
    labels, file, line = dict[str, int](), "", 0
    for raw in text.splitlines():
        if (match := MARKER.match(raw)) is not None:
            file, line = match.group(1), int(match.group(2))
        elif (match := LABEL.match(raw)) is not None:
            labels[match.group(1)] = len(instructions)
            lines.append(raw)
        elif (match := INSTRUCTION.match(raw)) is not None:
            found = OPCODE.match(match.group(2))
            opcode = found.group(1) if found is not None else match.group(2)
            instructions.append(Instruction(match.group(2), opcode, pipe_of(opcode), file, line, len(lines)))
            lines.append(f"  /*{match.group(1)}*/  {match.group(2)} ;")
        elif raw.startswith("\t.section\t.text."):
            lines.append("// kernel " + raw.split(".text.")[1].split(",")[0].split("_object_at_")[0])
    return Listing(tuple(lines), tuple(instructions), labels)


def resources(cubin: bytes) -> dict[str, int]:
    """Launch registers and stack bytes from the ELF's .nv.info records, the largest over the kernels in it."""
    offset, entry, count, names = (
        struct.unpack_from("<Q", cubin, 0x28)[0],
        *struct.unpack_from("<HHH", cubin, 0x3A),
    )
    headers = [struct.unpack_from("<IIQQQQ", cubin, offset + i * entry) for i in range(count)]
    strings = headers[names][4]
    found = {0x2F: 0, 0x11: 0, 0x12: 0}  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE, EIATTR_MIN_STACK_SIZE
    for name, _, _, _, start, size in headers:
        if cubin[strings + name : cubin.index(b"\0", strings + name)] != b".nv.info":
            continue
        at = start
        while at < start + size:
            form, attribute, value = struct.unpack_from("<BBH", cubin, at)
            at += 4
            if form == 4:  # `value` bytes follow: symbol, number
                if attribute in found:
                    found[attribute] = max(found[attribute], struct.unpack_from("<II", cubin, at)[1])
                at += value
    return {"registers": found[0x2F], "stack_bytes": found[0x11], "min_stack_bytes": found[0x12]}


def loops(listing: Listing) -> list[tuple[int, int]]:
    """(first, last) of each backward branch, without those of failed barrier waits (cold blocks at the end)."""
    code = listing.instructions
    out = []
    for at, to in listing.branches():
        retry = not code[at].text.startswith("@") and any("TRYWAIT" in ins.text for ins in code[max(0, at - 6) : at])
        if to <= at and not retry:
            out.append((to, at))
    return out


def main_loop(listing: Listing, target: Target, mods: frozenset[int]) -> tuple[int, int] | None:
    """The innermost loop over kv tiles; of several (full, partial blocks) that with most of the mods, or the longest.

    `mods` holds the rows of the mods' instructions. The loop holds the softmax's exponentials on every target, and the
    matrix products where the same warps issue them (SM90, SM120).
    """
    code = listing.instructions
    rows = []
    for first, last in loops(listing):
        body = code[first : last + 1]
        mufu = sum(ins.opcode == "MUFU" for ins in body)
        tensor = sum(ins.opcode == target.tensor_op for ins in body)
        if mufu > 0 and (tensor > 0 or not target.tensor_in_loop):
            rows.append((first, last, mufu, sum(ins.row in mods for ins in body)))
    # An outer loop contains the inner ones (with block lists: full and partial blocks, first and other tiles).
    inner = [row for row in rows if not any(row[0] <= o[0] and o[1] <= row[1] and o[:2] != row[:2] and 8 * o[2] >= row[2] for o in rows)]
    if not inner:
        return None
    most = max(row[2] for row in inner)
    best = max((row for row in inner if 2 * row[2] >= most), key=lambda row: (row[3], row[1] - row[0]))
    return best[0], best[1]


def hot(listing: Listing, loop: tuple[int, int]) -> list[Instruction]:
    """The loop without the rare slow paths: short blocks around a call that a forward branch jumps over."""
    code = listing.instructions
    cold: set[int] = set()
    for at, to in listing.branches():
        short = loop[0] <= at < to <= loop[1] + 1 and to - at <= SLOW_PATH
        if short and any(ins.opcode == "CALL" for ins in code[at + 1 : to]):
            cold.update(range(at + 1, to))
    return [code[i] for i in range(loop[0], loop[1] + 1) if i not in cold]


def tile_cost(body: Sequence[Instruction], target: Target, direction: str, D: int, Dv: int, tile: tuple[int, int]) -> float:
    """TC + max(MUFU, issue), see above."""
    forward = direction == "forward"
    products = D + Dv if forward else 3 * D + 2 * Dv  # QK, PV; backward QK, dO V, dV, dK, dQ
    tensor = tile[0] * tile[1] * products / target.macs
    warps = target.warps(direction, tile)
    mufu = sum(ins.opcode == "MUFU" for ins in body)
    return tensor + warps * max(mufu * target.mufu_cycles, len(body))


def line_costs(body: Iterable[tuple[Instruction, int]], target: Target, warps: int) -> list[LineCost]:
    """Per generated line, in the order of the text."""
    groups: dict[int, list[str]] = defaultdict(list)
    for ins, generated in body:
        if ins.pipe not in ("tensor", "control"):  # the scheduler moves strays of the kernel between the mod's lines
            groups[generated].append(ins.pipe)
    rows = []
    for line, pipes in sorted(groups.items()):
        cycles = warps * sum(target.mufu_cycles if pipe == "mufu" else 1 for pipe in pipes)
        rows.append(LineCost(0, (line,), len(pipes), dict(Counter(pipes)), cycles, 0.0))
    return rows


def by_user_line(costs: Iterable[LineCost], user_lines: Sequence[int]) -> list[LineCost]:
    """Costs per line of the cell, dearest first; generated lines that belong to none stay on their own."""
    groups: dict[tuple[int, int], list[LineCost]] = defaultdict(list)
    for cost in costs:
        line = user_line(cost.generated[0], user_lines)
        groups[line, 0 if line else cost.generated[0]].append(cost)
    total = sum(cost.cycles for group in groups.values() for cost in group)
    out = []
    for (line, _), group in groups.items():
        pipes = sum((Counter(cost.pipes) for cost in group), Counter[str]())
        generated = tuple(number for cost in group for number in cost.generated)
        cycles = sum(cost.cycles for cost in group)
        out.append(LineCost(line, generated, sum(pipes.values()), dict(pipes), cycles, cycles / total))
    return sorted(out, key=lambda cost: -cost.cycles)


def user_line(generated: int, user_lines: Sequence[int]) -> int:
    return user_lines[generated - 1] if 0 < generated <= len(user_lines) else 0


def return_line(source: str, function: str) -> int:
    """The line of the function's last return."""
    lines = [0]
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            lines += [inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Return)]
    return max(lines)


def moved_lines(spec: Mapping[str, Any], folded: Mapping[tuple[str, int], str]) -> dict[tuple[str, int], int]:
    """FA4 lines to which the compiler moves a mod's arithmetic -> the generated line that it counts for: the mod's return line."""
    return {place: return_line(spec["source"], name) for place, name in folded.items() if name in spec["functions"]}


def analyse(
    cubin: bytes,
    filename: str,
    target: Target,
    direction: str,
    spec: Mapping[str, Any],
    tile: tuple[int, int],
    moved: Mapping[tuple[str, int], int],
) -> dict[str, Any]:
    """Everything of an Artifact that the cubin tells, JSON-able. `moved`: see moved_lines."""
    listing = parse(disassemble(cubin))
    code = listing.instructions

    def generated(ins: Instruction) -> int:
        return ins.line if ins.file == filename else moved.get((ins.file, ins.line), 0)

    mapped = [(ins, line) for ins in code if (line := generated(ins)) > 0]
    loop = main_loop(listing, target, frozenset(ins.row for ins, _ in mapped))
    body = hot(listing, loop) if loop is not None else []
    Dv = spec["Dv"] or spec["D"]
    mods = ((ins, line) for ins in body if (line := generated(ins)) > 0)
    return {
        **resources(cubin),
        "sass": "\n".join(listing.lines) + "\n",
        "spill_loads": sum(ins.opcode == "LDL" for ins in code),
        "spill_stores": sum(ins.opcode == "STL" for ins in code),
        "instructions": len(code),
        "mix": dict(Counter(ins.pipe for ins in body).most_common()),
        "tile": tile,
        "loop": [code[loop[0]].row, code[loop[1]].row] if loop is not None else None,
        "line_map": [(ins.row, line) for ins, line in mapped],
        "line_cost": [vars(cost) for cost in line_costs(mods, target, target.warps(direction, tile))],
        "cost": tile_cost(body, target, direction, spec["D"], Dv, tile) if body else None,
    }
