"""Lengths of real documents, from a file or a list, laid into sequences, and the masks that keep each document to itself."""

from __future__ import annotations

import json
import pickle
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from cute_lab import document_masks
from cute_lab.errors import OptionError
from cute_lab.quantities import count, number, percent

Array = np.ndarray[Any, Any]
Source = str | Path | Tensor | Array | Sequence[Any]
NAMES = ("length", "lengths", "num_tokens", "n_tokens", "document_lengths")  # of a column, where there are several
LONGEST = 2**31 - 1  # positions are int32
MOST = 1 << 28  # tokens in all sequences: three tables of 1 GiB each
LIST = "cute_lab.documents([1200, 300, 2596], tokens=4096)"
ROWS = "cute_lab.documents([[1200, 300], [2000, 2096]])    # a row is a sequence"


@dataclass(frozen=True, repr=False, eq=False)
class Documents:
    """Documents that lie one after another in B sequences of S tokens; the end of a sequence may be padding.

    lengths: tokens of each document, a tuple per sequence. ids: int32 [B, S], the number of a token's document in its sequence, from
    0; -1 is padding. starts, ends: int32 [B, S], positions of the first token of a token's document and one past its last; a token
    of padding is a document of its own there. offsets: cu_seqlens per sequence, int32 [documents + 1], without the padding.
    """

    lengths: tuple[tuple[int, ...], ...]
    ids: Tensor
    starts: Tensor
    ends: Tensor
    offsets: tuple[Tensor, ...]

    @property
    def B(self) -> int:
        """How many sequences."""
        return self.ids.shape[0]

    @property
    def S(self) -> int:
        """Tokens in each sequence, padding included."""
        return self.ids.shape[1]

    @property
    def filled(self) -> float:
        """The share of the tokens that belong to a document, 0 to 1."""
        return sum(map(sum, self.lengths)) / (self.B * self.S)

    def mask(self, kind: str = "causal", by: str = "starts") -> Callable[..., Tensor]:
        """mask_mod(b, h, q_idx, kv_idx): who sees whom, for B=docs.B, Sq=Skv=docs.S; with one sequence it does not depend on b.

        `kind` "causal" shows a token the tokens of its document up to itself, "full" all of them. `by` "starts" compares positions
        with starts (and ends), "ids" the two tokens' ids. They differ in padding only: by starts such a token sees itself, by ids
        the other padding too. Raises OptionError for another kind or by.
        """
        tables = (self.ids, self.starts, self.ends)
        masks = document_masks.one_sequence(*(x[0] for x in tables)) if self.B == 1 else document_masks.batch(*tables)
        found = masks.get((kind, by)) if isinstance(kind, str) and isinstance(by, str) else None
        if found is None:
            what = f"there is no mask of kind {kind!r} by {by!r}: kind is causal or full, by is starts or ids"
            raise OptionError(what, example="docs.mask('causal', by='starts')")
        return found

    def __repr__(self) -> str:
        least, most = min(map(min, self.lengths)), max(map(max, self.lengths))
        long = f"{number(least)} to {number(most)}" if least < most else number(most)
        documents, sequences = count(sum(map(len, self.lengths)), "document"), count(self.B, "sequence")
        return f"{documents} in {sequences} of {count(self.S, 'token')}, {long} long, {percent(self.filled)} filled"


def documents(
    source: Source, *, tokens: int | None = None, batch: int | None = None, packed: bool | None = None, column: str | None = None
) -> Documents:
    """Real documents by their lengths in tokens, laid into sequences.

    `source` is a file or the lengths themselves: .npy, .pt, .parquet (needs pyarrow; `column` names the column, else the only one
    of integers or the one called length, lengths, num_tokens, n_tokens or document_lengths), .json, .txt or .csv with a number a
    line below an optional header; a tensor, an array or a list. One dimension is documents in order; two, or a list of lists, are
    sequences that are packed already, a row each. Lengths of 0 are left out: at the end of a row they pad it.

    `tokens` is the length of every sequence, by default the longest one's; what is shorter is padded. `packed` says what one
    dimension is: True one sequence as it is; False documents to lay one after another and to cut every `tokens` tokens, where the
    rest of a document goes on as a new one (so are rows, laid anew); None the first if it fits in `tokens`, else the second. `batch`
    keeps the first sequences, at most that many. Raises OptionError for what can't be read, is no length, or does not fit.
    """
    if packed not in (None, True, False) or (packed is not None and not isinstance(packed, bool)):
        raise OptionError(f"packed must be True, False or None, not {packed!r}", example="packed=True")
    for what, value in (("tokens", tokens), ("batch", batch)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LONGEST):
            raise OptionError(f"{what} must be a positive integer below 2**31, not {value!r}", example=f"{what}=8")
    path = Path(source) if isinstance(source, str | Path) else None
    if column is not None and (path is None or path.suffix.lower() != ".parquet"):
        raise OptionError("column is for .parquet files only", example="cute_lab.documents('lengths.parquet', column='length')")
    flat, rows = _lengths(*_read(path, column), f"{path.name}: ") if path else _lengths(*_values(source), "")
    if packed is False and tokens is None:
        raise OptionError("packed=False needs tokens: where to cut the sequences", example="tokens=4096, packed=False")
    if tokens is not None and (packed is False or (packed is None and rows is None and int(flat.sum()) > tokens)):
        flat, rows = _cut(flat, tokens, batch)
    rows = np.array([len(flat)]) if rows is None else rows[:batch]
    return _lay(flat[: rows.sum()], rows, tokens)


