"""The contract table has a row for everything there is."""

from contracts.table import KINDS, TABLE
from foveate.model import catalogue, choices, directions, durations, factors, mechanisms, places, policies, priors
from foveate.model.factors import Modulated


def concrete(kind: type) -> set[type]:
    """All classes of the package that are of this kind and can be made."""
    return {
        part
        for module in (policies, mechanisms, factors, directions, places, choices, durations, priors)
        for part in vars(module).values()
        if isinstance(part, type) and issubclass(part, kind) and not part.__abstractmethods__
    }


def test_every_part_and_prior_has_a_row():
    everything = {part for kind in KINDS for part in concrete(kind)}
    assert len(everything) >= 26
    everything -= {Modulated}  # it has no parameters of its own; every row of a factor is one
    assert {row.part for row in TABLE if isinstance(row.part, type)} == everything


def test_every_model_of_the_catalogue_has_a_row():
    assert {row.part for row in TABLE if isinstance(row.part, str)} == set(catalogue.CATALOGUE)
    assert set(catalogue.TITLES) == set(catalogue.CATALOGUE)
