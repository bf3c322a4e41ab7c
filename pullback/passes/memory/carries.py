"""Loops that hand one small carried value on as another get a copy, which LLVM turns into other names of registers."""

from dataclasses import replace

from pullback.ir.graph import Attrs, Function, Op, Region, Value
from pullback.ir.index import axis_index
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS
from pullback.ir.types import tensor_type
from pullback.passes.base import Rebuild, map_regions, with_body
from pullback.passes.memory.buffers import inner_regions


def separate_carries(function: Function, small: int) -> Function:
    """The function, with copies in the bodies of loops in which carried values of up to `small` bytes change places."""
    return with_body(function, _separate(function.body, small))


def _separate(region: Region, small: int) -> Region:
    if not any(inner_regions(op) for op in region.ops):
        return region
    rebuild = Rebuild()
    for op in region.ops:
        regions = op.regions
        if inner_regions(op):
            regions = map_regions(op, lambda inner: _separate(inner, small))
            if "carries" in op.attrs:
                body = _with_copies(regions[-1], op.attrs["carries"], small)
                regions = regions if body is regions[-1] else (*regions[:-1], body)
        rebuild.keep(op, rebuild.current(op, regions))
    return rebuild.region(region)


def _with_copies(body: Region, carries: int, small: int) -> Region:
    """Copy what is carried on as another value than it was."""
    places = {param: k for k, param in enumerate(body.params[:carries])}
    copies: list[Op] = []
    results = list(body.results)
    for k, value in enumerate(body.results[:carries]):
        root = value
        while root.op is not None and root.op.name == "reshape":
            root = root.op.operands[0]
        if places.get(root, k) != k and value.type.nbytes <= small:
            copies.append(_copy(value))
            results[k] = copies[-1].results[0]
    return replace(body, ops=(*body.ops, *copies), results=tuple(results)) if copies else body


def _copy(value: Value) -> Op:
    type = value.type
    at = axis_index(0)
    param = Value(tensor_type(type.dtype))
    attrs = Attrs(space=(type.size,), loads=(Load(0, at),), stores=(Store("store", type, at),))
    return Op(OPS["kernel"], (value,), attrs, (type,), (Region((param,), (), (param,)),))
