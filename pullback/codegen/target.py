"""The host as LLVM sees it: from module text to object code, and from object code to addresses.

Measured on the reference machine, one explicitly vectorised loop of 40 operations (milliseconds): parse and verify
0.25, the `quick` passes 0.4, the standard -O2 passes 2.5, instruction selection and emission 2.7, link 0.2. The
emitters write vector code, hoist invariants and rotate loops themselves, so `quick` loses nothing that was measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from pullback.codegen.llvm import Module
from pullback.errors import CodegenError
from pullback.record import record

NO_OPT, QUICK, FULL = 0, 1, 2

# Inlining of `alwaysinline` helpers, then what an emitter of straight vector code leaves over: stack slots, folded
# constants, repeated address arithmetic, trivial branches, helpers that were inlined everywhere.
_QUICK_PASSES = (
    "always_inliner",
    "sroa",
    "instruction_combine",
    "simplify_cfg",
    "new_gvn",
    "dead_code_elimination",
    "global_dead_code_eliminate",
)
_CODEGEN_LEVEL = {NO_OPT: 0, QUICK: 2, FULL: 3}


@record(frozen=True, slots=True)
class Target:
    """What code is generated for; equal targets may share object code.

    Attributes
    ----------
    cpu, features, triple : as LLVM spells them
    vector_bytes : size of the widest vectors worth using: 64 (AVX-512), 32 (AVX), 16
    llvm_version : of the library that compiles
    """

    cpu: str
    features: str
    triple: str
    vector_bytes: int
    llvm_version: tuple[int, ...]

    def lanes(self, item_bytes: int) -> int:
        """How many items of that size fill a vector."""
        return max(1, self.vector_bytes // item_bytes)

    @property
    def function_attributes(self) -> str:
        """Attributes every emitted function should have, so that wide vectors stay wide.

        Without them LLVM cuts 512-bit operations in two on processors that it thinks prefer 256.
        """
        bits = self.vector_bytes * 8
        wide = f' "min-legal-vector-width"="{bits}" "prefer-vector-width"="{bits}"' if self.is_x86 else ""
        return f"nounwind{wide}"

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith(("x86_64", "i386", "i686"))

    def module(self, name: str = "pullback") -> Module:
        """A new module for this target."""
        present = frozenset(feature[1:] for feature in self.features.split(",") if feature.startswith("+"))
        return Module(name, self.triple, self.function_attributes, present)


@lru_cache(maxsize=1)
def host_target() -> Target:
    """The processor this runs on."""
    _initialise()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot ask every operating system; the processor's name then says enough
        features = ""
    triple = llvm.get_process_triple()
    names = set(features.split(","))
    if {"+avx512f", "+avx512dq", "+avx512vl", "+avx512bw"} <= names:
        vector_bytes = 64
    else:
        vector_bytes = 32 if "+avx2" in names else 16
    return Target(llvm.get_host_cpu_name(), features, triple, vector_bytes, tuple(llvm.llvm_version_info))


@lru_cache(maxsize=1)
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@lru_cache(maxsize=16)
def _machine(target: Target, opt: int) -> Any:
    """A target machine. Position independent and small: the linker adds stubs for far symbols, and constants are
    addressed relative to the instruction, which folds them into arithmetic."""
    _initialise()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=_CODEGEN_LEVEL[opt], reloc="pic", codemodel="small"
    )


def _optimised(text: str, target: Target, opt: int, verify: bool) -> Any:
    machine = _machine(target, opt)
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        if verify:
            module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM rejects the generated module: {error}") from error
    if opt != NO_OPT:
        _run_passes(module, machine, opt)
    return module


def _run_passes(module: Any, machine: Any, opt: int) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, tuning)
    if opt == FULL:
        manager = builder.getModulePassManager()
    else:
        manager = llvm.create_new_module_pass_manager()
        for name in _QUICK_PASSES:
            getattr(manager, f"add_{name}_pass")()
    manager.run(module, builder)


def compile_module(text: str, target: Target, opt: int = QUICK, verify: bool = True) -> bytes:
    """Object code of a module.

    Parameters
    ----------
    text : LLVM assembly
    opt : `NO_OPT` for cold glue, `QUICK` for kernels, `FULL` for scalar code with branches and calls
    verify : run LLVM's verifier (a tenth of a millisecond for each hundred instructions)

    Raises
    ------
    CodegenError : LLVM cannot read the text or its verifier refuses it; the message is LLVM's
    """
    return bytes(_machine(target, opt).emit_object(_optimised(text, target, opt, verify)))


def assembly(text: str, target: Target, opt: int = QUICK) -> str:
    """The machine code of a module, as assembler text."""
    return str(_machine(target, opt).emit_assembly(_optimised(text, target, opt, True)))


def optimised_ir(text: str, target: Target, opt: int = QUICK) -> str:
    """The module after LLVM's passes, as LLVM assembly."""
    return str(_optimised(text, target, opt, True))


class LoadedObject:
    """Object code in memory. Its addresses hold as long as this object lives; dropping it frees the code."""

    __slots__ = ("_tracker",)

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker

    def address(self, name: str) -> int:
        """Where the exported symbol is.

        Raises
        ------
        CodegenError : the name was not among the exports
        """
        try:
            return int(self._tracker[name])
        except KeyError:
            raise CodegenError(f"the loaded object exports no symbol {name!r}") from None


class Loader:
    """Links object code into this process. One for the process is enough; each object keeps its own symbols."""

    def __init__(self, target: Target) -> None:
        # LLVM's newer linker takes a third of the time, but is not complete for Windows objects.
        self._jit = llvm.create_lljit_compiler(_machine(target, QUICK), use_jit_link=sys.platform != "win32")
        self._count = 0

    def load(self, code: bytes, exports: Iterable[str], symbols: Mapping[str, int] | None = None) -> LoadedObject:
        """Link an object.

        Parameters
        ----------
        code : from `compile_module`, for this target
        exports : names whose addresses are wanted
        symbols : addresses of the externals that the object uses; seen by this object only. What is not among them is
            looked for in the process: LLVM itself may call memcpy, or fma where the processor has no such instruction

        Raises
        ------
        CodegenError : an external has no address or the object is damaged; the message is LLVM's
        """
        self._count += 1
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in exports:
            library.export_symbol(name)
        for name, address in (symbols or {}).items():
            library.import_symbol(name, address)
        try:
            return LoadedObject(library.link(self._jit, f"object.{self._count}"))
        except RuntimeError as error:
            raise CodegenError(f"the object code cannot be linked: {error}") from error


@lru_cache(maxsize=1)
def _host_loader() -> Loader:
    return Loader(host_target())


def load_object(code: bytes, exports: Iterable[str], symbols: Mapping[str, int] | None = None) -> LoadedObject:
    """`Loader.load` with the process's own loader."""
    return _host_loader().load(code, exports, symbols)