# -- packing: lengths of all sequences in one array, and how many of them are each sequence's ---------------------------------
def _fits(sequences: int, tokens: int) -> None:
    if sequences * tokens > MOST:
        what = f"{count(sequences, 'sequence')} of {number(tokens)} tokens are too large (at most {number(MOST)} tokens in all)"
        raise OptionError(what, example=f"batch={MOST // tokens}" if tokens <= MOST else "tokens=65536, packed=False, batch=8")


def _cut(flat: Array, tokens: int, batch: int | None) -> tuple[Array, Array]:
    ends = np.cumsum(flat)  # of the documents, one after another
    sequences = min(-(-int(ends[-1]) // tokens), batch or LONGEST)
    _fits(sequences, tokens)
    last = min(int(ends[-1]), sequences * tokens)
    borders = np.union1d(ends[ends < last], np.append(np.arange(tokens, last, tokens), last))
    return np.diff(borders, prepend=0), np.bincount((borders - 1) // tokens)


def _lay(flat: Array, rows: Array, tokens: int | None) -> Documents:
    if not rows.all():
        raise OptionError(f"sequence {rows.argmin()} holds no document", detail="Each row needs a length above 0.", example=ROWS)
    first = np.cumsum(rows) - rows  # a sequence's first document
    used = np.add.reduceat(flat, first)
    B, S = len(rows), int(tokens or used.max())
    if used.max() > S:
        cut = "packed=False    # cuts what is too long" if B == 1 else f"tokens={used.max()}"
        message = f"sequence {used.argmax()} holds {number(used.max())} tokens, {number(used.max() - S)} more than tokens={S}"
        raise OptionError(message, detail="A packed sequence is laid as it is.", example=cut)
    _fits(B, S)
    row = np.repeat(np.arange(B), rows)
    ends = np.cumsum(flat) - (np.cumsum(used) - used)[row]
    position = np.arange(S, dtype=np.int32)
    real = position < used[:, None]

    def table(values: Array, padding: Array | int) -> Tensor:
        out = np.full((B, S), padding, dtype=np.int32)
        out[real] = np.repeat(values.astype(np.int32), flat)
        return torch.from_numpy(out)

    offsets = np.zeros(len(flat) + B, dtype=np.int32)
    offsets[np.arange(len(flat)) + row + 1] = ends
    numbers = flat.tolist()
    return Documents(
        lengths=tuple(tuple(numbers[i : i + n]) for i, n in zip(first.tolist(), rows.tolist(), strict=True)),
        ids=table(np.arange(len(flat)) - first[row], -1),
        starts=table(ends - flat, position),
        ends=table(ends, position + 1),
        offsets=torch.from_numpy(offsets).split((rows + 1).tolist()),
    )


# -- reading: any source -> its numbers in one array, and how many are in each row (None: there are no rows) ------------------
def _lengths(flat: Array, rows: Array | None, where: str) -> tuple[Array, Array | None]:
    """int64 lengths, none of them 0; raises for the first that is no length."""

    def refuse(bad: Array, why: str, example: str = LIST) -> None:
        if bad.any():
            i = int(bad.argmax())
            r = 0 if rows is None else int(np.searchsorted(np.cumsum(rows), i, side="right"))
            place = f"[{i}]" if rows is None else f"[{r}][{i - int(rows[:r].sum())}]"
            raise OptionError(f"{where}lengths{place} is {flat[i : i + 1].tolist()[0]!r}, {why}", example=example)

    if flat.dtype.kind not in "iuf":
        odd = [isinstance(v, bool) or not isinstance(v, int | float | np.integer | np.floating) for v in flat]
        refuse(np.array(odd), "not a number of tokens", "cute_lab.documents([int(n) for n in lengths])")
    flat = flat.astype(np.float64) if flat.dtype.kind == "f" else flat
    refuse(flat < 0, "and no length is negative; padding at the end of a row is 0")
    with np.errstate(invalid="ignore"):  # inf % 1
        refuse(flat % 1 != 0, "not a whole number of tokens", "cute_lab.documents([round(n) for n in lengths])")
    refuse(flat > LONGEST, "more tokens than a sequence can have (2**31 - 1)")
    held = flat != 0
    if not held.any():
        raise OptionError(f"{where}{'all lengths are 0' if flat.size else 'there are no lengths'}: no document", example=LIST)
    if rows is not None:
        rows = np.bincount(np.repeat(np.arange(len(rows)), rows)[held], minlength=len(rows))
    return flat[held].astype(np.int64), rows


def _array(numbers: Any) -> Array:
    """A tensor, an array or a list of numbers as one array; what numpy would turn into text stays as it is."""
    if isinstance(numbers, Tensor):
        held = numbers.detach().cpu()
        return (held.double() if held.is_floating_point() else held).numpy()  # numpy has no bfloat16
    array = np.asarray(numbers)
    return array if array.dtype.kind in "biuf" or isinstance(numbers, np.ndarray) else np.asarray(numbers, dtype=object)


def _values(source: Any) -> tuple[Array, Array | None]:
    source = source.tolist() if isinstance(source, np.ndarray) and source.dtype == object else source
    if not isinstance(source, Tensor | np.ndarray | list | tuple | range):
        raise OptionError(f"lengths of documents must be a path, a tensor, an array or a list, not {type(source).__name__}", example=LIST)
    rows = None
    try:
        if isinstance(source, list | tuple) and any(isinstance(row, list | tuple | range) or getattr(row, "ndim", 0) for row in source[:1]):
            lists = [row.tolist() if hasattr(row, "tolist") else row for row in source]
            flat, rows = _array(list(chain.from_iterable(lists))), np.array([len(row) for row in lists])
        elif (flat := _array(source)).ndim == 2:
            flat, rows = flat.reshape(-1), np.full(*flat.shape)
    except (TypeError, ValueError, RuntimeError):
        flat = np.zeros(())
    if flat.ndim != 1:
        what = "lengths must be one list of numbers, or a list of such lists"
        raise OptionError(what, detail="A list in the list is a packed sequence.", example=ROWS)
    return flat, rows


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _read(path: Path, column: str | None) -> tuple[Array, Array | None]:
    readers: dict[str, Callable[[], Any]] = {
        ".npy": lambda: np.load(path, allow_pickle=False),
        ".pt": lambda: torch.load(path, map_location="cpu", weights_only=True),
        ".json": lambda: json.loads(path.read_text(encoding="utf-8")),
        ".parquet": lambda: _parquet(path, column),
        ".txt": lambda: _lines(path),
        ".csv": lambda: _lines(path),
    }
    suffix = path.suffix.lower()
    if not _is_file(path):
        raise OptionError(f"there is no file {str(path)!r}", example="cute_lab.documents('lengths.npy', tokens=4096)")
    if suffix not in readers:
        raise OptionError(f"{path.name} is no file of lengths that can be read", detail=f"Known: {', '.join(readers)}.", example=LIST)
    try:
        found = readers[suffix]()
    except (OSError, ValueError, EOFError, RuntimeError, LookupError, pickle.PickleError, struct.error, BadZipFile) as error:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise OptionError(f"{path.name} can't be read as {suffix}: {said}", example=LIST) from None
    return found if suffix == ".parquet" else _values(found)


def _lines(path: Path) -> Array:
    """One number a line. The first line that is not blank may be a header: it begins with no digit, sign or point."""
    lines = [(i, line.strip()) for i, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1) if line.strip()]
    lines = lines[1:] if lines and lines[0][1][0] not in "0123456789+-." else lines
    try:
        return np.array([line for _, line in lines], dtype=np.float64)
    except ValueError:
        i, line = next((i, line) for i, line in lines if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", line, re.IGNORECASE))
        raise OptionError(f"{path.name}: line {i} is {line!r}, not one number", detail="One length a line.", example="1200") from None


def _parquet(path: Path, column: str | None) -> tuple[Array, Array | None]:
    try:
        from pyarrow import compute, parquet, types
    except ImportError:
        raise OptionError(f"{path.name} needs pyarrow, which is not installed", example="pip install pyarrow") from None
    schema = parquet.read_schema(path)
    whole = [f.name for f in schema if types.is_integer(getattr(f.type, "value_type", f.type))]
    names = [column] if column is not None else whole if len(whole) == 1 else [n for n in schema.names if n in NAMES]
    if len(names) != 1 or names[0] not in schema.names:
        what = f"{path.name} has no column {column!r}" if column is not None else f"which column of {path.name} holds the lengths?"
        example = f"column={(whole or schema.names or ['length'])[0]!r}"
        raise OptionError(what, detail=f"Columns: {', '.join(schema.names)}.", example=example)
    cells = parquet.read_table(path, columns=names).column(0)
    nested = hasattr(cells.type, "value_type")  # a list in each row
    flat = compute.list_flatten(cells) if nested else cells
    if missing := cells.null_count or flat.null_count:
        raise OptionError(f"{path.name}: column {names[0]!r} has no value in {count(missing, 'place')}", example=LIST)
    return flat.to_numpy(), compute.list_value_length(cells).to_numpy() if nested else None
