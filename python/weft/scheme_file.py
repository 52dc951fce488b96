"""Load balancers in files: `my.py:Least:gap=3us` is the class `Least` of `my.py`, with its parameters.

The core reads the file, and its content is part of the spec's hash: a file that was changed is another load balancer,
and the same content is the same one, wherever it stands. So a scheme is one file. It is executed anew for each run:
runs share no state, even when they are done side by side.
"""

import ast
import inspect
import itertools
import json
import numbers
import sys
import types
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from weft.errors import SchemeError, SpecError
from weft.scheme import QUANTITIES, AnyScheme, Scheme

__all__ = ["checked_parameters", "in_its_file", "load_scheme"]

_MODULE = "weft_scheme_"
"""Prefix of the modules of schemes, with a number behind it."""

_numbers = itertools.count()

_Place: TypeAlias = tuple[str, int | None]
"""A file and a line in it, if that is known."""


def load_scheme(source: str, file: str, class_name: str, parameters: str) -> AnyScheme:
    """Execute a file and make the load balancer; `parameters` are a JSON object.

    Raises `SchemeError` for a mistake in the file, and `SpecError` for a class or a parameter that it does not have.
    """
    module = _execute(source, file)
    scheme = _class(module, file, class_name)
    given = _given(scheme, json.loads(parameters), f"{_shown(file)}:{class_name}", "scheme.")
    try:
        made: AnyScheme = scheme.having(**given) if issubclass(scheme, Scheme) else scheme(**given)
    except (Exception, SystemExit) as error:
        raise in_its_file(error, error.__traceback__, scheme) from error
    return made


