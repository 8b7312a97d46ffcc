"""A stand-in for a GPU: kernels are compiled as C++ and play one thread after the other.

It has the functions of `driftbandit.lanes.gpu`. What it cannot show is how threads of a block work
together: every block has a single thread here.
"""

import ctypes
import itertools
import shutil
import subprocess

import numpy as np

COMPILER = shutil.which("c++")
MEMORY = 1 << 24  # bytes that it says are free
HEAD = r"""
#include <cmath>
#include <cstring>
#include <algorithm>
#undef INFINITY
#undef NAN
using std::min;
static inline long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
static inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
#define __global__
#define __grid_constant__
#define __constant__ static
#define __shared__ static
#define __launch_bounds__(...)
#define __syncthreads()
static struct { int x; } threadIdx, blockIdx, blockDim;
"""


class Machine:
    """The functions of `lanes.gpu`, with a folder for what the compiler writes."""

    def __init__(self, folder):
        self.folder, self._count = folder, itertools.count()

    def architecture(self):
        return "c++"

    def free_bytes(self):
        return MEMORY

    def wait(self):
        pass

    def uploaded(self, array):
        return Buffer(array.nbytes, np.frombuffer(array.tobytes(), np.uint8).copy())

    def Buffer(self, size):
        return Buffer(size, np.full(size, 255, np.uint8))

    def machine_code(self, text, architecture):
        for kind in ("double", "float"):
            text = text.replace(f"extern __shared__ {kind} near[];", f"static {kind} near[4096];")
        text = text.replace('asm volatile("" : "+r"(i))', "")
        given = text.split("rounds(")[1].split(") {")[0]
        names = [one.split()[-1].lstrip("*") for one in given.split(",")]
        call = ", ".join("*same_" if name == "same" else name for name in names)
        given = given.replace("const __grid_constant__ Same same", "const Same* same_")
        loop = f"for (int b = 0; b < R; b++) {{ blockIdx.x = b; rounds({call}); }}"
        text += f'\nextern "C" void play({given}) {{ blockDim.x = 1; {loop} }}\n'
        name = f"{self.folder}/kernel{next(self._count)}"
        with open(f"{name}.cpp", "w") as file:
            file.write(HEAD + text)
        options = ["-O1", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
        subprocess.run([COMPILER, *options, f"{name}.cpp", "-o", f"{name}.so"], check=True)
        return f"{name}.so".encode()

    def Launchable(self, code):
        play = ctypes.CDLL(code.decode()).play

        def launch(blocks, threads, arguments, near=0):
            assert blocks * threads >= arguments[0]
            play(*map(_argument, arguments))

        return launch


def _argument(x):
    if isinstance(x, bytes):
        return ctypes.create_string_buffer(x, len(x))
    return ctypes.c_void_p(x.content.ctypes.data) if isinstance(x, Buffer) else ctypes.c_int(x)


class Buffer:
    def __init__(self, size, content):
        self.content = content

    def numbers(self, first, count, dtype):
        return self.content.view(dtype)[first : first + count].copy()
