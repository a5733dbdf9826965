"""The mask as FlashAttention-4 takes it on SM100: 32 keep bits per word, lowest bit first, for any number of lanes.

A comparison that is linear in kv with coefficient 1 or -1 keeps a half-open run of lanes: its word is two shifts, for all 32 lanes
at once. A condition without kv is all ones or zeros. and / or / not of such words are single instructions. Only what is neither
(a table read at kv, kv % 2) is evaluated lane by lane and packed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cute_lab.cutedsl import HOST, Guard, Writer, _bare, signature
from cute_lab.ir import Graph, Node, Program, const, inputs_of, node
from cute_lab.ops import OPS

ONES = "cutlass.Uint32(0xFFFFFFFF)"
OWN_NAMES = frozenset(("words", "word", "first", "kv_at"))
BOOLEAN = {"and": "&", "or": "|", "xor": "^"}
# keep <=> kv < edge, or its negation, for a comparison of (c kv + rest) with 0; a, b: offsets of the edge
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


@dataclass(frozen=True)
class Form:
    """How a mask packs: comparisons that are runs of lanes, conditions without kv, and what is evaluated per lane."""

    runs: tuple[Node, ...]
    uniform: tuple[Node, ...]
    lanes: tuple[Node, ...]

    def words(self, graph: Graph) -> str:
        """For people: "packed: 2 runs of lanes" or what stands in the way."""
        if not self.lanes and not self.runs:
            return "packed: the same for all keys of a row" if self.uniform else "packed: a constant"
        if not self.lanes:
            return f"packed: {len(self.runs)} run{'s' * (len(self.runs) != 1)} of lanes" + (
                f", {len(self.uniform)} row conditions" if self.uniform else ""
            )
        what = [graph.origin[n].snippet for n in self.lanes if n in graph.origin]
        return "per lane" + "".join(f"{', ' if i else ': '}`{w}`" for i, w in enumerate(dict.fromkeys(filter(None, what))))


def depends(n: Node) -> bool:
    return "kv_idx" in inputs_of(n)


def linear(n: Node) -> tuple[int, Node] | None:
    """n = c kv + rest with an integer c; None if it is something else."""
    if not depends(n):
        return 0, n
    if n.op == "input":
        return 1, const(0, n.dtype)
    if n.op == "cast" and n.dtype in ("i32", "i64") and n.args[0].dtype in ("i32", "i64"):
        inner = linear(n.args[0])
        return None if inner is None else (inner[0], cast(inner[1], n.dtype))
    if n.op == "neg":
        inner = linear(n.args[0])
        return None if inner is None else (-inner[0], OPS["neg"](inner[1]))
    if n.op in ("add", "sub") and n.dtype in ("i32", "i64"):
        a, b = (linear(x) for x in n.args)
        if a is None or b is None:
            return None
        return (a[0] + b[0] if n.op == "add" else a[0] - b[0]), combine(n.op, a[1], b[1])
    return None


def combine(op: str, a: Node, b: Node) -> Node:
    """a + b or a - b, without the zeros that `linear` starts from."""
    if b.is_const and b.attr == 0:
        return a
    if a.is_const and a.attr == 0:
        return b if op == "add" else OPS["neg"](b)
    return OPS[op](a, b)


def cast(n: Node, dtype: str) -> Node:
    if n.dtype == dtype:
        return n
    return const(n.attr, dtype) if n.is_const else node("cast", dtype, (n,))


@dataclass
class Packer:
    writer: Writer
    first: str = "first"  # kv of the word's first lane
    runs: list[Node] = field(default_factory=list)
    uniform: list[Node] = field(default_factory=list)
    lanes: list[Node] = field(default_factory=list)
    bits: dict[tuple[Node, int], tuple[str, Node]] = field(default_factory=dict)  # (edge, offset) -> its word, the comparison
    wanted: list[Node] = field(default_factory=list)

    def plan(self, n: Node) -> Callable[[], str]:
        """Registers the values that the word of n needs; the returned function gives its text once they are written."""
        if n.is_const:
            return lambda: ONES if n.attr else "cutlass.Uint32(0)"
        if not depends(n):
            self.uniform.append(n)
            self.wanted.append(n)
            return lambda: f"(cutlass.Uint32(0) - {self.writer.lanes[n]}[0])"
        if n.op in BOOLEAN and n.dtype == "bool":
            a, b = (self.plan(x) for x in n.args)
            return lambda: f"({a()} {BOOLEAN[n.op]} {b()})"
        if n.op == "not":
            inner = self.plan(n.args[0])
            return lambda: f"({inner()} ^ {ONES})"
        if n.op == "where" and n.dtype == "bool":
            p, yes, no = n.args
            return self.plan(OPS["or"](OPS["and"](p, yes), OPS["and"](OPS["not"](p), no)))
        run = self.run(n)
        if run is not None:
            return run
        self.lanes.append(n)
        self.wanted.append(n)
        return lambda: f"bits_{self.lanes.index(n)}"

    def run(self, n: Node) -> Callable[[], str] | None:
        if n.op not in COMPARISONS or n.args[0].dtype not in ("i32", "i64"):
            return None
        a, b = (linear(x) for x in n.args)
        if a is None or b is None or abs(a[0] - b[0]) != 1:
            return None
        positive = a[0] - b[0] == 1  # c kv + rest <op> 0 with rest = a - b: the comparison changes at kv = edge
        edge = combine("sub", b[1], a[1]) if positive else combine("sub", a[1], b[1])
        self.runs.append(n)
        self.wanted.append(edge)

        def below(offset: int) -> str:
            """The word of the lanes with kv < edge + offset."""
            return self.bits.setdefault((edge, offset), (f"run_{len(self.bits)}", n))[0]

        flipped = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
        op = n.op if positive else flipped.get(n.op, n.op)
        texts: Mapping[str, Callable[[], str]] = {
            "lt": lambda: below(0),
            "le": lambda: below(1),
            "gt": lambda: f"({below(1)} ^ {ONES})",
            "ge": lambda: f"({below(0)} ^ {ONES})",
            "eq": lambda: f"({below(1)} ^ {below(0)})",
            "ne": lambda: f"({below(1)} ^ {below(0)} ^ {ONES})",
        }
        return texts[op]


def form(program: Program) -> Form | None:
    """How this program's mask packs; None without a mask."""
    if program.mask is None:
        return None
    packer = Packer(Writer(program.mask, program.tables, program.scalars, uniform=True))
    packer.plan(program.mask.output)
    return Form(*(tuple(dict.fromkeys(x)) for x in (packer.runs, packer.uniform, packer.lanes)))


