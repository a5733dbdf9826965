"""Real documents: each format gives the same lengths; packing and padding token by token, masks against torch, the text of each error."""

from __future__ import annotations

import builtins
import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import cute_lab
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.lengths import Documents, documents

FLAT = [7, 1, 4, 12, 3]
ROWS = [[3, 2, 3], [8], [4, 1]]


# -- what a sequence is: a second definition, token by token --------------------------------------------------------------
def tokens_of(rows: list[list[int]], size: int) -> list[list[tuple[int, int, int]]]:
    """(id, start, end) of each token."""
    out = []
    for row in rows:
        line: list[tuple[int, int, int]] = []
        for i, n in enumerate(row):
            line += [(i, len(line), len(line) + n)] * n
        line += [(-1, p, p + 1) for p in range(len(line), size)]
        out.append(line)
    return out


def cut_by_token(flat: list[int], size: int) -> list[list[int]]:
    """The documents' tokens in a line, counted in each sequence."""
    line = [i for i, n in enumerate(flat) for _ in range(n)]
    parts = [line[at : at + size] for at in range(0, len(line), size)]
    return [[part.count(i) for i in sorted(set(part))] for part in parts]


def is_laid_out(docs: Documents, rows: list[list[int]], size: int) -> None:
    assert docs.lengths == tuple(map(tuple, rows))
    assert docs.ids.shape == (len(rows), size)
    assert [*docs.ids.shape] == [docs.B, docs.S]
    found = torch.stack([docs.ids, docs.starts, docs.ends], -1)
    assert found.tolist() == [[list(token) for token in line] for line in tokens_of(rows, size)]
    assert {table.dtype for table in (docs.ids, docs.starts, docs.ends, *docs.offsets)} == {torch.int32}
    assert [table.tolist() for table in docs.offsets] == [[sum(row[:i]) for i in range(len(row) + 1)] for row in rows]
    assert docs.filled == sum(map(sum, rows)) / (len(rows) * size)


# -- sources --------------------------------------------------------------------------------------------------------------
def column(values: Any, **others: Any) -> Any:
    return pa.table({**others, "length": values})


def text(path: Path, lines: str) -> None:
    path.write_text(lines, encoding="utf-8")


