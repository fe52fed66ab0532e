"""The numbers of a model as figures name them: the paper's symbol, the axis, the unit."""

SYMBOLS = {"epsilon": "ε", "xi": "ξ", "rho": "ρ", "gamma": "γ", "s0": "s₀", "log_likelihood": "log-likelihood"}
UNITS = {"log_likelihood": "nats"}
AXES = ("row", "column")
VARIANCE_UNIT = "deg²"  # of parameters that come in pairs, one for each axis


def symbol(label: str) -> str:
    """The number's name: 'epsilon_row' is 'ε row'."""
    name, _, axis = label.rpartition("_")
    if axis in AXES:
        return f"{SYMBOLS.get(name, name)} {axis}"
    return SYMBOLS.get(label, label)


def words_of(label: str) -> str:
    """The number's name in words, for a heading: 'slope_momentum_amplitude' is 'slope momentum amplitude'."""
    return symbol(label).replace("_", " ").strip()


def unit(label: str) -> str:
    """The number's unit; empty if it has none."""
    return VARIANCE_UNIT if label.rpartition("_")[2] in AXES else UNITS.get(label, "")


def with_unit(label: str) -> str:
    """The number's name and unit, for an axis: 'ε row (deg²)'."""
    return f"{symbol(label)} ({unit(label)})" if unit(label) else symbol(label)
