"""An interactive lab for attention variants: a cell of Python in, verified CuTeDSL, block masks and machine code out.

    cell text --cell--> mods --trace--> Graph (typed IR) --rewrite--> Graph
                                           |--evaluate--> reference values ----------.
                                           |--blocks----> block map                   | agree? (check)
                                           '--cutedsl---> CuTeDSL --host--> values --'
                                                             '------build--> Artifact: PTX, SASS, registers, cost by line
       all of it --lab--> Record --json--> file, git        Record --views, display--> the notebook's outputs

Values on the arrows are frozen dataclasses; what stands right of Record works from its JSON alone. The files in the order of the
flow, each imports only from those above it (a test reads this list):

    errors          every mistake a user can make: what, where, what to write
    quantities      numbers in words
    environment     the stamp of a record: versions and device
    codec           dataclasses <-> JSON values
    excerpt         what of a long listing a record keeps
    cell_code       a mask as data that a browser computes cell by cell
    runs            a block map as squares and as runs of its rows
    block_summary   a block map as data: counts, and the blocks in a string
    measurement     what a benchmark measured, as data
    record          a run as data <-> JSON; needs neither torch nor a compiler
    throughput      raw samples -> medians, intervals, ratios, TFLOP/s
    suite_table     a suite's record as tables
    suite_record    a suite's records in one file; reading any record
    picture         block map -> PNG
    series          what of a benchmark may be shown, in which panel, line and colour
    chart           a benchmark -> plotly's JSON
    chart_png       a benchmark -> PNG
    tiles           tiles of the kernels: the sparse blocks that fit them, the rows that share one
    targets         hardware as data: what each architecture allows
    heavy           which lines cost most, as far as the estimate can tell
    views           one file per view: record -> Markdown, text, PNG
    display         record + views -> MIME bundles in the notebook
    sliders         a number with a range that a person moves
    document_masks  masks that keep every document to itself
    lengths         lengths of real documents -> packed sequences and their masks
    usercode        the user's text: what stands at a place
    capture         what a mod captures
    freshness       what a mod's result depends on, as one value
    ir              the typed IR and its grammar
    ops             THE table of operators: meaning, CuTeDSL text, interval rule
    evaluate        the meaning of the IR, in torch and in intervals
    formulas        aten operators as short formulas of table operators
    special         special functions as formulas
    lazy            rows of captured tensors, loaded where they are looked at
    tables          the captured tensors of a variant
    parcel          mods on their way to another process
    tracer          runs a mod once, records its graph
    functions       torch's Python functions above the dispatcher
    branches        a tensor asked for its value: which construct, and what to write
    diagnose        from what went wrong in a mod to the error that says what to write
    lower           aten calls -> nodes
    rules           lowering rules that are no formula
    rows            lowering rules of short rows: sums, extremes, scans, products
    order           lowering rules of sorting, and of writing to a place in a row
    indexing        lowering rules of captured tensors' reads
    rewrite         rules that make a graph smaller or faster, equal in value
    runtime         captured numbers -> run-time scalars
    trace           mods -> Program
    live            a variant's program at this moment
    browser_mask    a program's mask -> CellCode
    cutedsl         Program -> CuTeDSL text
    shapes          what may be passed, and what to pass instead
    packed          the mask in words of 32 keys, for SM100
    host_kernels    loops that run generated functions on the CPU
    host            generated CuTeDSL -> values, on the CPU
    extremes        the least and greatest value of a captured tensor over boxes of its indices
    classify        which blocks are full, partial, empty: by bounds, else by running them
    check           reads out of bounds and divisions by zero, found before they happen
    generated       a program's functions, run with every index checked
    applied         the generated functions over the score matrix
    reference       torch's own evaluation of the mods
    accuracy        the check beside every speed: whole heads against float32
    verify          generated code against the reference
    conform_kernels  the generated functions as a kernel: a thread a vector
    conform         every vector width, on a GPU or the CPU, against the reference
    blocks          the mask's block map
    maps            the block map of a lab
    attend          attention on the CPU with the generated code
    sass            machine code -> instruction mix and cost by line
    ptx             PTX -> the generated line of each of its lines
    brisk           what CuTeDSL does anew for each operation, done once
    crosscompile    FlashAttention-4 with generated mods, compiled without a GPU
    sparse          block lists as FlashAttention-4's kernels take them
    native          masks that FlashAttention-4 has built in, proved
    fa4             FlashAttention-4 with generated mods on a GPU
    baselines       one file per contender: how it runs a variant, or why it can't
    timing          how a call is timed
    failures        what an exception says, and whether its process is lost
    worker          the compiler's process
    forkclient      talks to the worker
    device_worker   the process that owns a GPU
    device          talks to it
    build           generated CuTeDSL + target -> Artifact
    inductor        a second opinion: what Inductor would emit
    stages          the other views of a mod: torch's graph, Inductor's code
    advice          what a person should know before compiling
    reports         Lab -> Record
    orders          orders of an image's tokens
    offsets         document ids -> offsets
    inspector       what a mask costs, and what would make it cheaper
    known_labs      the Labs behind this notebook's records
    standalone      what an exported module consists of beside its variant
    standalone_check  the test that it carries in itself
    embed           a person's functions as text that stands alone
    scalar_forms    run-time numbers as expressions of a person's numbers
    export_sizes    at which sizes an exported module is right
    module_export   a variant as a torch module in a file of its own
    exporting       lab.export
    lab             the Lab: one variant and its verbs
    forecast        how much of a shape's measurement is over
    measure         one variant at one shape, on the GPU: checked, round by round
    progress        what is running and how long is left
    bench           a variant against its baselines over a sweep
    trial           a new kernel runs in another process first
    running         attention on the CPU or a GPU
    retime          a slider's step on the GPU
    stopwatch       what a panel shows of the GPU
    latest          work that only the newest request deserves
    steps           what follows when a slider moves
    mask_widget     the block map of a panel, as a widget
    controls        the widgets of a panel
    panel           sliders above the card
    cell            cell text -> mods
    notebook        a notebook's file: read, run again, its records
    private         what names a person, a machine or a folder
    viewers         what each viewer shows of an output
    share           a notebook fit to be shared
    compared        two records of one variant
    reverify        a notebook run again and compared
    page_export     a notebook as one interactive HTML file
    options         the options of %%cute_attention
    foreseen        what a cell's names and numbers are before it runs
    pure            callables that only compute
    harmless        may a cell run while it is typed?
    limits          what code that runs while a person types may take
    squiggles       a cell in an editor, places in it, and what is said there
    untraced        mistakes that a cell shows before anything of it runs
    quickfix        from a mistake to edits that mend it
    assist          a cell while it is typed: mistakes, mends, what is slow
    hover           a line's generated code and cost; what may be written next
    cells           single cells of a record's mask
    gpu_state       this machine's GPUs at this moment
    gallery         the attention zoo, a file per variant
    comm            what a front end asks of the kernel
    share_magic     the options of %cute_share, and a notebook's own file
    magic           %%cute_attention and its completion
    suite           suites of variants: TOML in, records out
    __main__        the demo; a record on the command line
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cute_lab.errors import CuteLabError
    from cute_lab.lab import Lab, attention
    from cute_lab.lengths import documents
    from cute_lab.magic import load_ipython_extension, unload_ipython_extension
    from cute_lab.sliders import slider
    from cute_lab.suite_record import load

__version__ = "0.1.0"
__all__ = [
    "CuteLabError",
    "Lab",
    "__version__",
    "attention",
    "documents",
    "load",
    "load_ipython_extension",
    "slider",
    "unload_ipython_extension",
]
_HOME = {
    "CuteLabError": "errors",
    "Lab": "lab",
    "attention": "lab",
    "documents": "lengths",
    "load": "suite_record",
    "load_ipython_extension": "magic",
    "slider": "sliders",
    "unload_ipython_extension": "magic",
}


def __getattr__(name: str) -> Any:
    """A public name is imported when it is used: `import cute_lab` loads neither torch nor cutlass."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