FILES: dict[str, tuple[str, Callable[[Path], Any], list[Any]]] = {
    "npy": ("a.npy", lambda p: np.save(p, np.array(FLAT, dtype=np.uint16)), FLAT),
    "npy, floats": ("a.npy", lambda p: np.save(p, np.array(FLAT, dtype=np.float16)), FLAT),
    "npy, rows": ("a.npy", lambda p: np.save(p, np.array([[3, 2, 3], [8, 0, 0], [4, 1, 0]])), ROWS),
    "pt": ("a.pt", lambda p: torch.save(torch.tensor(FLAT), p), FLAT),
    "pt, bfloat16": ("a.PT", lambda p: torch.save(torch.tensor(FLAT, dtype=torch.bfloat16), p), FLAT),
    "pt, rows": ("a.pt", lambda p: torch.save([torch.tensor(row) for row in ROWS], p), ROWS),
    "json": ("a.json", lambda p: text(p, json.dumps(FLAT)), FLAT),
    "json, rows": ("a.json", lambda p: text(p, json.dumps(ROWS)), ROWS),
    "txt": ("a.txt", lambda p: text(p, "7\n1\n\n 4 \n12\n3"), FLAT),
    "csv with a header": ("a.csv", lambda p: text(p, "\ufefflength\r\n7\r\n1\r\n4.0\r\n1.2e1\r\n3\r\n"), FLAT),
    "parquet": ("a.parquet", lambda p: parquet.write_table(column(FLAT, text=list("abcde")), p), FLAT),
    "parquet, by name": ("a.parquet", lambda p: parquet.write_table(column(FLAT, id=list(range(5))), p), FLAT),
    "parquet, floats": ("a.parquet", lambda p: parquet.write_table(column(pa.array(FLAT, pa.float64())), p), FLAT),
    "parquet, rows": ("a.parquet", lambda p: parquet.write_table(column(ROWS), p, row_group_size=2), ROWS),
    "parquet, large rows": ("a.parquet", lambda p: parquet.write_table(column(pa.array(ROWS, pa.large_list(pa.int32()))), p), ROWS),
    "parquet, square": (
        "a.parquet",
        lambda p: parquet.write_table(column(pa.array([[3, 2], [4, 1]], pa.list_(pa.int64(), 2))), p),
        [[3, 2], [4, 1]],
    ),
}
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "list": (FLAT, FLAT),
    "tuple of numpy numbers": (tuple(np.array(FLAT)), FLAT),
    "range": (range(1, 4), [1, 2, 3]),
    "whole floats": ([7.0, 1, 4.0, 12, 3], FLAT),
    "array": (np.array(FLAT, dtype=np.uint64), FLAT),
    "array of objects": (np.array(ROWS, dtype=object), ROWS),
    "tensor": (torch.tensor(FLAT, dtype=torch.uint8), FLAT),
    "tensor with a gradient": (torch.tensor([7.0, 1, 4, 12, 3], requires_grad=True), FLAT),
    "list of tensors of no dimension": ([torch.tensor(n) for n in FLAT], FLAT),
    "rows": (ROWS, ROWS),
    "rows of every kind": ([tuple(ROWS[0]), torch.tensor(ROWS[1]), np.array(ROWS[2])], ROWS),
    "matrix": (torch.tensor([[3, 2, 3], [8, 0, 0], [4, 1, 0]]), ROWS),
    "zeros are left out": ([0, 7, 1, 0, 0, 4, 12, 3, 0], FLAT),
    "zeros in rows are left out": ([[3, 0, 2, 3], [0, 8], [4, 1, 0, 0]], ROWS),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_its_lengths(name: str, tmp_path: Path) -> None:
    file, write, wanted = FILES[name]
    write(tmp_path / file)
    for source in (tmp_path / file, str(tmp_path / file)):
        is_laid_out(documents(source), wanted if isinstance(wanted[0], list) else [wanted], 27 if wanted is FLAT else max(map(sum, wanted)))


@pytest.mark.parametrize("name", VALUES)
def test_values_give_their_lengths(name: str) -> None:
    given, wanted = VALUES[name]
    rows = wanted if isinstance(wanted[0], list) else [wanted]
    is_laid_out(documents(given), rows, max(map(sum, rows)))


def test_a_parquet_column_by_name(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"length": [1, 2], "words": [3, 4]}), tmp_path / "a.parquet")
    assert documents(tmp_path / "a.parquet").lengths == ((1, 2),)
    assert documents(tmp_path / "a.parquet", column="words").lengths == ((3, 4),)


# -- packing --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 2, 5, 9, 12, 13, 26, 27, 28, 100])
def test_documents_are_cut_into_sequences(size: int) -> None:
    rows = cut_by_token(FLAT, size)
    is_laid_out(documents(FLAT, tokens=size, packed=False), rows, size)
    is_laid_out(documents(FLAT, tokens=size), rows, size)  # a list that fits is one sequence either way
    is_laid_out(documents([FLAT[:2], FLAT[2:]], tokens=size, packed=False), rows, size)
    for batch in (1, 2, 1000):
        is_laid_out(documents(FLAT, tokens=size, packed=False, batch=batch), rows[:batch], size)


@pytest.mark.parametrize("seed", range(20))
def test_random_documents_are_cut_into_sequences(seed: int) -> None:
    random = np.random.default_rng(seed)
    flat = [*random.integers(0, 30, random.integers(1, 40)).tolist(), 5]
    size, batch = int(random.integers(1, 80)), int(random.integers(1, 6))
    rows = cut_by_token(flat, size)
    is_laid_out(documents(flat, tokens=size, packed=False), rows, size)
    is_laid_out(documents(flat, tokens=size, packed=False, batch=batch), rows[:batch], size)


