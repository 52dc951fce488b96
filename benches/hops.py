"""Run so many flows of a spec that says nothing else, or of one in a file, with any key changed; print the packet-hops.

    .venv/bin/python benches/hops.py 200 ecmp transport.name=tcp
    .venv/bin/python benches/hops.py 200 oblivious tests/fidelity/uec.toml
    .venv/bin/python benches/hops.py --schemes

By default that is web search at a load of 0.6 on 128 hosts, with DCTCP. Small and deterministic, for counting
instructions: it loads the extension module and nothing else of the package.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType


def extension() -> ModuleType:
    """The module that is installed in this environment, without what its package imports."""
    package = importlib.util.find_spec("weft")
    places = (package and package.submodule_search_locations) or []
    files = [file for place in places for file in Path(place).glob("_core*.so")]
    if len(files) != 1:
        sys.exit(
            f"the extension module is not built, or more than once: {[str(file) for file in files]}; run make build"
        )
    found = importlib.util.spec_from_file_location("weft._core", files[0])
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def main(arguments: list[str]) -> None:
    """Run, and print."""
    core = extension()
    if arguments == ["--schemes"]:
        print("\n".join(scheme["name"] for scheme in json.loads(core.catalog("schemes"))))
        return
    if len(arguments) < 2:
        sys.exit(__doc__)
    flows, scheme, *changes = arguments
    text = Path(changes.pop(0)).read_text() if changes and changes[0].endswith(".toml") else ""
    keys = [change.partition("=") for change in (f"traffic.flows={flows}", f"scheme.name={scheme}", *changes)]
    result = core.run(text, overrides=[(key, value) for key, _, value in keys], seed=1, jobs=1)
    print(json.loads(result.summary)["packet_hops"])


if __name__ == "__main__":
    main(sys.argv[1:])
