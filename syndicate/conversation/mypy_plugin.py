"""A plugin for mypy: handlers have the types of what their patterns capture.

In ``pyproject.toml``: ``[tool.mypy] plugins = ["syndicate.conversation.mypy_plugin"]``.  Then a handler that takes
another number of arguments than ``@during(ds, At(capture(), ANY))`` captures, or another type than the record's field
has, is an error in its line; and the arguments of a lambda have types.

Source: ``docs/design/conversation.md``, "Types".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy.nodes import ARG_POS, CallExpr, DictExpr, Expression, ListExpr, RefExpr, TupleExpr, TypeInfo
from mypy.plugin import FunctionContext, Plugin
from mypy.types import AnyType, CallableType, Type, TypeOfAny, TypeVarType, get_proper_type

_VERBS: Final = {
    f"syndicate.actors.during.{name}" for name in ("during", "on_asserted", "on_retracted", "on_message", "stop_when")
}
_CAPTURE: Final = "syndicate.values.pattern.capture"


class Unsaid(Exception):
    """The text does not say what a pattern captures."""


class Handlers(Plugin):
    """Gives the verbs that take handlers a more exact type."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """The hook of one of them."""
        return _handled if fullname in _VERBS else None


def plugin(version: str) -> type[Plugin]:
    """What mypy asks for."""
    return Handlers


def _handled(ctx: FunctionContext) -> Type:
    if len(ctx.args) < 2 or not ctx.args[1]:
        return ctx.default_return_type
    try:
        captured = _captures(ctx, ctx.args[1][0], None)
    except Unsaid:
        return ctx.default_return_type
    function = ctx.api.named_generic_type("builtins.function", [])
    anything = ctx.api.named_generic_type("builtins.object", [])
    size = len(captured)
    handler = CallableType(captured, [ARG_POS] * size, [None] * size, anything, function)
    decorator = get_proper_type(ctx.default_return_type)
    if not isinstance(decorator, CallableType) or not isinstance(decorator.variables[0], TypeVarType):
        return ctx.default_return_type
    of = decorator.variables[0].copy_modified(upper_bound=handler)  # F, and so what is decorated stays what it is
    return decorator.copy_modified(variables=[of], arg_types=[of], ret_type=of)


def _captures(ctx: FunctionContext, pattern: Expression, expected: Type | None) -> list[Type]:
    """The types of what *pattern* captures, in pre-order."""
    if isinstance(pattern, (ListExpr, TupleExpr)):
        return [each for item in pattern.items for each in _captures(ctx, item, None)]
    if isinstance(pattern, DictExpr):
        raise Unsaid  # the order is that of the keys
    if isinstance(pattern, RefExpr):
        if pattern.fullname.rpartition(".")[2] == "ANY" or isinstance(pattern.node, TypeInfo):
            return []
        raise Unsaid
    if not isinstance(pattern, CallExpr):
        return []
    callee = pattern.callee
    if not isinstance(callee, RefExpr):
        raise Unsaid
    if callee.fullname.rpartition(".")[2] in ("quote", "unquote"):
        raise Unsaid
    if callee.fullname == _CAPTURE:
        if not pattern.args:
            return [expected or AnyType(TypeOfAny.explicit)]
        inner = _captures(ctx, pattern.args[0], None)
        return [ctx.api.get_expression_type(pattern), *inner]
    if not isinstance(callee.node, TypeInfo):
        raise Unsaid
    init = callee.node.get_method("__init__")
    constructor = get_proper_type(init.type) if init is not None else None
    if not isinstance(constructor, CallableType):
        raise Unsaid
    formal = dict(zip(constructor.arg_names[1:], constructor.arg_types[1:], strict=True))
    arguments = dict(zip([name or list(formal)[at] for at, name in enumerate(pattern.arg_names)], pattern.args,
                     strict=True))  # fmt: skip
    return [each for name, of in formal.items() if name in arguments for each in _captures(ctx, arguments[name], of)]