def test_packed_sequences_stay_as_they_are() -> None:
    is_laid_out(documents(FLAT, packed=True), [FLAT], 27)
    is_laid_out(documents(FLAT, packed=True, tokens=30), [FLAT], 30)
    is_laid_out(documents(ROWS, tokens=11), ROWS, 11)
    is_laid_out(documents(ROWS, batch=2), ROWS[:2], 8)
    is_laid_out(documents([[2], [9]], batch=1), [[2]], 2)  # what is not kept is not padded for
    is_laid_out(documents([[2], [9]], batch=1, tokens=4), [[2]], 4)


def test_one_line_says_what_it_holds() -> None:
    assert repr(documents([1200, 3, 700], tokens=4096)) == "3 documents in 1 sequence of 4,096 tokens, 3 to 1,200 long, 46.5 % filled"
    assert repr(documents([512] * 4, tokens=1024)) == "4 documents in 2 sequences of 1,024 tokens, 512 long, 100 % filled"


def test_the_value_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        documents(FLAT).lengths = ()  # type: ignore[misc]


def test_a_million_tokens() -> None:
    lengths = np.random.default_rng(0).integers(1, 20, 100_000)
    for tokens in (None, 1 << 16):
        docs = cute_lab.documents(lengths, tokens=tokens)
        kept = docs.ids >= 0
        assert int(kept.sum()) == int(lengths.sum())
        position = torch.arange(docs.S, dtype=torch.int32).expand_as(docs.ids)
        assert bool(((docs.starts <= position) & (position < docs.ends)).all())


# -- masks ----------------------------------------------------------------------------------------------------------------
def dense(rows: list[list[int]], size: int, kind: str, padding_together: bool) -> torch.Tensor:
    """Who sees whom, [B, 1, S, S]: blocks on the diagonal."""
    out = torch.zeros(len(rows), size, size, dtype=torch.bool)
    for b, row in enumerate(rows):
        rest = size - sum(row)
        blocks = [*row, *([rest] if padding_together else [1] * rest)]
        out[b] = torch.block_diag(*(torch.ones(n, n) for n in blocks if n)).bool()
    return (out.tril() if kind == "causal" else out)[:, None]


@pytest.mark.parametrize("rows", [[[5, 1, 6, 4]], [[5, 1, 3]], [[3, 2, 3], [8], [4, 1]]], ids=["one", "one, padded", "batch"])
@pytest.mark.parametrize("kind", ["causal", "full"])
@pytest.mark.parametrize("by", ["starts", "ids"])
def test_the_masks_are_blocks_on_the_diagonal(rows: list[list[int]], kind: str, by: str) -> None:
    docs = documents(rows, tokens=16)
    lab = cute_lab.attention(mask_mod=docs.mask(kind, by), B=docs.B, H=1, Sq=docs.S)
    assert torch.equal(lab.apply_mask(), dense(rows, 16, kind, padding_together=by == "ids"))
    assert lab.verify().ok
    assert ("(b, q_idx)" in str(lab.graph)) == (docs.B > 1)  # one sequence's mask is the same for every batch entry


@pytest.mark.parametrize("kind", ["causal", "full"])
def test_by_ids_equals_by_starts_on_real_tokens(kind: str) -> None:
    docs = documents(np.random.default_rng(1).integers(1, 20, 30), tokens=64)
    one, two = (cute_lab.attention(mask_mod=docs.mask(kind, by), B=docs.B, H=1, Sq=docs.S).apply_mask()[:, 0] for by in ("starts", "ids"))
    real = docs.ids >= 0
    assert not real.all()
    assert torch.equal(one[real], two[real])
    assert torch.equal(one, one & two)
    assert one[~real].sum() == (~real).sum()  # by starts a token of padding sees itself only


def test_the_default_mask_is_causal_and_has_its_blocks() -> None:
    docs = documents([128, 256, 100], tokens=512)
    lab = cute_lab.attention(mask_mod=docs.mask(), B=docs.B, Sq=docs.S)
    assert lab.name == "causal_documents"
    blocks = lab.blocks((128, 128))
    assert (blocks.full, blocks.partial, blocks.empty) == (1, 4, 11)


