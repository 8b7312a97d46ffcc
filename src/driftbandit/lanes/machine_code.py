"""Stage 6, on a CPU: from LLVM's text to a function that can be called, kept on disk in between.

text --LLVM--> object code --> address of a function
                    |
             folder of programs: <hash of text, CPU and LLVM>.o
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
from llvmlite import binding as llvm

from driftbandit import program_cache
from driftbandit.lanes.graph import Unsupported

VECTOR = {"avx512f": 64, "avx": 32}
"""Bytes of a vector register by the feature that brings it; 16 otherwise."""


class Machine(NamedTuple):
    """A kind of CPU; by default this one."""

    cpu: str
    features: str

    @property
    def vector_bytes(self) -> int:
        """The width of a vector register."""
        has = self.features.split(",")
        return next((size for name, size in VECTOR.items() if f"+{name}" in has), 16)


@functools.cache
def here() -> Machine:
    """The CPU that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Machine(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def _target(machine: Machine) -> Any:
    here()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=3, codemodel="small", reloc="pic"
    )


def object_code(text: str, machine: Machine) -> bytes:
    """LLVM's work on the text of a module."""
    target, module = _target(machine), llvm.parse_assembly(text)
    # Numbers are vectors already: looking for more to vectorize takes most of LLVM's time.
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.slp_vectorization = options.loop_vectorization = options.loop_interleaving = False
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return target.emit_object(module)


def function(code: bytes) -> tuple[Any, Any]:
    """The function ``rounds`` of object code, and the library that must outlive it."""
    here()
    # LLVM's older linker asks for the memory of code and of constants separately. They reach each
    # other by 32-bit distances, so it ends the process when they happen to be 2 GiB apart.
    linker = llvm.create_lljit_compiler(use_jit_link=True)
    parts = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("rounds")
    try:
        library = parts.link(linker, "program")
    except RuntimeError as error:  # a system whose object code LLVM's linker does not know
        raise Unsupported(f"linking failed ({error})") from None
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, integer, integer, ctypes.c_uint32, pointer, pointer)
    return kind(library["rounds"]), (library, linker)


@functools.cache
def _compiler() -> str:
    """Changes with LLVM's version and with every line of this package."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    found = hashlib.sha256(llvmlite.__version__.encode())
    for source in sources:
        found.update(source.read_bytes())
    return found.hexdigest()


def kept(description: str, machine: Machine, make: Callable[[], bytes]) -> bytes:
    """Object code from the folder of programs; made, if this description is not there."""
    parts = description, *machine, _compiler()
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    return program_cache.kept(f"lanes-{name}.o", make)
