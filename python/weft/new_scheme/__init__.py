"""The files of a new scheme: what `weft new-scheme` writes, in Python or in the tree of Weft's own schemes."""

from weft.new_scheme.in_python import python_scheme
from weft.new_scheme.in_rust import rust_scheme
from weft.new_scheme.writing import Change, class_name, write

__all__ = ["Change", "class_name", "python_scheme", "rust_scheme", "write"]
