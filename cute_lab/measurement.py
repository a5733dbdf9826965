"""What a benchmark measured, as data: raw samples, the check beside each, the card's state in every round. No torch.

bench    = device protocol work peaks conditions timings
work     = one shape: cells that the mask keeps, cells of the blocks that the kernel computes
timing   = contender x direction x shape: one sample per round, or the reason why there is none; the check of its results
accuracy = one tensor against float32, beside the error that a reference in the inputs' own dtype makes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["forward", "backward", "forward+backward"]
Status = Literal["timed", "checked", "wrong", "absent", "failed", "stopped"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward", "forward+backward")


@dataclass(frozen=True)
class Shape:
    B: int
    H: int
    Hkv: int
    Sq: int
    Skv: int
    D: int
    dtype: str


@dataclass(frozen=True)
class Work:
    """Score cells over all batch entries and heads. `issued_cells` belong to blocks that FlashAttention-4 computes."""

    shape: Shape
    kept_cells: int
    issued_cells: int
    total_cells: int
    block: str  # "128x128": the sparse block that `issued_cells` is counted at


@dataclass(frozen=True)
class Accuracy:
    """One tensor of one contender against float32, on the heads that were checked.

    Errors are the largest absolute difference and ||x - reference|| / ||reference||. `reference_*` are the same two of torch's
    eager formula in the inputs' dtype (probabilities rounded as a kernel rounds them): the yardstick of `ok`.
    """

    tensor: Literal["out", "dq", "dk", "dv"]
    ok: bool
    max_error: float
    relative_error: float
    reference_max_error: float
    reference_relative_error: float
    where: tuple[tuple[float, ...], ...]  # [checked heads][bands of rows]: largest error
    worst: str  # "b0 h3 row 1,017 column 5: 0.25, float32 says 0.125"


@dataclass(frozen=True)
class Timing:
    """One contender at one shape. `samples_us` has one entry per round, in order: microseconds of one call.

    Status: timed; checked (right, not timed); wrong (the check failed, so no speed); absent (it can't express this variant);
    failed (it raised, crashed or hung); stopped (interrupted before its first round).
    """

    contender: str  # the file's name in cute_lab/baselines
    label: str
    direction: Direction
    shape: Shape
    status: Status
    reason: str = ""  # why there are no samples
    note: str = ""  # what is special about how it runs: "native causal", "the mask is materialised, 128 MiB"
    samples_us: tuple[float, ...] = ()
    compile_seconds: float = 0.0  # its first call: compilation and tuning
    accuracy: tuple[Accuracy, ...] = ()


@dataclass(frozen=True)
class Condition:
    """The card at the end of a round: clocks in MHz, watts, degrees Celsius; 0 where the driver does not say."""

    shape: Shape
    direction: Direction
    round: int
    sm_mhz: float
    memory_mhz: float
    watts: float
    celsius: float


@dataclass(frozen=True)
class Peak:
    """What the card's own library reaches on a dense bf16 product, in the same rounds: TFLOP/s."""

    what: str
    shape: Shape
    direction: Direction
    samples_tflops: tuple[float, ...]


@dataclass(frozen=True)
class Bench:
    device: str
    versions: dict[str, str]
    protocol: tuple[str, ...]  # in words: inputs, rounds, cache, clocks, what is timed
    rounds: int
    seed: int
    work: tuple[Work, ...]
    timings: tuple[Timing, ...]
    conditions: tuple[Condition, ...]
    peaks: tuple[Peak, ...]
    seconds: float
    stopped: bool  # interrupted: the rows that were complete are kept
    command: str  # repeats it
