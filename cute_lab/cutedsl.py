"""Graph -> CuTeDSL text: one @cute.jit function per graph, the same for the host, Hopper and Blackwell.

Formatting only: types and casts were decided in lowering, and no op is named here. A statement is a line that ends with the
user's line; a value is inlined where it is used once on the same line. Every value is a vector of the lanes' length.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cute_lab.ir import DTYPES, INPUTS, Graph, Node, Program, Scalar, Table, toposort
from cute_lab.ops import LEAVES, OPS
from cute_lab.ops.access import literal

HEADER = "import operator\n\nimport cutlass\nfrom cutlass import cute\n"
TABLE = """

def table(address, dtype, shape, stride):  # a captured tensor where it lies: what FlashAttention-4 calls aux_scalars may be an address
    pointer = cute.make_ptr(dtype, address, cute.AddressSpace.gmem, assumed_align=dtype.width // 8)
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))
"""
WIDE = 2**31  # elements: a table that reaches farther is indexed in 64 bits
NAMES = {"score": "score_mod", "score_bwd": "score_mod_bwd", "mask": "mask_mod"}
MAX_SAID = 44  # characters of the user's line in a comment: the whole fits a notebook's width
MAX_INLINE = 72  # characters of an expression before it gets a line of its own
PARAMETERS = "score grad b h q_idx kv_idx seqlen_info aux_tensors aux_scalars"
RESERVED = {*PARAMETERS.split(), "cute", "cutlass", "operator", "lane", "table", *dir(builtins)}


@dataclass(frozen=True)
class Source:
    """`user_lines[i]` is the user's line that generated line i + 1 came from, 0 for none."""

    text: str
    user_lines: tuple[int, ...]
    functions: tuple[str, ...]


