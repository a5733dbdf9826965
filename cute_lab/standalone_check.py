"""The test that an exported module carries in itself. The text below the line is copied into it."""

import torch

from cute_lab.standalone import Variant, over

# ---- copied from here on
# -- its test -----------------------------------------------------------------------------------------------------------------
ROWS = 256  # queries that are compared
SCORES = 1 << 27  # float32 scores that the comparison may hold


def check(module: Variant) -> str:
    """Compares the kernel with the eager evaluation in float32, gradients too. Without a GPU that alone runs. Raises where they differ."""
    s = module.spec
    Sq, Skv = s.tried
    B = min(2, s.batches or 2)
    runs = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] in s.kernels
    device = torch.device("cuda" if runs else "cpu")
    module = module.to(device)
    g = torch.Generator().manual_seed(11)
    sizes = ((B, s.H, Sq), (B, s.Hkv, Skv), (B, s.Hkv, Skv))
    q, k, v = (torch.randn(*size, s.D, generator=g).to(device, s.dtype) for size in sizes)
    most = max(1, min(ROWS, SCORES // (B * s.H * Skv)))
    rows = torch.arange(Sq) if Sq <= most else torch.linspace(0, Sq - 1, most).long().unique()
    rows, total = rows.to(device), B * s.H * len(rows) * Skv
    leaves = [x.float().requires_grad_() for x in (q, k, v)]
    expected = module.eager(leaves[0], leaves[1], leaves[2], rows=rows)
    if not bool(expected.isfinite().all()):
        raise AssertionError("the eager evaluation gives values that are not finite")
    if not runs:
        _blocks_hold(module, Sq, Skv, B, rows)
        why = "this GPU is none that it was exported for" if torch.cuda.is_available() else "there is no GPU"
        return f"the kernel was NOT run: {why}. The eager evaluation ran, {total:,} scores; the block map agrees with the mask."
    d_rows = torch.randn(expected.shape, generator=g).to(device, s.dtype)
    rounded = module.eager(leaves[0], leaves[1], leaves[2], rows=rows, rounded=s.dtype)
    grads, noisy = (torch.autograd.grad(x, leaves, d_rows.float(), allow_unused=True) for x in (expected, rounded))
    inputs = [x.clone().requires_grad_() for x in (q, k, v)]
    out = module(*inputs)
    said = [_close("out", out[:, :, rows], expected, (rounded - expected).abs().max())]
    refused = s.kernels[torch.cuda.get_device_capability()[0]]["backward"].refused
    if refused:
        return f"equal in float32: {said[0]}; no backward: {refused}"
    d_out = torch.zeros_like(out).index_copy(2, rows, d_rows)
    for name, found, grad, other in zip("qkv", torch.autograd.grad(out, inputs, d_out), grads, noisy, strict=True):
        exact = torch.zeros_like(found, dtype=torch.float32) if grad is None else grad
        noise = 2**-8 * exact.abs().max() if other is None else torch.maximum((other - exact).abs().max(), 2**-8 * exact.abs().max())
        said.append(_close(f"d{name}", found, exact, noise))
    return f"the kernel equals the eager evaluation in float32: {', '.join(said)}"


def _close(name: str, found: torch.Tensor, exact: torch.Tensor, noise: torch.Tensor) -> str:
    """An error of at most twice the one that rounding alone makes, and a little."""
    error, limit = float((found.float() - exact).abs().max()), 2 * float(noise) + 2e-3
    if not error <= limit:
        raise AssertionError(f"{name} is off by {error:.3g}, more than {limit:.3g}")
    return f"{name} within {error:.2g} of {limit:.2g}"


def _blocks_hold(module: Variant, Sq: int, Skv: int, B: int, rows: torch.Tensor) -> None:
    """Kept cells lie in blocks that are run, and full blocks keep all."""
    mask_mod = module.functions()[1]
    blocks = [k.at(Sq).block for kernels in module.spec.kernels.values() for k in kernels.values() if not k.refused]
    for block in {b for b in blocks if b} if mask_mod is not None else ():
        kinds = module.blocks(block, Sq, Skv, B, rows.device)
        for b in range(kinds.shape[0]):
            for h in range(kinds.shape[1]):
                keep = over(mask_mod, None, b, h, rows.to(torch.int32), Skv).expand(len(rows), Skv)
                kind = kinds[b, h][rows // block[0]].repeat_interleave(block[1], -1)[:, :Skv]
                if bool((keep & (kind == 0)).any() | (~keep & (kind == 2)).any()):
                    raise AssertionError(f"the blocks of {block[0]} x {block[1]} are not the mask's")
