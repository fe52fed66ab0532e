"""The type checker that tests run under: beartype, with Python's own idea of numbers and arrays."""

from beartype import BeartypeConf, FrozenDict, beartype
from numpy.typing import ArrayLike

# An int may stand for a float (PEP 484), and NumPy decides what is like an array: its alias refuses plain tuples.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({ArrayLike: object})))