@dataclass
class Writer:
    """Prints one graph. `uniform` says that all lanes of a call share b, h and q_idx (false in the backward pass)."""

    graph: Graph
    tables: Sequence[Table]
    scalars: Sequence[Scalar]
    uniform: bool
    fast: bool = False
    lines: list[tuple[str, int]] = field(default_factory=list)
    text: dict[Node, str] = field(default_factory=dict)
    extra: frozenset[str] = frozenset()  # names that the caller uses
    taken: set[str] = field(default_factory=lambda: set(RESERVED))
    names: dict[tuple[str, int], str] = field(default_factory=dict)
    lanes: dict[Node, str] = field(default_factory=dict)
    varying: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.taken |= self.extra

    def fresh(self, base: str) -> str:
        base = re.sub(r"\W", "_", base) or "t"
        base = f"{base}_" if keyword.iskeyword(base) or base[0].isdigit() else base
        name = base if base not in self.taken else next(f"{base}_{i}" for i in range(2, 9999) if f"{base}_{i}" not in self.taken)
        self.taken.add(name)
        return name

    def table(self, index: int) -> str:
        return self.names["table", index]

    def scalar(self, index: int) -> str:
        return self.names["scalar", index]

    def size(self, table: int, dim: int) -> str:
        return str(self.tables[table].original.shape[dim])

    def line(self, text: str, n: Node | None = None, comment: bool = True) -> None:
        loc = self.graph.origin.get(n) if n is not None else None
        if loc is not None and comment:
            said = loc.text.strip()
            said = said if len(said) <= MAX_SAID else said[: MAX_SAID - 1] + "…"
            text = f"{text:<60}  # {loc.line}" + (f"| {said}" if said else "")
        self.lines.append((text, loc.line if loc else 0))

    def literal_vector(self, n: Node) -> str:
        if n.attr == 0 and DTYPES[n.dtype].kind == "float" and math.copysign(1, n.attr) < 0:
            return f"(cute.full_like(kv_idx, 0.0, cutlass.{DTYPES[n.dtype].cute}) * -1.0)"  # a constant -0.0 comes out as 0.0
        return f"cute.full_like(kv_idx, {literal(n.attr)}, cutlass.{DTYPES[n.dtype].cute})"

    def vector(self, n: Node) -> str:
        """The value as a vector, also when it is a constant."""
        return self.literal_vector(n) if n.is_const else self.text[n]

    def statement(self, n: Node, expression: str) -> str:
        name = self.fresh(self.graph.names.get(n, "t"))
        self.line(f"{name} = {_bare(expression)}", n)
        return name

    def fragment(self, n: Node, user: Node | None = None) -> str:
        """A value in registers: its lanes can be read one by one, inside a dynamic `if` too."""
        if n not in self.lanes:
            name = self.fresh(f"{self.text[n]}_at" if self.text[n].isidentifier() else "at")
            dtype, value = DTYPES[n.dtype].cute, _bare(self.vector(n))
            if n.dtype == "bool":
                dtype, value = (
                    "Uint32",
                    f"cute.where({value}, cute.full_like(kv_idx, 1, cutlass.Uint32), cute.full_like(kv_idx, 0, cutlass.Uint32))",
                )
            self.line(f"{name} = cute.make_rmem_tensor(kv_idx.shape, cutlass.{dtype})", user, comment=False)
            self.line(f"{name}.store({value})", user)
            self.lanes[n] = name
        return self.lanes[n]

    def gather(self, n: Node, index: Sequence[str]) -> str:
        table = self.tables[n.attr]
        stored = table.stored
        name = self.fresh(self.graph.names.get(n, f"{table.name}_value"))
        at = [a for a, place in zip(n.args, table.dims, strict=True) if place is not None]
        reach = sum((size - 1) * stride for size, stride in zip(table.tensor.shape, table.tensor.stride(), strict=True))
        wide = "cutlass.Int64({})" if reach >= WIDE else "{}"
        if not any(a in self.varying for a in at):
            where = ", ".join(literal(a.attr) if a.is_const else wide.format(f"{self.fragment(a, n)}[0]") for a in at) or "0"
            expression = f"cute.full_like(kv_idx, {self.table(n.attr)}[{where}], cutlass.{stored})"
            self.line(f"{name} = {expression}", n)
        else:
            where = ", ".join(literal(a.attr) if a.is_const else wide.format(f"{self.fragment(a, n)}[lane]") for a in at)
            lanes = self.fresh(f"{name}_lanes")
            self.line(f"{lanes} = cute.make_rmem_tensor(kv_idx.shape, cutlass.{stored})", n, comment=False)
            self.line("for lane in cutlass.range(cute.size(kv_idx.shape), unroll_full=True):", n, comment=False)
            self.line(f"    {lanes}[lane] = {self.table(n.attr)}[{where}]", n)
            self.line(f"{name} = {lanes}.load()", n, comment=False)
        return f"({name} != 0)" if n.dtype == "bool" else name

    def expression(self, n: Node) -> str:
        if n.is_const and DTYPES[n.dtype].kind == "float" and n.attr == 0 and math.copysign(1, n.attr) < 0:
            return self.literal_vector(n)
        if n.op in LEAVES:
            return LEAVES[n.op].text(n, [self.vector(a) for a in n.args], self)
        op = OPS[n.op]
        literals_ok = not op.vector and not all(a.is_const or a.op == "size" for a in n.args)
        args = [self.text[a] if literals_ok else self.vector(a) for a in n.args]
        return op.template(tuple(a.dtype for a in n.args), self.fast).format(*args)

    def write(self) -> None:
        self.body([self.graph.output])
        self.line(f"return {_bare(self.vector(self.graph.output))}", self.graph.output)

    def body(self, outputs: Sequence[Node]) -> None:
        """Statements for everything that the outputs need; `text` and `vector` then give each output's expression."""
        order = toposort(*outputs)
        inputs = dict(INPUTS[self.graph.kind])
        lane_inputs = {"kv_idx", "score", "grad"} if self.uniform else set(inputs)
        uses: dict[Node, list[Node]] = {}
        for n in order:
            for a in n.args:
                uses.setdefault(a, []).append(n)
            if (n.op == "input" and n.attr in lane_inputs) or any(a in self.varying for a in n.args):
                self.varying.add(n)
        for n in order:
            if n.op == "scalar" and ("scalar", n.attr) not in self.names:
                self.names["scalar", n.attr] = self.fresh(self.scalars[n.attr].name)
            if n.op in ("gather", "size"):
                key = n.attr if n.op == "gather" else n.attr[0]
                if ("table", key) not in self.names:
                    self.names["table", key] = self.fresh(self.tables[key].name)
        for (what, i), name in sorted(self.names.items()):
            if what == "table":
                t = self.tables[i]
                shape, stride = tuple(t.tensor.shape), t.tensor.stride()
                self.line(f"{name} = table(aux_scalars[{i}], cutlass.{t.stored}, {shape}, {stride})")
            else:
                dtype = DTYPES[self.scalars[i].dtype].cute
                self.line(f"{name} = cute.full_like(kv_idx, aux_scalars[{len(self.tables) + i}], cutlass.{dtype})")
        for n in order:
            expression = self.expression(n)
            self.text[n] = expression if self.inline(n, uses.get(n, []), expression) else self.statement(n, expression)

    def inline(self, n: Node, users: Sequence[Node], expression: str) -> bool:
        if n.op in ("input", "const", "scalar", "size") or expression.isidentifier():
            return True
        if not users:
            return True  # the result stands in the return
        if len(users) > 1 or n in self.graph.names or len(expression) > MAX_INLINE:
            return False
        user = users[0]
        if user.args.count(n) > 1 or user.op == "gather":
            return False
        if user.op in OPS and _count(OPS[user.op].template(tuple(a.dtype for a in user.args), self.fast), user.args.index(n)) > 1:
            return False
        mine, theirs = self.graph.origin.get(n), self.graph.origin.get(user)
        return (mine.line if mine else 0) == (theirs.line if theirs else 0)


