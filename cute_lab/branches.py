"""A tensor was asked for its value: an `if`, `float(x)`, `x.item()`, `slopes[h]` of a list: which it was, and what to write."""

from __future__ import annotations

import ast
import types

import torch

from cute_lab import usercode
from cute_lab.errors import BranchOnTensor, CuteLabError, Loc, TensorToNumber
from cute_lab.tracer import Tracer

CONTROL = {
    ast.If: "if",
    ast.While: "while",
    ast.IfExp: "x if ... else y",
    ast.Assert: "assert",
    ast.BoolOp: "and/or",
    ast.Compare: "chained comparison",
}


def number_error(t: Tracer) -> CuteLabError:
    """A tensor was asked for its value: an `if`, `float(x)`, `x.item()`, `math.sqrt(x)`, `range(x)`."""
    at = t.here()
    if at is None:
        return TensorToNumber(snippet="the mod", example="")
    around = usercode.enclosing(at)
    for i, node in reversed(list(enumerate(around))):
        if isinstance(node, ast.Call) and usercode.span(node, at.file) == at:
            return _call_error(t, node, at)
        test = getattr(node, "test", None)
        if (test is not None and test in around[i:]) or isinstance(node, (ast.BoolOp, ast.Compare)):
            if isinstance(node, ast.Compare) and len(node.ops) < 2:
                continue
            shown = usercode.span(test if test is not None else node, at.file)
            construct = CONTROL.get(type(node), "branch")
            subject = "an index" if "idx" in shown.snippet or shown.snippet.strip() in ("b", "h") else "a value of the mod"
            return BranchOnTensor(loc=shown, construct=construct, subject=subject, example=branch_example(node, around, at))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return BranchOnTensor(loc=at, construct="not", subject="a value of the mod", example=f"~({ast.unparse(node.operand)})")
        if isinstance(node, ast.Subscript):
            break
    inner = around[-1] if around else None
    if isinstance(inner, ast.Match):
        subject = ast.unparse(inner.subject)
        return BranchOnTensor(
            loc=at, construct="match", subject="a value of the mod", example=f"torch.where({subject} == ..., value, other)"
        )
    if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], (ast.In, ast.NotIn)):
        frame, value, choices = usercode.user_frame(t.seen.files), ast.unparse(inner.left), ast.unparse(inner.comparators[0])
        sign = "~" if isinstance(inner.ops[0], ast.NotIn) else ""
        tensor = frame is not None and isinstance(usercode.lookup(frame, choices), torch.Tensor)
        made = choices if tensor else f"torch.tensor(list({choices}))"
        example = f"{sign}torch.isin({value}, {made})"
        return BranchOnTensor(loc=at, construct="in", subject="a value of the mod", example=example)
    return number_asked(at, usercode.user_frame(t.seen.files))


def number_asked(at: Loc, frame: types.FrameType | None) -> CuteLabError:
    """`slopes[h]` of a list or dict, `table[:k]`, a format: where Python wants a number and a tensor would do."""
    around = usercode.enclosing(at)
    inner = around[-1] if around else None
    example = at.snippet
    if any(isinstance(n, ast.JoinedStr) for n in around):
        example = "# leave the text out: a format needs a number"
    elif isinstance(inner, ast.Subscript):
        name, index = ast.unparse(inner.value), ast.unparse(inner.slice)
        value = usercode.lookup(frame, name) if frame is not None else None
        if isinstance(inner.slice, ast.Slice) and inner.slice.step is None:
            low, high = (ast.unparse(x) if x is not None else None for x in (inner.slice.lower, inner.slice.upper))
            inside = " & ".join([f"(at >= {low})"] * (low is not None) + [f"(at < {high})"] * (high is not None))
            example = (
                f"at = torch.arange({name}.shape[0])\ntorch.where({inside}, {name}, 0.0)    # a slice has one length for all positions"
            )
        elif isinstance(value, (list, tuple, dict)) and name.isidentifier():
            items = f"list({name}.values())" if isinstance(value, dict) else name
            first = next(iter(value.values() if isinstance(value, dict) else value), None)
            made = f"torch.stack({items})" if isinstance(first, torch.Tensor) else f"torch.tensor({items})"
            example = f"{name} = {made}    # outside of the mod\n{name}[{index}]"
        elif isinstance(inner.value, (ast.List, ast.Tuple)):
            example = f"torch.tensor({name})[{index}]"
        elif isinstance(inner.value, ast.Dict):
            example = f"torch.tensor([{', '.join(ast.unparse(v) for v in inner.value.values)}])[{index}]"
    if example == at.snippet:  # the tensor as it stands is what Python can't take here
        example = "# the number differs per position; for each i of a captured range:\ntorch.where(i < x, value, other)"
    return TensorToNumber(loc=at, snippet=at.snippet, example=example)


