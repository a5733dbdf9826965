"""What follows when a slider moves, one step each, as pure functions of a Lab: the mask, its picture, the check, the cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch

from cute_lab import build, reports, shapes
from cute_lab.capture import Number, ranges
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.lab import Lab
from cute_lab.picture import block_png
from cute_lab.quantities import number
from cute_lab.record import BlockSummary, TargetReport
from cute_lab.sliders import Range, Slider, shown
from cute_lab.views._words import NO_MASK, architecture, register_words
from cute_lab.views.summary import check_lines, mask_words

HEAD_DIMENSIONS = (64, 96, 128, 192, 256)
SHORTEST, LONGEST, MOST_HEADS = 7, 20, 128  # Sq from 2**7 to 2**20
NOT_COMPILED = "⚙ No machine code {why} yet: Compile makes it, with no GPU."
NOT_HERE = "⏱ no GPU here: not timed"
SAME = "; the machine code is the same for every value of this parameter"
NO_TIMER = "⏱ not timed"


def ranges_of(lab: Lab) -> dict[str, Range]:
    """The lab's sliders. A value that was given later may lie outside of what was declared."""
    found = ranges(lab.score_mod, lab.mask_mod) | {n: v.range for n, v in lab.given.items() if isinstance(v, Slider)}
    now = lab.params
    return {n: dataclasses.replace(r, low=min(r.low, now[n]), high=max(r.high, now[n])) for n, r in found.items()}


def stops(lab: Lab) -> dict[str, tuple[int, ...]]:
    """Where the shape sliders can stand: the lab's own sizes are among them. A number of the same name goes first."""
    s, group = lab.shape, lab.shape.H // lab.shape.Hkv
    heads = {2**i for i in range(MOST_HEADS.bit_length()) if s.Hkv == s.H or 2**i % group == 0}
    found = {"Sq": {2**i for i in range(SHORTEST, LONGEST + 1)} | {s.Sq}, "H": heads | {s.H}, "D": {*HEAD_DIMENSIONS, s.D}}
    return {name: tuple(sorted(sizes)) for name, sizes in found.items() if name not in ranges_of(lab)}


def moved(lab: Lab, values: Mapping[str, Number], sizes: Mapping[str, int]) -> Lab:
    """The variant with other numbers and at another shape: keys follow the queries, key heads the heads, where they were equal."""
    s = lab.shape
    Sq, H, D = (sizes.get(name, getattr(s, name)) for name in ("Sq", "H", "D"))
    Hkv = H if s.Hkv == s.H else H * s.Hkv // s.H
    shape = shapes.checked(s.B, H, Hkv, Sq, Sq if s.Sq == s.Skv else s.Skv, D, s.dtype)
    given = {**lab.given, **values}
    return Lab(lab.score_mod, lab.mask_mod, shape, lab.targets, given, lab.block, lab.fast_math, lab.name, lab.cell)


def values_words(lab: Lab) -> str:
    """window=512 cap=20, and the shape: what a picture or a sentence is about."""
    s = lab.shape
    length = f"S={number(s.Sq)}" if s.Sq == s.Skv else f"Sq={number(s.Sq)}, Skv={number(s.Skv)}"
    return ", ".join([*(f"{name}={shown(lab.params[name])}" for name in ranges_of(lab)), length, f"H={s.H}", f"D={s.D}"])


def sentence(sliders: Mapping[str, Range], now: Mapping[str, Number]) -> str:
    """For a saved notebook, which has no sliders."""
    found = [f"{name} {r}, now {shown(now[name])}" for name, r in sliders.items()]
    return f"sliders: {'; '.join(found) or 'the shape'}; run the cell for live sliders"


def step_mask(lab: Lab) -> tuple[BlockSummary | None, str]:
    """The block map, None without a mask_mod, and how sparse it is."""
    if lab.mask_mod is None:
        return None, f"▦ {NO_MASK}"
    blocks = lab.blocks().summary()
    same = lab.shape.B * lab.shape.H // (blocks.Bm * blocks.Hm)  # batch entries and heads that share a map
    cells = f"{number(blocks.kept_cells // same)} of {number(blocks.total_cells // same)} cells are kept."
    return blocks, f"▦ {mask_words(blocks, lab.shape)} {cells}"


def picture(lab: Lab, blocks: BlockSummary) -> bytes:
    """The block map as a PNG."""
    return block_png(blocks, Sq=lab.shape.Sq, Skv=lab.shape.Skv, title=f"{lab.name} · {values_words(lab)}")


def step_check(lab: Lab) -> str:
    """The generated code against torch, with these very values."""
    return "\n".join(check_lines(lab.verify().checks, lab.name))


def compiled(lab: Lab) -> tuple[str, ...]:
    """Its targets whose machine code is there already."""
    return tuple(name for name in lab.targets if _is_known(lab, name))


def step_cost(lab: Lab, names: tuple[str, ...]) -> str:
    """The machine code's static cost for these targets; those that are not compiled yet are now."""
    if not names:
        return NOT_COMPILED.format(why="for these values" if lab.traced.fixed.keys() & ranges_of(lab).keys() else "at this shape")
    found = [_cost(report) for report in reports.target_reports(lab, names, backward=False)]
    moving = [f"`{name}`" for name in ranges_of(lab) if name not in lab.traced.fixed]
    return f"⚙ {' '.join(found)}" + (f" It is the same code for every value of {' and '.join(moving)}." if moving else "")


def not_timed(lab: Lab) -> str:
    """What stands in the place of a time where nothing measures one."""
    if torch.cuda.is_available():
        return NO_TIMER
    moving = ranges_of(lab).keys()
    return NOT_HERE + (SAME if moving and not moving & lab.traced.fixed.keys() else "")


def _is_known(lab: Lab, target: str) -> bool:
    try:
        return build.is_known(lab.spec(target), target)
    except CuteLabError:  # refused at this shape; Compile says why
        return False


def _cost(report: TargetReport) -> str:
    if report.status != "compiled":
        return f"{architecture(report.target)}: {report.status}. {report.reason}"
    words = [] if report.cost is None else [f"about {report.cost:,.0f} cycles per tile"]
    words += register_words(report)
    return f"{architecture(report.target)}: {', '.join(words)}."


def asked(lab: Lab, given: Mapping[str, Number]) -> tuple[dict[str, Number], dict[str, int]]:
    """(numbers, sizes) of what a person gave by name, or what to write instead."""
    found, places = ranges_of(lab), stops(lab)
    values: dict[str, Number] = {}
    sizes: dict[str, int] = {}
    for name, value in given.items():
        if name in found:
            r = found[name]
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value not in r or (r.whole and value != int(value)):
                kind = "an integer" if r.whole else "a number"
                raise OptionError(f"{name}: {value!r} is not {kind} in {shown(r.low)}..{shown(r.high)}", example=f"{name}={shown(r.high)}")
            values[name] = int(value) if r.whole else float(value)
        elif name in places:
            if value not in places[name]:
                nearest = min(places[name], key=lambda stop: abs(stop - value))
                listed = f"The shape sliders stand at {', '.join(map(number, places[name]))}."
                raise OptionError(f"{name}: {value!r} is no stop of its slider", detail=listed, example=f"{name}={nearest}")
            sizes[name] = int(value)
        else:
            raise OptionError(f"there is no slider {name!r}", detail=f"The sliders are {', '.join([*found, *places])}.")
    return values, sizes