def _count(template: str, position: int) -> int:
    return template.count(f"{{{position}}}")


def _bare(expression: str) -> str:
    """Drops parentheses around the whole."""
    if expression.startswith("(") and expression.endswith(")"):
        depth = 0
        for i, ch in enumerate(expression):
            depth += (ch == "(") - (ch == ")")
            if depth == 0 and i < len(expression) - 1:
                return expression
        return expression[1:-1]
    return expression


@dataclass(frozen=True)
class Guard:
    """What a target's kernel hands over beside true positions. The host hands over true positions only.

    `q` and `kv`: the last position, where the kernel's tiles reach beyond it and a table would be read outside. `heads`: query heads
    per kv head, where the kernel gives q // heads and h * heads + q % heads for q and h. `one_row`: the lanes of a call are keys of
    one query, as in all forward kernels; the backward ones may call score_mod with four queries and one key.
    """

    q: int | None = None
    kv: int | None = None
    heads: int = 1
    one_row: bool = True

    def lines(self, graph: Graph) -> list[tuple[str, int]]:
        used = {str(n.attr) for n in graph.nodes() if n.op == "input"}
        out = []
        if self.heads > 1 and graph.kind != "mask" and used & {"q_idx", "h"}:
            n = self.heads
            out += [
                f"# {n} query heads per kv head: this kernel hands over q // {n} as q_idx and h * {n} + q % {n} as h",
                f"q_idx = q_idx * {n} + (h - h // {n} * {n})",
                f"h = h // {n}",
            ]
        read = {str(x.attr) for n in graph.nodes() if n.op == "gather" for x in toposort(n) if x.op == "input"}
        for name, last in (("q_idx", self.q), ("kv_idx", self.kv)):
            if last is not None and name in read:
                out.append(f"{name} = cute.where({name} > {last}, cute.full_like({name}, {last}), {name})  # tiles reach beyond the end")
        return [(f"    {line}", 0) for line in out]


HOST = Guard()


def signature(kind: str, captures: bool) -> str:
    names = [name for name, _ in INPUTS[kind]] + ["seqlen_info", "aux_tensors"] + (["aux_scalars"] if captures else [])
    return ", ".join(names)


def write_function(graph: Graph, tables: Sequence[Table], scalars: Sequence[Scalar], fast: bool = False, one_row: bool = True) -> Writer:
    w = Writer(graph, tables, scalars, uniform=one_row and graph.kind != "score_bwd", fast=fast)
    w.write()
    return w


def emit(program: Program, extra: Mapping[str, Sequence[tuple[str, int]]] | None = None, fast: bool = False, guard: Guard = HOST) -> Source:
    """The module text with score_mod, score_mod_bwd and mask_mod, as far as the program has them, and `extra` functions."""
    head = HEADER + TABLE if program.tables else HEADER
    lines: list[tuple[str, int]] = [(text, 0) for text in head.split("\n")[:-1]]
    functions: list[str] = []
    for kind, graph in program.graphs().items():
        name = NAMES[kind]
        functions.append(name)
        w = write_function(graph, program.tables, program.scalars, fast, guard.one_row)
        lines += [("", 0), ("", 0), ("@cute.jit", 0), (f"def {name}({signature(kind, program.captures)}):", 0)]
        lines += guard.lines(graph) + [(f"    {text}", line) for text, line in w.lines]
    for name, body in (extra or {}).items():
        functions.append(name)
        lines += [("", 0), ("", 0), ("@cute.jit", 0), *body]
    if not any("operator." in line for line, _ in lines):
        lines = lines[2:]  # the import and the blank below it
    text = "\n".join(line for line, _ in lines) + "\n"
    return Source(text, tuple(n for _, n in lines), tuple(functions))