def _call_error(t: Tracer, call: ast.Call, at: Loc) -> CuteLabError:
    frame = usercode.user_frame(t.seen.files)
    root = usercode.root_name(call.func)
    value = usercode.lookup(frame, root) if frame is not None and root else None
    if isinstance(value, types.ModuleType) and not value.__name__.startswith("torch"):
        from cute_lab.diagnose import leaves_torch

        return leaves_torch(t, at)
    method = isinstance(call.func, ast.Attribute) and not isinstance(value, types.ModuleType)
    inner = call.func.value if method and isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
    if isinstance(call.func, ast.Name) and (text := _builtin(call.func.id, call.args, frame)) is not None:
        return BranchOnTensor(loc=at, construct=call.func.id, subject="a value of the mod", example=text)
    if ast.unparse(call.func) == "range":
        stop = ast.unparse(call.args[0] if len(call.args) == 1 else call.args[1])
        first = f"(i >= {ast.unparse(call.args[0])}) & " if len(call.args) > 1 else ""
        after = f"(i < {stop})" if first else f"i < {stop}"
        example = f"for i in range(most):    # a captured number: the largest that {stop} can be\n"
        return TensorToNumber(loc=at, snippet=at.snippet, example=f"{example}    x = torch.where({first}{after}, next_x, x)")
    if isinstance(value, types.ModuleType):
        example = "# a size is one Python number for all positions: take the largest, and cut off with torch.where"
        return TensorToNumber(loc=at, snippet=at.snippet, example=example)
    if isinstance(call.func, ast.Name) and call.func.id == "bool":
        return BranchOnTensor(
            loc=at, construct="bool()", subject="a value of the mod", example=ast.unparse(call.args[0]) if call.args else ""
        )
    return TensorToNumber(
        loc=at,
        snippet=at.snippet,
        example=f"{ast.unparse(inner)}    # as it is, without {ast.unparse(call.func).split('.')[-1]}()" if inner else "",
    )


def _builtin(name: str, args: list[ast.expr], frame: types.FrameType | None) -> str | None:
    """torch's word for max, min, any, all and sorted of tensors."""
    texts = [ast.unparse(a) for a in args]
    if name in ("any", "all", "sorted", "max", "min") and len(args) == 1:
        row = texts[0] if isinstance(args[0], (ast.List, ast.Tuple)) else f"list{texts[0]}" if texts[0][0] == "(" else f"list({texts[0]})"
        return f"torch.stack({row})." + {"any": "any()", "all": "all()", "sorted": "sort().values"}.get(name, f"a{name}()")
    if name not in ("max", "min") or not args:
        return None

    def number(a: ast.expr) -> bool:
        if isinstance(a, ast.UnaryOp):
            return number(a.operand)
        value = a.value if isinstance(a, ast.Constant) else usercode.lookup(frame, a.id) if frame and isinstance(a, ast.Name) else None
        return isinstance(value, (int, float))

    numbers = [text for a, text in zip(args, texts, strict=True) if number(a)]
    tensors = [text for a, text in zip(args, texts, strict=True) if not number(a)]
    result, *more = tensors or texts
    for other in more:
        result = f"torch.{name}imum({result}, {other})"
    if numbers:
        bound = numbers[0] if len(numbers) == 1 else f"{name}({', '.join(numbers)})"
        plain = result.isidentifier() or result.startswith("torch.")
        result = f"{result if plain else f'({result})'}.clamp({'min' if name == 'max' else 'max'}={bound})"
    return result


def branch_example(node: ast.AST, around: list[ast.AST], at: Loc) -> str:
    if isinstance(node, ast.IfExp):
        return f"torch.where({ast.unparse(node.test)}, {ast.unparse(node.body)}, {ast.unparse(node.orelse)})"
    if isinstance(node, ast.BoolOp):
        sign = " & " if isinstance(node.op, ast.And) else " | "
        return sign.join(f"({ast.unparse(v)})" for v in node.values)
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        return " & ".join(f"({ast.unparse(ast.Compare(a, [o], [b]))})" for a, o, b in zip(parts, node.ops, parts[1:], strict=False))
    if isinstance(node, ast.If):
        outer = around[around.index(node) - 1] if around.index(node) else None
        body = getattr(outer, "body", [])
        after = body[body.index(node) + 1 :] if node in body else []
        yes, no = _value(node.body), _value(node.orelse or after)
        if yes and no:
            mask = "    # or a mask_mod: return " + ast.unparse(node.test)
            return f"return torch.where({ast.unparse(node.test)}, {yes}, {no})" + (mask if "inf" in no else "")
        return f"torch.where({ast.unparse(node.test)}, value_if_true, value_if_false)"
    if isinstance(node, ast.Assert):
        return "# remove the assert; check the captured values outside of the mod"
    test = getattr(node, "test", None)
    if test is None:
        return ""
    return f"for _ in range(most):    # a captured number of steps\n    x = torch.where({ast.unparse(test)}, next_x, x)"


def _value(body: list[ast.stmt]) -> str | None:
    """What a one-statement branch returns or assigns, as an argument of torch.where."""
    if body and isinstance(body[0], (ast.Return, ast.Assign)) and body[0].value is not None:
        value = body[0].value
        for n in ast.walk(value):  # `score * 0 + float("-inf")` is a way to say -inf
            if isinstance(n, ast.Call) and ast.unparse(n) == "float('-inf')":
                return "float('-inf')"
        return ast.unparse(value)
    return None


def chained(node: ast.AST) -> bool:
    """`0 <= x < 16`: Python asks the first comparison for its truth."""
    return isinstance(node, ast.Compare) and len(node.ops) > 1
