"""Stage 6, on a GPU: NVIDIA's compiler and driver, called through ctypes.

CUDA C --NVRTC--> machine code --driver--> a function on the device --> launches

Kernels run in the process's primary context, which is JAX's too, on one stream of our own and in
memory of our own, so that JAX never sees what they change. All copies use the same stream: what is
asked for later happens later.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandit.lanes.graph import Unsupported

FOLDERS = ("/usr/local/cuda*/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/wsl/lib")
MOST_SHARED_BYTES = 8  # an attribute of a function, as the driver counts them
COMPUTE_MAJOR, COMPUTE_MINOR = 75, 76  # of a device


def _library(name: str, versions: Sequence[int]) -> ctypes.CDLL:
    """A library from the loader's path, the nvidia-* wheels or CUDA's folders."""
    files = [f"{name}.{version}" for version in versions]
    folders = [os.path.join(path, "nvidia", "*", "lib") for path in sys.path] + list(FOLDERS)
    found = [path for folder in folders for f in files for path in glob.glob(f"{folder}/{f}")]
    for path in (*files, *found):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise Unsupported(f"{name} is missing: lanes on a GPU need NVIDIA's driver and NVRTC")


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    return _library("libnvrtc.so", (13, 12))


@functools.cache
def _driver() -> tuple[ctypes.CDLL, ctypes.c_void_p, ctypes.c_void_p]:
    """The library, the primary context and our stream of the first device."""
    cuda, context, stream = _library("libcuda.so", (1,)), ctypes.c_void_p(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        raise Unsupported("NVIDIA's driver has no device")
    _checked(cuda.cuCtxSetCurrent(context))
    _checked(cuda.cuStreamCreate(ctypes.byref(stream), 1))  # 1: does not wait for other streams
    return cuda, context, stream


def _checked(status: int) -> None:
    if status:
        raise RuntimeError(f"NVIDIA's libraries answered with error {status}")


def _call(name: str, *arguments: Any) -> None:
    """A function of the driver, in our context: every thread has a current one of its own."""
    cuda, context, _ = _driver()
    _checked(cuda.cuCtxSetCurrent(context))
    _checked(getattr(cuda, name)(*arguments))


def architecture() -> str:
    """What the compiler calls the device, sm_90 for example."""
    number = ctypes.c_int()
    found = []
    for which in (COMPUTE_MAJOR, COMPUTE_MINOR):
        _call("cuDeviceGetAttribute", ctypes.byref(number), which, 0)
        found.append(str(number.value))
    return "sm_" + "".join(found)


def machine_code(text: str, target: str) -> bytes:
    """Compile CUDA C for an `architecture`; the bytes may be kept on disk."""
    nvrtc, program, size = _nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    options = [o.encode() for o in (f"-arch={target}", "--std=c++17", "--fmad=false", "-w")]
    _checked(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), None, 0, None, None))
    try:
        table = (ctypes.c_char_p * len(options))(*options)
        failed = nvrtc.nvrtcCompileProgram(program, len(options), table)
        kind = "ProgramLog" if failed else "CUBIN"
        _checked(getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
        found = ctypes.create_string_buffer(size.value)
        _checked(getattr(nvrtc, f"nvrtcGet{kind}")(program, found))
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise Unsupported(f"NVRTC refused a kernel: {found.value.decode()}")
    return found.raw


class Launchable:
    """Machine code on the device."""

    def __init__(self, code: bytes) -> None:
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        _call("cuModuleLoadData", ctypes.byref(self._module), code)
        _call("cuModuleGetFunction", ctypes.byref(self._function), self._module, b"rounds")

    def __call__(self, blocks: int, threads: int, arguments: Sequence[Any], near: int = 0) -> None:
        """Start it: numbers, buffers and bytes in, ``near`` bytes of shared memory."""
        held = [_argument(x) for x in arguments]
        table = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
        shape = blocks, 1, 1, threads, 1, 1
        _call("cuFuncSetAttribute", self._function, MOST_SHARED_BYTES, near)
        _call("cuLaunchKernel", self._function, *shape, near, _driver()[2], table, None)


def _argument(x: Any) -> Any:
    if isinstance(x, bytes):
        return ctypes.create_string_buffer(x, len(x))
    return ctypes.c_uint64(x.address) if isinstance(x, Buffer) else ctypes.c_int(x)


class Buffer:
    """Memory of the device, given back when nothing refers to it."""

    address = 0
    source: np.ndarray | None = None

    def __init__(self, size: int) -> None:
        cuda, context, _ = _driver()
        _checked(cuda.cuCtxSetCurrent(context))
        found = ctypes.c_uint64()
        if cuda.cuMemAlloc_v2(ctypes.byref(found), ctypes.c_size_t(max(1, size))):
            raise MemoryError(f"the GPU has no {size / 1e9:.1f} GB left")
        self.address = found.value

    def __del__(self) -> None:
        if self.address:
            cuda, context, _ = _driver()
            cuda.cuCtxSetCurrent(context)
            cuda.cuMemFree_v2(ctypes.c_uint64(self.address))  # waits for the kernels that use it

    def numbers(self, first: int, count: int, dtype: Any) -> np.ndarray:
        """So many numbers from number ``first`` on, once everything started is done."""
        found = np.empty(count, dtype)
        start = ctypes.c_uint64(self.address + first * found.itemsize)
        to, size = ctypes.c_void_p(found.ctypes.data), ctypes.c_size_t(found.nbytes)
        _call("cuMemcpyDtoHAsync_v2", to, start, size, _driver()[2])
        wait()
        return found


def uploaded(array: np.ndarray) -> Buffer:
    """A copy of an array on the device."""
    array = np.ascontiguousarray(array)
    buffer = Buffer(array.nbytes)
    to, size = ctypes.c_uint64(buffer.address), ctypes.c_size_t(array.nbytes)
    _call("cuMemcpyHtoDAsync_v2", to, ctypes.c_void_p(array.ctypes.data), size, _driver()[2])
    buffer.source = array  # must stay until it is copied, and freeing waits for that
    return buffer


def free_bytes() -> int:
    """Memory that nobody has taken."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def wait() -> None:
    """Until everything that was started is done."""
    _call("cuStreamSynchronize", _driver()[2])
