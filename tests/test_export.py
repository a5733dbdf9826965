"""Exports: one HTML file that loads nothing and runs no foreign script; a module of its own, right without cute_lab; rows and pictures."""

from __future__ import annotations

import csv
import functools
import importlib.util
import io
import json
import linecache
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from torch.nn.attention.flex_attention import and_masks

import cute_lab
from corpus import cases
from cute_lab import __main__ as cli
from cute_lab import attend, fa4, host, host_kernels, module_export, native, page_export, scalar_forms, sparse, targets
from cute_lab.errors import OptionError
from cute_lab.lab import Lab, attention
from cute_lab.page_export import export_html
from cute_lab.record import MIME, from_json, load, to_json

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
DRAW = """
for (const card of document.querySelectorAll('.jp-Cute-record')) {
  const data = card.querySelector(':scope > script[type="application/json"]');
  if (data) { card.setAttribute('data-drawn', JSON.parse(data.textContent).schema); }
}
document.body.setAttribute('data-ran', '</script><!--');
"""


# -- the page ---------------------------------------------------------------------------------------------------------------
@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A small front end that marks what it draws."""
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "page.js").write_text(DRAW)
    (folder / "page.css").write_text(".jp-Cute-record { display: block }")
    return folder


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {n: v or "" for n, v in attrs}))
        if tag == "script":
            self.scripts.append((self.tags[-1][1].get("type", ""), ""))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.scripts and not self.scripts[-1][1]:
            self.scripts[-1] = (self.scripts[-1][0], data)


def assert_loads_nothing(text: str) -> Page:
    page = Page(text)
    for tag, attrs in page.tags:
        for name in ("src", "srcset", "data", "poster", "background"):
            assert attrs.get(name, "data:").startswith("data:"), (tag, attrs)
        assert tag not in ("link", "base", "iframe", "object", "embed")
        assert tag in ("a", "area") or not re.match("https?:|//", attrs.get("href", "")), (tag, attrs)
        assert not [n for n in attrs if n.startswith("on")], (tag, attrs)
    kinds = [kind for kind, _ in page.scripts]
    assert kinds.count("") == 1 and set(kinds) <= {"", "application/json"}
    policy = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe-inline" not in policy.split("style-src")[0]
    return page


def dumped(chromium: str, path: Path) -> str:
    """The page after chromium has run it from its file."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={path.parent / 'profile'}", "--dump-dom"]
    command = [chromium, *flags, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_our_notebooks_become_pages_that_load_nothing(path: Path, static: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    values = [o.data[MIME] for c in notebook.cells if c.cell_type == "code" for o in c.outputs if MIME in o.get("data", {})]
    made = export_html(path, tmp_path / "page.html", static)
    text = made.path.read_text(encoding="utf-8")
    page = assert_loads_nothing(text)
    assert not made.left_out
    found = [json.loads(data) for kind, data in page.scripts if kind == "application/json"]
    assert found == [json.loads(json.dumps(to_json(from_json(v)) if "hash" in v else v)) for v in values]
    assert made.cards == len(values) and made.size == len(text.encode())
    assert text.count('class="jp-Cute-record"') == len(values)
    assert len(text) < 2_000_000


HOSTILE = "</script><script>document.body.setAttribute('data-hacked', 1)</script><!--<img src=https://x.invalid/ onerror=alert(1)>"


def hostile(folder: Path) -> Path:
    saved = nbformat.read(NOTEBOOKS[0], as_version=4)  # type: ignore[no-untyped-call]
    value = next(o.data[MIME] for c in saved.cells if c.cell_type == "code" for o in c.outputs if MIME in o.get("data", {}))
    value = json.loads(json.dumps(value)) | {
        "name": HOSTILE,
        "notes": [{"level": "info", "text": HOSTILE + "\u2028", "line": None, "fix": ""}],
    }
    from_json(value)
    markdown = f"# {HOSTILE}\n\n{HOSTILE}\n\n![x](https://x.invalid/y.png) [z](javascript:alert(1))\n\n| a |\n|---|\n| {HOSTILE} |"
    bundles = [
        {MIME: value, "text/markdown": markdown, "text/plain": HOSTILE},
        {MIME: {**value, "schema": 99}, "image/png": 'x" onerror="alert(1)', "text/plain": HOSTILE},
        {MIME: HOSTILE, "image/png": "iVBORw0KGgo=", "text/plain": HOSTILE},
        {"text/html": HOSTILE + '<meta http-equiv="refresh" content="0;url=https://x.invalid"><link rel=preconnect href=//x.invalid>'},
        {"text/html": '<form action="https://x"><button formaction=//x>a</button></form><a href="javascript:x()" onclick=x()>b</a>'},
        {"application/javascript": "document.body.setAttribute('data-hacked', 1)"},
        {"image/svg+xml": '<svg><script>alert(1)</script><image href="https://x.invalid/y.png"/><use href="#ok"/></svg>'},
    ]
    outputs = [nbformat.v4.new_output("display_data", data=b) for b in bundles]  # type: ignore[no-untyped-call]
    made = nbformat.v4.new_notebook(  # type: ignore[no-untyped-call]
        cells=[
            nbformat.v4.new_code_cell(f"'{HOSTILE}'", outputs=outputs),  # type: ignore[no-untyped-call]
            nbformat.v4.new_markdown_cell(f"![p](https://x.invalid/p.png) <iframe src='https://x.invalid'></iframe>\n\n{HOSTILE}"),  # type: ignore[no-untyped-call]
        ]
    )
    path = folder / "hostile.ipynb"
    nbformat.write(made, path)  # type: ignore[no-untyped-call]
    return path


def test_a_hostile_notebook_is_a_page_without_its_scripts(static: Path, tmp_path: Path) -> None:
    made = export_html(hostile(tmp_path), None, static)
    text = made.path.read_text(encoding="utf-8")
    page = assert_loads_nothing(text)
    assert not [a for t, a in page.tags if t == "meta" and a.get("http-equiv", "Content-Security-Policy") != "Content-Security-Policy"]
    assert not [a for _, a in page.tags if "action" in a or a.get("href", "").startswith("javascript")]
    (record,) = [json.loads(data) for kind, data in page.scripts if kind == "application/json"]
    assert record["name"] == HOSTILE
    assert made.cards == 1
    assert any("x.invalid/p.png" in line for line in made.left_out)


def test_a_browser_runs_the_one_script_and_no_other(static: Path, tmp_path: Path, chromium_path: str) -> None:
    seen = dumped(chromium_path, export_html(hostile(tmp_path), None, static).path)
    assert 'data-ran="&lt;/script&gt;&lt;!--"' in seen or 'data-ran="</script><!--"' in seen
    assert seen.count("data-drawn=") == 1
    assert not re.search(r"<[^>]*data-hacked=", seen)


def test_a_policy_alone_stops_a_script(static: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium_path: str) -> None:
    refresh = re.compile("<meta[^>]*refresh[^>]*>")  # which no policy stops
    monkeypatch.setattr(page_export, "_inert", lambda text: (refresh.sub("", text), ()))
    seen = dumped(chromium_path, export_html(hostile(tmp_path), None, static).path)
    assert "data-ran=" in seen
    assert not re.search(r"<[^>]*data-hacked=", seen)


def test_a_front_end_that_is_not_built_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError) as caught:
        export_html(NOTEBOOKS[0], tmp_path / "x.html", tmp_path)
    assert caught.value.summary == "cute_lab/static/page.js is not built" and "npm" in caught.value.hint
    monkeypatch.setattr(page_export, "STATIC", tmp_path)
    assert not (tmp_path / "x.html").exists()
    with pytest.raises(SystemExit):
        cli.main(["export", str(NOTEBOOKS[0])])
    assert "--html" in capsys.readouterr().err


# -- the module -------------------------------------------------------------------------------------------------------------
def lab_of(name: str) -> Lab:
    case = cases.build(name)
    shape = {n: getattr(case, n) for n in ("B", "H", "Hkv", "Sq", "Skv", "D")}
    return attention(case.score_mod, case.mask_mod, **shape, dtype={"bfloat16": "bf16", "float16": "fp16"}[case.dtype], name=name)


def exported(lab: Lab, folder: Path) -> Any:
    path = lab.export("module", folder / f"{lab.name}.py")
    spec = importlib.util.spec_from_file_location(f"exported_{lab.name}", str(path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def kind_of(module: Any) -> Any:
    kinds = (k for k in vars(module).values() if isinstance(k, type) and issubclass(k, module.Variant) and k is not module.Variant)
    return next(kinds)


NAMES = (
    "alibi_interpolated_slopes t5_bucket_lut softcap_sliding_gemma fp16_log_capture sliding_offset_asymmetric prefix_lm_per_batch "
    "packed_docs_causal streaming_sink_window noop_composition per_head_windows cross_docs_different_lengths tree_bool_matrix_clamped"
).split()


def aux(lab: Lab, module: Any) -> Any:
    """As the module passes them to a kernel, but to addresses on the CPU."""
    import cutlass

    kinds = {"i32": cutlass.Int32, "f32": cutlass.Float32}
    addresses = [cutlass.Int64(getattr(module, t.name).data_ptr()) for t in module.spec.captured[: module.spec.addresses]]
    return (*addresses, *(kinds[kind](value(module.numbers)) for kind, value in module.spec.scalars)) or None


@pytest.mark.parametrize("name", NAMES)
def test_the_generated_functions_of_a_file_equal_its_eager_evaluation(name: str, tmp_path: Path) -> None:
    """Compiled for the host from the file, as CuTeDSL finds them there, with the module's own buffers and numbers."""
    import cutlass
    from cutlass import cute

    lab = lab_of(name)
    file = exported(lab, tmp_path)
    module = kind_of(file)()
    if module.numbers:
        module.numbers.update({n: v + 3 if isinstance(v, int) else v * 1.5 for n, v in module.numbers.items()})
    Sq, Skv = min(lab.shape.Sq, 40), min(lab.shape.Skv, 64)
    score_mod, mask_mod = module.functions()
    b, h = lab.shape.B - 1, lab.shape.H - 1
    rows, kv = host.grid_rows([b], [h], range(Sq)), torch.arange(Skv, dtype=torch.int32)
    scores = torch.randn(Sq, Skv, generator=torch.Generator().manual_seed(1))
    functions = module.spec.kernels[9]["forward"].functions
    assert set(functions) == {n for n, m in (("score_mod", score_mod), ("mask_mod", mask_mod)) if m is not None}

    def run(kernel: Any, function: Any, *buffers: torch.Tensor) -> None:
        data = [*(host.dynamic(x.view(-1)) for x in buffers), host.dynamic(rows), host.dynamic(kv), aux(lab, module)]
        made = cute.compile(kernel, function, *data, cutlass.Int32(0), cutlass.Int32(0), 8)
        made(*data, cutlass.Int32(0), cutlass.Int32(Sq))

    at = torch.arange(Sq, dtype=torch.int32)
    if score_mod is not None:
        out = torch.full_like(scores, float("nan"))
        run(host_kernels.score_rows, functions["score_mod"], scores, out)
        torch.testing.assert_close(out, file.over(score_mod, scores, b, h, at, Skv).float(), rtol=2e-6, atol=2e-6)
    if mask_mod is not None:
        keep = torch.full((Sq, Skv), 255, dtype=torch.uint8)
        run(host_kernels.mask_rows, functions["mask_mod"], keep)
        assert torch.equal(keep.bool(), file.over(mask_mod, None, b, h, at, Skv).expand(Sq, Skv))


@pytest.mark.parametrize("name", NAMES)
def test_a_module_equals_the_lab(name: str, tmp_path: Path) -> None:
    """Its attention, gradients, block lists and windows, with what the lab passes to FlashAttention-4."""
    lab = lab_of(name)
    file = exported(lab, tmp_path)
    module, s = kind_of(file)(), lab.shape
    assert file.check(module).startswith("the kernel was NOT run: there is no GPU") or torch.cuda.is_available()
    g = torch.Generator().manual_seed(2)
    shapes = ((s.B, s.H, s.Sq, s.D), (s.B, s.Hkv, s.Skv, s.D), (s.B, s.Hkv, s.Skv, s.D))
    ours, theirs = ([torch.randn(shape, generator=g.manual_seed(i)).requires_grad_() for i, shape in enumerate(shapes)] for _ in range(2))
    expected, _ = attend.attend(lab.generated(), ours[0], ours[1], ours[2], None)
    out = module(*theirs)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    grads = torch.autograd.grad(expected.sum(), ours), torch.autograd.grad(out.sum(), theirs)
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    if lab.graph.mask is None:
        return
    for target in ("sm_90a", "sm_100a"):
        for direction in ("forward", "backward"):
            if not targets.skips_blocks(targets.target_named(target), s.D, s.Sq, direction, s.H // s.Hkv):
                continue
            block = lab.block_of(target, direction)
            kernel = module.spec.kernels[targets.target_named(target).fa_arch // 10][direction]
            assert kernel.refused or kernel.at(s.Sq).block == block
            wanted = sparse.lists(lab.blocks(block), "cpu", direction)
            got = module.lists(block, direction, s.Sq, s.Skv, s.B, torch.device("cpu"))
            for field in ("mask_block_cnt", "full_block_cnt"):
                assert torch.equal(getattr(got, field), getattr(wanted, field)), (target, direction, field)
            for field, count in (("mask_block_idx", got.mask_block_cnt), ("full_block_idx", got.full_block_cnt)):
                valid = torch.arange(getattr(got, field).shape[-1]) < count[..., None]
                assert getattr(got, field).stride(-1) == count.stride(-1) == 1, (target, direction, field)  # FlashAttention-4 asks for it
                assert torch.equal(getattr(got, field)[valid], getattr(wanted, field)[valid]), (target, direction, field)
    window = native.window(lab.graph, s)
    mine = module.native(s.Sq, s.Skv)
    assert mine is None or (window is not None and mine == (window.left, window.right))


def test_a_file_runs_alone(tmp_path: Path) -> None:
    """As a script, in a process that can't import cute_lab, from another folder."""
    path = lab_of("streaming_sink_window").export("module", tmp_path / "sinks.py")
    (tmp_path / "cute_lab.py").write_text("raise ImportError('cute_lab is not there')")
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "The eager evaluation ran" in done.stdout
    words = [line for line in Path(str(path)).read_text().split("\n") if re.match(r"\s*(from|import) ", line)]
    assert {w.split()[1].partition(".")[0] for w in words} <= {*sys.stdlib_module_names, "torch", "cutlass", "streaming_sink_window"}


def test_threads_export_side_by_side() -> None:
    labs = [lab_of(name) for name in NAMES[:6]]
    with ThreadPoolExecutor(4) as pool:
        side_by_side = list(pool.map(module_export.module, labs * 2))
    assert side_by_side == [module_export.module(lab) for lab in labs] * 2


def test_a_planted_mistake_fails_the_files_own_test(tmp_path: Path) -> None:
    lab = lab_of("streaming_sink_window")
    file = exported(lab, tmp_path)
    module = kind_of(file)()
    honest = module.blocks
    module.blocks = lambda *given: honest(*given).clamp(max=1) * 2
    with pytest.raises(AssertionError, match="are not the mask's"):
        file.check(module)
    with pytest.raises(AssertionError, match="off by"):
        file._close("out", torch.ones(3), torch.zeros(3), torch.tensor(1e-3))


def test_numbers_and_buffers_move_and_refusals_are_said(tmp_path: Path) -> None:
    lab = lab_of("softcap_sliding_gemma")
    file = exported(lab, tmp_path)
    kind = kind_of(file)
    assert set(kind().numbers) == {"cap", "window"}
    other = kind(window=7, cap=20.0)
    expected = lab.with_params(window=7, cap=20.0)
    q, k, v = (torch.randn(1, n, 100, lab.shape.D) for n in (lab.shape.H, lab.shape.Hkv, lab.shape.Hkv))
    wanted = expected.with_shape(B=1, Sq=100, Skv=100).run(q, k, v)
    torch.testing.assert_close(other(q, k, v), wanted, rtol=1e-5, atol=1e-5)
    before = other.blocks((64, 64), 256, 256, 1, torch.device("cpu"))
    first = other.lists((64, 64), "forward", 256, 256, 1, torch.device("cpu"))
    other.numbers["window"] = 200
    assert not torch.equal(before, other.blocks((64, 64), 256, 256, 1, torch.device("cpu")))
    assert not torch.equal(first.mask_block_cnt, other.lists((64, 64), "forward", 256, 256, 1, torch.device("cpu")).mask_block_cnt)
    docs = kind_of(exported(lab_of("packed_docs_causal"), tmp_path))
    module = docs().half()
    assert [b.dtype for b in module.buffers()] == [b.dtype for b in docs().buffers()]
    s = docs.spec
    with pytest.raises(ValueError, match="at most 500 queries and 500 keys, not 501"):
        module(*(torch.randn(1, n, 501, s.D) for n in (s.H, s.Hkv, s.Hkv)))
    with pytest.raises(ValueError, match="q is"):
        module(*(torch.randn(1, n, 5, s.D + 1) for n in (s.H, s.Hkv, s.Hkv)))
    slopes = kind_of(exported(lab_of("fp16_log_capture"), tmp_path))().half()
    assert file.check and [b.dtype for b in slopes.buffers()] == [t.dtype for t in slopes.spec.captured]


class Scaled:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return score * self.scale


def near(b: Any, h: Any, q_idx: Any, kv_idx: Any, width: int = 9, *, low: int = -3) -> Any:
    """Defaults, a docstring of
    two lines."""
    return (q_idx - kv_idx < width) & (q_idx - kv_idx > low)


def written() -> dict[str, tuple[Callable[..., Any] | None, Callable[..., Any] | None]]:
    table, spans = torch.arange(64.0).view(8, 8).T, [(0, 20), (30, 64)]

    def helper(x: Any) -> Any:
        return torch.tanh(x) * 2.0

    def strided(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return helper(score) + table[q_idx % 8, kv_idx % 8]  # a view that is not dense

    def in_spans(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        inside = kv_idx < 0
        for low, high in spans:
            inside = inside | ((kv_idx >= low) & (kv_idx < high))
        return inside

    def typed(score: torch.Tensor, b: int, h: int, q_idx: int, kv_idx: int, scale: float = 0.5) -> torch.Tensor:
        return score * scale

    return {
        "helper_and_view": (strided, in_spans),
        "lambda_": (lambda score, b, h, q_idx, kv_idx: score - kv_idx * 0.125, None),
        "defaults": (typed, near),
        "partial": (functools.partial(lambda k, score, b, h, q_idx, kv_idx: score * k, 0.25), functools.partial(near, width=20)),
        "combined": (None, and_masks(in_spans, near)),
        "object_": (Scaled(0.75), None),
        "one_line": (lambda s, b, h, q, kv: s * 0.5, lambda b, h, q, kv: q >= kv),
    }


@pytest.mark.parametrize("name", list(written()))
def test_whatever_a_person_writes_is_embedded(name: str, tmp_path: Path) -> None:
    score_mod, mask_mod = written()[name]
    lab = attention(score_mod, mask_mod, H=2, Sq=64, D=64, name=name)
    module = kind_of(exported(lab, tmp_path))()
    q, k, v = (torch.randn(1, 2, 64, 64, generator=torch.Generator().manual_seed(i)) for i in range(3))
    torch.testing.assert_close(module(q, k, v), lab.run(q, k, v), rtol=1e-5, atol=1e-5)


def test_what_can_not_be_embedded_is_said(tmp_path: Path) -> None:
    import numpy as np

    values = np.float64(2.0)
    lab = attention(lambda score, b, h, q_idx, kv_idx: score * float(np.abs(values)), H=1, Sq=64, D=64)
    with pytest.raises(OptionError, match="can't be written into a file of its own"):
        lab.export("module")
    table = torch.randint(0, 2**31, (3000, 3000), dtype=torch.int32)
    large = attention(lambda score, b, h, q_idx, kv_idx: score + table[q_idx, kv_idx], H=1, Sq=3000, D=64)
    with pytest.raises(OptionError, match="more than a file of code should hold"):
        large.export("module")
    with pytest.raises(OptionError) as caught:
        lab.export("modul")
    assert caught.value.hint == "lab.export('module')"


def test_a_text_that_is_not_the_functions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mods_on_disk.py"
    path.write_text("def score_mod(score, b, h, q_idx, kv_idx):\n    return score * 2\n")
    spec = importlib.util.spec_from_file_location("mods_on_disk", str(path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lab = attention(module.score_mod, H=1, Sq=64, D=64)
    assert "return score * 2" in str(lab.export("module"))
    path.write_text("def score_mod(score, b, h, q_idx, kv_idx):\n    return score * 3\n")
    linecache.checkcache()
    with pytest.raises(OptionError, match="is not what it does"):
        lab.export("module")


def test_numbers_that_shape_the_code_stay_as_they_are() -> None:
    levels = 3

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        keep = q_idx == kv_idx
        for level in range(levels):
            keep = keep | ((q_idx >> level) == kv_idx)
        return keep

    found = scalar_forms.movable(attention(None, mask_mod, H=1, Sq=64, D=64))
    assert found.names == ()
    window = 5
    found = scalar_forms.movable(attention(None, lambda b, h, q, kv: q - kv < window, H=1, Sq=64, D=64))
    assert found.names == ("window",) and found.scalars == (("window", "i32", "n['window']"),)


# -- the others ---------------------------------------------------------------------------------------------------------------
def test_json_png_and_csv(tmp_path: Path) -> None:
    lab = lab_of("streaming_sink_window")
    record = lab.record(targets=())
    path = lab.export("json", tmp_path / "r.json", record=record)
    assert load(path) == record
    png = lab.export("png", tmp_path / "m.png")
    assert Path(str(png)).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(OptionError, match="it needs a path"):
        lab.export("png")
    suite = cute_lab.load("h200_mha_d128")
    measured = suite["alibi_causal"]  # type: ignore[index]
    rows = list(csv.DictReader(io.StringIO(str(lab.export("csv", record=measured)))))
    assert len(rows) == len(measured.bench.timings)
    timed = next(r for r in rows if r["status"] == "timed")
    assert float(timed["low_us"]) <= float(timed["median_us"]) <= float(timed["high_us"]) and float(timed["tflops"]) > 0
    assert len(timed["samples_us"].split()) == int(timed["rounds"])
    with pytest.raises(OptionError, match="nothing was measured"):
        lab.export("csv", record=record)
    assert fa4.interface()