def checked_parameters(scheme: type[Scheme], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a program gives to a scheme, each of the type that the class asks for."""
    return _given(scheme, parameters, scheme.__name__.partition(":")[0])


def in_its_file(error: BaseException, trace: TracebackType | None, method: Any) -> BaseException:
    """Return the error that tells where in a scheme's file an exception was raised.

    What was raised elsewhere, about an answer of `method`, is told at the line of the method. What ends a program from
    outside, such as Ctrl-C, stays as it is.
    """
    if isinstance(error, SpecError) or not isinstance(error, Exception | SystemExit):
        return error
    place = _place_of(trace)
    said = _said(error)
    if place is None:
        place, said = _place_of_method(method), str(error)
    told = _error(place, said)
    told.__cause__ = error
    return told


def _said(error: BaseException) -> str:
    """Return what an exception says, in one line."""
    if isinstance(error, SystemExit):
        return f"sys.exit({'' if error.code is None else repr(error.code)}): a load balancer cannot end the program"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _execute(source: str, file: str) -> types.ModuleType:
    """Execute a file as a module of its own."""
    module = types.ModuleType(f"{_MODULE}{next(_numbers)}")
    module.__file__ = file
    try:
        _refuse_neighbours(ast.parse(source, file), file)
        code = compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _error((file, getattr(error, "lineno", None)), f"{type(error).__name__}: {error.args[0]}") from None
    sys.modules[module.__name__] = module  # dataclasses ask for it
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        place = _place_of(error.__traceback__) or (file, None)
        raise _error(place, _said(error)) from error
    finally:
        del sys.modules[module.__name__]
    return module


def _refuse_neighbours(tree: ast.Module, file: str) -> None:
    """Refuse to import what stands beside the file: the store would not notice that it was changed."""
    folder = Path(file).parent
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [one.name for one in names]
            case ast.ImportFrom(module=name, level=level):
                modules = ["." if level else name or ""]
            case _:
                continue
        for name in modules:
            beside = folder / name.partition(".")[0]
            if name == "." or beside.with_suffix(".py").is_file() or (beside / "__init__.py").is_file():
                said = f"{ast.unparse(node)}: a scheme is one file, since its runs are kept by what the file holds"
                raise _error((file, node.lineno), said)


def _class(module: types.ModuleType, file: str, name: str) -> Any:
    """Find the class in its module."""
    found = getattr(module, name, None)
    if _balances(found):
        return found
    able = [key for key, one in vars(module).items() if _balances(one) and one.__module__ == module.__name__]
    near = get_close_matches(name, able, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    there = f"load balancers in it: {', '.join(able)}" if able else "no class in it has a method choose"
    missing = "is no load balancer: it has no method choose" if found is not None else "is not there"
    raise _refused(f"{_shown(file)}: {name!r} {missing}{hint} ({there})", "scheme.class", name, able, near)


def _balances(found: Any) -> bool:
    """Whether this is a class that chooses, or makes what does."""
    if isinstance(found, type) and issubclass(found, Scheme):
        return not inspect.isabstract(found)
    return isinstance(found, type) and any(callable(getattr(found, name, None)) for name in ("choose", "at"))


def _given(scheme: Any, parameters: Mapping[str, Any], called: str, table: str = "") -> dict[str, Any]:
    """Return the keyword arguments, each of the type that the class asks for.

    `table` is what stands before a key in a spec; without it, a program gave them.
    """
    own = list(inspect.signature(scheme).parameters.values())
    if issubclass(scheme, Scheme):
        own = own[1:]  # the switch
    named = {one.name: one for one in own if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    takes_all = any(one.kind is one.VAR_KEYWORD for one in own)
    for key in parameters:
        if key not in named and not takes_all:
            near = get_close_matches(key, named, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            allowed = ", ".join(named) or "none"
            said = f"{table}{key} is no parameter of {called}; allowed: {allowed}{hint}"
            raise _refused(said, f"{table}{key}", key, list(named), near)
    for key, one in named.items():
        if one.default is one.empty and key not in parameters:
            raise _refused(f"{table}{key} is missing: {called} needs it", f"{table}{key}", None, [], [])
    hints = _hints(scheme)
    return {
        key: _converted(f"{table}{key}", value, hints.get(key), called, is_written=bool(table))
        for key, value in parameters.items()
    }


def _hints(scheme: Any) -> dict[str, Any]:
    """Return the annotations of the parameters, as far as they mean something."""
    init = scheme.__init__
    try:
        return inspect.get_annotations(inspect.unwrap(init), eval_str=True)
    except (NameError, SyntaxError, TypeError, AttributeError):
        return {}


def _converted(key: str, value: Any, wanted: Any, called: str, *, is_written: bool) -> Any:
    """Return a value as one of the type that is wanted; types that Weft does not know take it as it is."""
    where = f"{key} = {json.dumps(value, default=repr)}: {called} wants"
    if wanted in QUANTITIES:
        if not is_written and isinstance(value, numbers.Integral) and not isinstance(value, bool):
            return wanted(int(value))  # of base units, as everywhere in Python
        try:
            return wanted(str(value))  # a bare number would leave open of what
        except SpecError as error:
            raise _refused(f"{key}: {error}", key, value, [], []) from None
    kinds: dict[Any, tuple[str, Callable[[Any], bool]]] = {
        bool: ("true or false", lambda one: isinstance(one, bool)),
        int: ("a whole number", lambda one: isinstance(one, numbers.Integral) and not isinstance(one, bool)),
        float: ("a number", lambda one: isinstance(one, numbers.Real) and not isinstance(one, bool)),
        str: ("a text", lambda one: isinstance(one, str)),
    }
    if wanted in kinds:
        said, fits = kinds[wanted]
        if not fits(value):
            raise _refused(f"{where} {said}", key, value, [], [])
        return wanted(value)
    return value


def _refused(said: str, path: str, found: Any, allowed: list[str], near: list[str]) -> SpecError:
    """Return an error with the parts of one of the core."""
    error = SpecError(said)
    error.path, error.found = path, None if found is None else str(found)
    error.allowed, error.nearest = ", ".join(allowed) or None, near[0] if near else None
    return error


def _error(place: _Place, said: str) -> SchemeError:
    """Return an error at a place."""
    file, line = place
    shown = _shown(file) if line is None else f"{_shown(file)}:{line}"
    error = SchemeError(f"{shown}: {said}")
    error.origin, error.line = file, line
    return error


def _place_of(trace: TracebackType | None) -> _Place | None:
    """Return the file and the last line of a scheme on the way to where an exception was raised."""
    place: _Place | None = None
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_MODULE):
            place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return place


def _place_of_method(method: Any) -> _Place:
    """Return the file and the first line of a method."""
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if isinstance(code, types.CodeType) else ("the load balancer", None)


def _shown(file: str) -> str:
    """Return a file's name as a user of this folder writes it."""
    path = Path(file)
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