def function(program: Program, name: str, guard: Guard = HOST) -> Sequence[tuple[str, int]]:
    """The packed mask_mod as lines of text with the user's line of each."""
    graph = program.mask
    assert graph is not None
    writer = Writer(graph, program.tables, program.scalars, uniform=True, extra=OWN_NAMES)
    packer = Packer(writer)
    text = packer.plan(graph.output)
    wanted = [n for n in dict.fromkeys(packer.wanted) if not n.is_const]
    writer.body(wanted)
    for n in wanted:
        writer.fragment(n, n)
    line = writer.line
    line("kv_at = cute.make_rmem_tensor(kv_idx.shape, cutlass.Int32)")
    line("kv_at.store(kv_idx)")
    line("words = cute.make_rmem_tensor(((cute.size(kv_idx.shape) + 31) // 32,), cutlass.Uint32)")
    line("for word in cutlass.range_constexpr(cute.size(words.shape)):")
    line(f"    {packer.first} = kv_at[32 * word]")
    for i, n in enumerate(packer.lanes):
        line(f"    bits_{i} = cutlass.Uint32(0)", n, comment=False)
        line("    for lane in cutlass.range_constexpr(min(32, cute.size(kv_idx.shape))):", n, comment=False)
        line(f"        bits_{i} = bits_{i} | ({writer.lanes[n]}[32 * word + lane] << lane)", n)
    result = _bare(text())  # names the runs that it uses
    for (edge, offset), (run, n) in packer.bits.items():
        start = f"{writer.lanes[edge]}[0]" if not edge.is_const else repr(edge.attr)
        count = f"{start} - {packer.first}" + (f" + {offset}" if offset else "")
        line(f"    {run} = ((cutlass.Int64(1) << cutlass.min(cutlass.max({count}, 0), 32)) - 1).to(cutlass.Uint32)", n)
    line(f"    words[word] = {result}", graph.output)
    line("return words")
    head = f"def {name}({signature('mask', program.captures)}):"
    return [(head, 0), *guard.lines(graph), *((f"    {t}", number) for t, number in writer.lines)]


def functions(program: Program) -> dict[str, Sequence[tuple[str, int]]]:
    return {"mask_mod_packed": function(program, "mask_mod_packed")}
