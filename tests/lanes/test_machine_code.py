"""Object code becomes a function wherever the process has room for it."""

import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

# Free memory: single pages high up, and room for code only more than 8 GiB below them.
SCATTERED = """
import ctypes
from driftbandit.lanes import machine_code

products = "\\n".join(f"%v{i + 1} = fmul double %v{i}, 1.{i % 100}1" for i in range(2000))
text = f'''define void @rounds(i64 %a, i64 %b, i32 %c, ptr %p, ptr %q) {{
  %v0 = load double, ptr %p
  {products}
  store double %v2000, ptr %q
  ret void
}}'''
machine = machine_code.here()
code = machine_code.object_code(text, machine)
functions = [machine_code.function(code)]

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PRIVATE_ANONYMOUS_NO_RESERVE = 0x4022
reserve = lambda size: libc.mmap(None, size, 0, PRIVATE_ANONYMOUS_NO_RESERVE, -1, 0)
pages = [reserve(4096) for _ in range(4000)]
blocks = [reserve(1 << 30) for _ in range(8)]
for page in pages[::2]:
    libc.munmap(page, 4096)

functions += [machine_code.function(code) for _ in range(300)]
print("all there")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reserves memory as Linux does")
def test_code_stays_near_its_constants_in_a_scattered_memory():
    done = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True)
    assert done.stdout == "all there\n", done.stderr
