"""Another load balancer in the place of a paper's own: figures show it there, and claims are judged of it.

What a paper says of its scheme is a list of what is worth showing of any. The others, the set-ups and their scenarios
stay what they are, and so do variants that are the paper's scheme with other parameters.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.errors import SpecError
from weft.papers.declared import Experiment, Paper
from weft.variant import parse_variants

__all__ = ["slug_of", "with_substitute"]


def slug_of(scheme: str) -> str:
    """Return a load balancer as the name of a file; raises `SpecError` for what is none."""
    (variant,) = parse_variants([scheme])
    return variant.slug


def with_substitute(paper: Paper, scheme: str) -> Paper:
    """Return the paper with a load balancer, such as `my.py:Least`, in the place of its own.

    Raises `SpecError` for what is none, and for a paper whose own is no load balancer.
    """
    (variant,) = parse_variants([scheme])
    if set(variant.parts) != {"scheme"}:
        raise SpecError(f"{scheme}: only a load balancer can stand in for that of a paper")
    own = {
        key for one in paper.experiments.values() for key, settings in one.variants.items() if _is_own(settings, paper)
    }
    if not own:
        raise SpecError(f"{paper.name}: has no load balancer of its own that {variant.label} could stand in for")
    experiments = {name: _experiment(one, paper, variant.parts) for name, one in paper.experiments.items()}
    labels = {**paper.labels, **dict.fromkeys(own, variant.label)}
    return replace(paper, experiments=experiments, labels=labels, substitute=variant.label)


def _experiment(one: Experiment, paper: Paper, parts: Mapping[str, Any]) -> Experiment:
    variants = {key: parts if _is_own(own, paper) else own for key, own in one.variants.items()}
    quick, linux = (None if scale is None else _experiment(scale, paper, parts) for scale in (one.quick, one.linux))
    return replace(one, variants=variants, quick=quick, linux=linux)


def _is_own(settings: Mapping[str, Any], paper: Paper) -> bool:
    """Whether a variant is the paper's scheme as it is by default, and nothing else."""
    return dict(settings) in ({"scheme": paper.name}, {"scheme.name": paper.name})