# -- errors: the call, what it says, what it says to write ------------------------------------------------------------------
LIST = "cute_lab.documents([1200, 300, 2596], tokens=4096)"
PAIRS = "cute_lab.documents([[1200, 300], [2000, 2096]])    # a row is a sequence"
INT, ROUND = "cute_lab.documents([int(n) for n in lengths])", "cute_lab.documents([round(n) for n in lengths])"
NEGATIVE = "and no length is negative; padding at the end of a row is 0"
FRACTION = "not a whole number of tokens"
SHAPE = "lengths must be one list of numbers, or a list of such lists"
WRONG: dict[str, tuple[Callable[[], Any], str, str]] = {
    "negative": (lambda: documents([3, -5]), f"lengths[1] is -5, {NEGATIVE}", LIST),
    "negative in a row": (lambda: documents([[3, 2], [4], [1, 2, -1]]), f"lengths[2][2] is -1, {NEGATIVE}", LIST),
    "negative in a matrix": (lambda: documents(torch.tensor([[3, 2], [4, -1]])), f"lengths[1][1] is -1, {NEGATIVE}", LIST),
    "a fraction": (lambda: documents([3, 2.5]), f"lengths[1] is 2.5, {FRACTION}", ROUND),
    "not a number": (lambda: documents(np.array([3, np.nan])), f"lengths[1] is nan, {FRACTION}", ROUND),
    "infinite": (lambda: documents([np.inf]), f"lengths[0] is inf, {FRACTION}", ROUND),
    "too long": (lambda: documents([3, 1 << 31]), "lengths[1] is 2147483648, more tokens than a sequence can have (2**31 - 1)", LIST),
    "far too long": (lambda: documents([3, 1 << 70]), f"lengths[1] is {1 << 70}, more tokens than a sequence can have (2**31 - 1)", LIST),
    "text": (lambda: documents([3, "4"]), "lengths[1] is '4', not a number of tokens", INT),
    "text in an array": (lambda: documents(np.array(["4"])), "lengths[0] is '4', not a number of tokens", INT),
    "none": (lambda: documents([[3, None]]), "lengths[0][1] is None, not a number of tokens", INT),
    "true": (lambda: documents(torch.tensor([True])), "lengths[0] is True, not a number of tokens", INT),
    "complex": (lambda: documents(np.array([1j])), "lengths[0] is 1j, not a number of tokens", INT),
    "records": (lambda: documents([{"n": 3}]), "lengths[0] is {'n': 3}, not a number of tokens", INT),
    "empty": (lambda: documents([]), "there are no lengths: no document", LIST),
    "an empty row": (lambda: documents([[]]), "there are no lengths: no document", LIST),
    "an empty matrix": (lambda: documents(torch.zeros(0, 3)), "there are no lengths: no document", LIST),
    "zeros": (lambda: documents([0, 0]), "all lengths are 0: no document", LIST),
    "a row of zeros": (lambda: documents([[3], [0, 0]]), "sequence 1 holds no document", PAIRS),
    "a number": (lambda: documents(3), "lengths of documents must be a path, a tensor, an array or a list, not int", LIST),  # type: ignore[arg-type]
    "numbers and lists": (lambda: documents([3, [4]]), SHAPE, PAIRS),
    "lists and numbers": (lambda: documents([[4], 3]), SHAPE, PAIRS),
    "three levels": (lambda: documents([[[4]], [[3]]]), SHAPE, PAIRS),
    "three dimensions": (lambda: documents(np.ones((2, 2, 2))), SHAPE, PAIRS),
    "no dimension": (lambda: documents(torch.tensor(3)), SHAPE, PAIRS),
    "a tensor without values": (lambda: documents(torch.ones(3, device="meta")), SHAPE, PAIRS),
    "no tokens": (
        lambda: documents(FLAT, packed=False),
        "packed=False needs tokens: where to cut the sequences",
        "tokens=4096, packed=False",
    ),
    "tokens of 0": (lambda: documents(FLAT, tokens=0), "tokens must be a positive integer below 2**31, not 0", "tokens=8"),
    "tokens as a float": (lambda: documents(FLAT, tokens=8.0), "tokens must be a positive integer below 2**31, not 8.0", "tokens=8"),  # type: ignore[arg-type]
    "batch of true": (lambda: documents(FLAT, batch=True), "batch must be a positive integer below 2**31, not True", "batch=8"),
    "one sequence that is too long": (
        lambda: documents([1200, 3800], tokens=4096, packed=True),
        "sequence 0 holds 5,000 tokens, 904 more than tokens=4096",
        "packed=False    # cuts what is too long",
    ),
    "a row that is too long": (lambda: documents([[3], [4, 5]], tokens=7), "sequence 1 holds 9 tokens, 2 more than tokens=7", "tokens=9"),
    "too many sequences": (
        lambda: documents([[1], [1 << 28]]),
        "2 sequences of 268,435,456 tokens are too large (at most 268,435,456 tokens in all)",
        "batch=1",
    ),
    "too many cuts": (
        lambda: documents([1 << 30] * 4, tokens=1 << 20),
        "4,096 sequences of 1,048,576 tokens are too large (at most 268,435,456 tokens in all)",
        "batch=256",
    ),
    "one sequence that no memory holds": (
        lambda: documents([1 << 29]),
        "1 sequence of 536,870,912 tokens are too large (at most 268,435,456 tokens in all)",
        "tokens=65536, packed=False, batch=8",
    ),
    "a column of a list": (
        lambda: documents(FLAT, column="n"),
        "column is for .parquet files only",
        "cute_lab.documents('lengths.parquet', column='length')",
    ),
    "a kind of mask": (
        lambda: documents(FLAT).mask("window"),
        "there is no mask of kind 'window' by 'starts': kind is causal or full, by is starts or ids",
        "docs.mask('causal', by='starts')",
    ),
    "a mask by nothing": (
        lambda: documents(FLAT).mask(by="ends"),
        "there is no mask of kind 'causal' by 'ends': kind is causal or full, by is starts or ids",
        "docs.mask('causal', by='starts')",
    ),
}


