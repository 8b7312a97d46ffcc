"""Stage 6, on a CPU: from LLVM's text to a function that can be called, kept on disk in between.

text --LLVM--> object code --> address of a function
                    |
             folder of programs: <hash of text, CPU and LLVM>.o
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from typing import Any, NamedTuple

import llvmlite
from llvmlite import binding as llvm

from driftbandit import program_cache

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


def function(text: str, machine: Machine) -> tuple[Any, Any]:
    """The function ``rounds`` of a module, and the engine that must outlive it."""
    here()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=3, codemodel="small", reloc="pic"
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(_kept(text, machine, target)))
    engine.finalize_object()
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, integer, integer, ctypes.c_uint32, pointer, pointer)
    return kind(engine.get_function_address("rounds")), engine


def _kept(text: str, machine: Machine, target: Any) -> bytes:
    """Object code, from the folder of programs if it is there."""
    parts = (text, *machine, llvmlite.__version__)
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    return program_cache.kept(f"lanes-{name}.o", lambda: _compiled(text, target))


def _compiled(text: str, target: Any) -> bytes:
    module = llvm.parse_assembly(text)
    # Numbers are vectors already: looking for more to vectorize takes most of LLVM's time.
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.slp_vectorization = options.loop_vectorization = options.loop_interleaving = False
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return target.emit_object(module)
