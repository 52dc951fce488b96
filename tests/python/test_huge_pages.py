"""Huge pages for the memory of a run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")

# Prints how many bytes of memory that setting up takes are where huge pages were asked for, and how many elsewhere.
# Pages of files, such as the code of the module, are not counted.
MEASURE = """
import json, re
from weft import _core

def resident():
    sizes = {True: 0, False: 0}
    for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read(), flags=re.M)[1:]:
        kib = int(re.search(r"^Anonymous: +([0-9]+) kB", mapping, re.M)[1])
        flags = re.search(r"^VmFlags:(.*)", mapping, re.M)[1].split()
        sizes["hg" in flags] += kib * 1024
    return sizes

before = resident()
report = json.loads(_core.bench_memory(8192, "ecmp", flows=0))
after = resident()
print(json.dumps([after[True] - before[True], after[False] - before[False]]))
"""


@pytest.mark.skipif(not SWITCH.exists() or "[never]" in SWITCH.read_text(), reason="this system has no huge pages")
def test_what_a_large_fabric_takes_is_memory_for_which_huge_pages_were_asked() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    advised, others = json.loads(done.stdout)
    # Links alone take more than 5 MB; what is not Rust's own grows by a few tables of the interpreter.
    assert advised > 5_000_000
    assert others < advised / 4, (advised, others)