def raises(call: Callable[[], Any], what: str, write: str) -> OptionError:
    with pytest.raises(OptionError) as caught:
        call()
    assert caught.value.summary == what
    assert caught.value.hint == write
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


@pytest.mark.parametrize("name", WRONG)
def test_an_error_says_what_is_wrong_and_what_to_write(name: str) -> None:
    raises(*WRONG[name])


def pickled(path: Path) -> None:
    np.save(path, np.array([[1], [2, 3]], dtype=object), allow_pickle=True)


# file: what is in it, what is said (a pattern after the name), what to write
BROKEN: dict[str, tuple[str, Callable[[Path], Any], str, str]] = {
    "pickle in npy": ("a.npy", pickled, r" can't be read as \.npy: Object arrays cannot be loaded", LIST),
    "no npy": ("a.npy", lambda p: text(p, "hello"), r" can't be read as \.npy: ", LIST),
    "empty npy": ("a.npy", lambda p: text(p, ""), r" can't be read as \.npy: No data left in file", LIST),
    "half a zip": ("a.npy", lambda p: p.write_bytes(b"PK\3\4hello"), r" can't be read as \.npy: File is not a zip file", LIST),
    "no pt": ("a.pt", lambda p: text(p, "hello"), r" can't be read as \.pt: ", LIST),
    "empty pt": ("a.pt", lambda p: text(p, ""), r" can't be read as \.pt: ", LIST),
    "code in pt": ("a.pt", lambda p: torch.save(Path("x"), p), r" can't be read as \.pt: Weights only load failed", LIST),
    "no json": ("a.json", lambda p: text(p, "[1, 2"), r" can't be read as \.json: Expecting ',' delimiter", LIST),
    "no text": ("a.txt", lambda p: p.write_bytes(b"\xff\xfe"), r" can't be read as \.txt: 'utf-8' codec", LIST),
    "no parquet": ("a.parquet", lambda p: text(p, "hello"), r" can't be read as \.parquet: Parquet", LIST),
    "two numbers a line": ("a.csv", lambda p: text(p, "id,n\n\n1,20\n"), ": line 3 is '1,20', not one number", "1200"),
    "two numbers on the first line": ("a.txt", lambda p: text(p, "1 20\n"), ": line 1 is '1 20', not one number", "1200"),
    "a second header": ("a.csv", lambda p: text(p, "n\n7\nn\n"), ": line 3 is 'n', not one number", "1200"),
    "a fraction": ("a.csv", lambda p: text(p, "n\n7\n1.5\n"), r": lengths\[1\] is 1\.5, not a whole", ROUND),
    "only a header": ("a.csv", lambda p: text(p, "n\n"), ": there are no lengths: no document", LIST),
    "another suffix": ("a.npz", lambda p: text(p, ""), " is no file of lengths that can be read", LIST),
    "two columns": ("a.parquet", lambda p: parquet.write_table(pa.table({"id": [1], "n": [2]}), p), "which column of ", "column='id'"),
    "no number at all": ("a.parquet", lambda p: parquet.write_table(pa.table({"text": ["a"]}), p), "which column of ", "column='text'"),
    "text as length": ("a.parquet", lambda p: parquet.write_table(column(["a"]), p), r": lengths\[0\] is 'a', not a number", INT),
    "a missing length": ("a.parquet", lambda p: parquet.write_table(column([1, None, 3]), p), ": .* has no value in 1 place$", LIST),
    "a missing row": ("a.parquet", lambda p: parquet.write_table(column([[1, None], None]), p), ": .* has no value in 1 place$", LIST),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # numpy leaves half a zip open
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_no_traceback(name: str, tmp_path: Path) -> None:
    file, write, said, example = BROKEN[name]
    write(tmp_path / file)
    with pytest.raises(OptionError) as caught:
        documents(tmp_path / file)
    whole = said + re.escape(file) + " holds the lengths" if said.startswith("which") else re.escape(file) + said
    assert re.match(whole, caught.value.summary), caught.value.summary
    assert caught.value.hint == example
    assert "\n" not in caught.value.summary


def test_what_is_in_a_file_is_no_list(tmp_path: Path) -> None:
    torch.save({"length": torch.ones(3)}, tmp_path / "a.pt")
    raises(lambda: documents(tmp_path / "a.pt"), "lengths of documents must be a path, a tensor, an array or a list, not dict", LIST)


def test_there_is_no_such_file_or_column(tmp_path: Path) -> None:
    example = "cute_lab.documents('lengths.npy', tokens=4096)"
    raises(lambda: documents("no/such.npy"), "there is no file 'no/such.npy'", example)
    raises(lambda: documents(tmp_path), f"there is no file {str(tmp_path)!r}", example)
    parquet.write_table(pa.table({"id": [1], "n": [2]}), tmp_path / "a.parquet")
    error = raises(lambda: documents(tmp_path / "a.parquet", column="m"), "a.parquet has no column 'm'", "column='id'")
    assert error.reason == "Columns: id, n."


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet.write_table(column(FLAT), tmp_path / "a.parquet")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    raises(lambda: documents(tmp_path / "a.parquet"), "a.parquet needs pyarrow, which is not installed", "pip install pyarrow")
    assert issubclass(OptionError, CuteLabError)


@pytest.mark.parametrize("packed", ["no", 0, 1, 1.0])
def test_packed_is_a_bool(packed: object) -> None:
    with pytest.raises(OptionError, match="packed must be True, False or None"):
        documents([3, 4], packed=packed)  # type: ignore[arg-type]


def test_junk_is_no_foreign_error(tmp_path: Path) -> None:
    (tmp_path / "c.pt").write_bytes(b"junk")
    with pytest.raises(OptionError, match=r"c\.pt"):
        documents(tmp_path / "c.pt")
    with pytest.raises(OptionError, match="there is no file"):
        documents("a" * 5000)
    with pytest.raises(OptionError, match="there is no mask"):
        documents([3, 4]).mask(["causal"])  # type: ignore[arg-type]
