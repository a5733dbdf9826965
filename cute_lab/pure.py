"""Callables that only compute: known by name or by where they come from, all others are not."""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from cute_lab.capture import slots
from cute_lab.freshness import of_library
from cute_lab.sliders import slider

BUILTINS = frozenset(
    """abs all any bool bytes complex dict divmod enumerate filter float frozenset hash int isinstance issubclass iter len list map max
min next range repr reversed round set slice slider sorted str sum tuple type zip super""".split()
)
LIBRARIES = frozenset(
    """torch math cmath numpy functools itertools operator fractions statistics typing collections dataclasses enum __future__
attn_gym""".split()
)
NUMPY = frozenset(
    """float16 float32 float64 int8 int16 int32 int64 uint8 bool_ sqrt log log2 exp sin cos tanh floor ceil abs sign maximum minimum
array asarray prod sum cumsum arange linspace zeros ones""".split()
)
TORCH_MODULES = ("torch", "torch.nn.functional", "torch.functional", "torch.linalg", "torch.special", "torch.fft", "torch.dtype")
TORCH = frozenset(("torch.tensor", "torch.Generator", "torch.Size", "torch.device", "torch.finfo", "torch.iinfo", "torch.vmap"))
# of torch's own functions, those that read or change more than their arguments
TORCH_NOT = frozenset(
    "seed initial_seed get_rng_state from_file set_ is_grad_enabled autocast_increment_nesting clear_autocast_cache".split()
)
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
CALLABLES = (*FUNCTIONS, type, np.ufunc, torch.dtype, types.MethodDescriptorType, types.WrapperDescriptorType)
FRESH = "zeros ones full empty arange tensor eye linspace rand randn randint zeros_like ones_like full_like empty_like clone".split()


def pure(module: str) -> bool:
    return module.split(".")[0].removeprefix("_") in LIBRARIES


def computes(value: Any, words: str, of_notebook: Callable[[types.FunctionType], bool]) -> bool:
    """A callable that only computes; `words` are what the cell calls it. Functions of the notebook are looked at one by one."""
    if isinstance(value, functools.partial):
        return computes(value.func, "", of_notebook)
    if not isinstance(value, CALLABLES):  # an object that can be called may do anything
        return False
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", "")
    if value is slider or isinstance(value, torch.dtype):
        return True
    if module == "builtins" and getattr(builtins, name, None) is value:
        return name in BUILTINS or (isinstance(value, type) and issubclass(value, BaseException)) or value is object
    if isinstance(value, types.FunctionType) and not pure(module):
        return not of_library(module) and of_notebook(value)
    if words.startswith("torch.") or module.startswith("torch"):
        only = name not in TORCH_NOT and not name.endswith("_") and not name.startswith(("set_", "_"))
        native = isinstance(value, types.BuiltinFunctionType) and (module in ("", "torch", "torch._C") or module.startswith("torch._C"))
        python = module in TORCH_MODULES and words.split(".")[-1] in (name, *FRESH) and module != "torch"
        if module == "torch.nn.attention.flex_attention" and isinstance(value, types.FunctionType) and value.__closure__:
            return all(
                computes(mod, "", of_notebook) for _, _, mods in slots(value) for mod in (mods if isinstance(mods, tuple) else (mods,))
            )
        flex = module == "torch.nn.attention.flex_attention" and name in ("and_masks", "or_masks", "noop_mask")
        return only and (native or python or flex or words in TORCH or f"torch.{name}" in TORCH or isinstance(value, type))
    if module.split(".")[0] == "numpy" or isinstance(value, np.ufunc):
        return name in NUMPY
    return pure(module)
