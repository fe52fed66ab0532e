"""Scores as the files released with the paper have them, for `reproduce --as-released`; nothing else should use them.

In the released files

- the map before a step has the choice between the policies at the cell that might be fixated, not at the present one:
  rho(z) = sigmoid(b (s(z) / s_{t-2} - s0)) in the full model, sigmoid(b (s(z) - s0)) in Local Choice; so that
  rho(z) p_local(z) + (1 - rho(z)) p_global(z) does not sum to one;
- NSS reads that map, standardised over all cells, at the cell of the truncated position, while the saliency of a
  fixation is that of the rounded one;
- on the test side the fixations of a picture stand beside the map of the one before;
- the full model is scored from the third remaining fixation of a path, the others from the second;
- means are taken over fixations, then pictures, draws, observers and folds, without the path that has nothing to score.

No code for the AUC was released. Here it reads the same map at the same cell: against all cells (`auc`, ties one half),
and as in the paper against random cells, the steps of a fold pooled (`auc_borji`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import lax
from jaxtyping import Float, Int, PRNGKeyArray

from foveate.data.dataset import Dataset
from foveate.data.grid import PUBLISHED_PX_DEG
from foveate.data.readers.released import CENTRE_PX, SideOfFold, read_released
from foveate.errors import InputError, some_of
from foveate.evaluate.predictions import FLAT, TIE, vectors_of
from foveate.evaluate.roc import REPEATS, pooled_auc, uniform_cells
from foveate.model.catalogue import CATALOGUE
from foveate.model.choices import Choice, LogisticChoice
from foveate.model.densities import density
from foveate.model.history import Array, History, Picture
from foveate.model.kernels import total
from foveate.model.likelihood import log_normaliser
from foveate.model.model import Model
from foveate.model.packing import packed_with
from foveate.model.steps import Steps
from foveate.threads import on_all_cores

# Table 2 of Malem-Shinitski, Opper, Reich, Schwetlick, Seelig and Engbert (2020), "A mathematical model of local and
# global attention in natural scene viewing": means over test data, posterior draws and folds. It has no baseline.
PUBLISHED_TABLE_2: dict[str, dict[str, float]] = {
    "full": {"nss": 1.48, "auc": 0.843},
    "local_choice": {"nss": 1.44, "auc": 0.835},
    "fixed_choice": {"nss": 1.41, "auc": 0.838},
    "local_saliency": {"nss": 1.05, "auc": 0.804},
}


def first_scored(model: Model) -> Literal[2, 3]:
    """The first remaining fixation of a path that the released code scores: the third if the model looks two back."""
    return 3 if max(part.memory for part in (*model.policies, model.choice)) > 1 else 2


def released_training(folder: str | Path | None, fold: int, *, scored_from: Literal[2, 3] = 3) -> Dataset:
    """Training data of a fold (1 to 5) as paired in the released files, all observers, ready for a fit.

    The grid is in degrees of the released pixels, so that models with published priors fit it as they are:
    `named_model(name, priors="published")`. As released, `scored_from` is `first_scored(model)`.
    """
    folds = read_released(folder).folds
    if not isinstance(fold, int | np.integer) or not 1 <= fold <= len(folds):
        raise InputError(f"fold = {fold!r}: there are folds 1 to {len(folds)}.")
    return folds[int(fold) - 1].train.dataset(scored_from=scored_from)


# --- scores of an observer -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReleasedScores:
    """Scores of one observer's steps on the test pictures of a fold, under every draw.

    `density` is the map at the fixated cell and `density_at` that at random cells; these maps need not sum to one. With
    50 draws and 100 random cells an observer takes about 6 MB: `FoldAverages` keeps what is needed of a fold.
    """

    observer: int
    picture: Int[np.ndarray, " step"]  # that of the fixations, not that of the map beside them
    fixation: Int[np.ndarray, " step"]  # its number in the path, the dropped one counted
    nss: Float[np.ndarray, "draw step"]
    auc: Float[np.ndarray, "draw step"]
    density: Float[np.ndarray, "draw step"]
    density_at: Float[np.ndarray, "draw step repeat"]

    def mean(self, score: Literal["nss", "auc"]) -> float:
        """Mean over the fixations on each picture, then over pictures, then over draws."""
        values: Float[np.ndarray, "draw step"] = getattr(self, score)
        by_picture = [values[:, self.picture == picture].mean(axis=1) for picture in np.unique(self.picture)]
        return float(np.mean(by_picture, axis=0).mean())


def score_as_released(
    model: Model,
    draws: Float[np.ndarray, "draw number"] | Mapping[str, Array],
    test: SideOfFold,
    observer: int,
    key: PRNGKeyArray,
    *,
    repeats: int = REPEATS,
) -> ReleasedScores:
    """NSS and AUC of every draw, picture and fixation of an observer (1, 2, ...) on the test side of a fold.

    `draws` are vectors on the real line, or every parameter by name with a leading axis over the draws; a model without
    parameters has draws of shape (1, 0). `key` draws the cells that the paper's AUC compares with, one for each step
    and repeat. Paths with nothing to score are skipped.
    """
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}: give a Model, such as foveate.named_model('full').")
    vectors = vectors_of(model, draws)
    data = _of_observer(test, observer, first_scored(model)).dataset(scored_from=first_scored(model))
    steps, fixated = _released_steps(data, model.memory)
    path, step = np.nonzero(steps.real)
    places = np.concatenate([fixated[:, None], uniform_cells(len(fixated), steps.grid, key, repeats=repeats)], axis=1)
    rows, asked, filled, kept = packed_with(steps, places)
    found = on_all_cores(partial(_row, model, rows, vectors, asked), filled)
    nss, auc, read = (np.concatenate(part, axis=1)[:, kept] for part in zip(*found, strict=True))
    picture, fixation = data.paths.picture[path].astype(np.int64), data.paths.fixation[path, step + 2]
    return ReleasedScores(observer, picture, fixation, nss, auc, read[..., 0], read[..., 1:])


def _of_observer(test: SideOfFold, observer: int, fewest: int) -> SideOfFold:
    """The paths of one observer that have a fixation to score."""
    count = min(map(len, test.fixations_px))
    if not isinstance(observer, int | np.integer) or not 1 <= observer <= count:
        raise InputError(f"observer = {observer!r}: there are observers 1 to {count}.")
    own = [paths[int(observer) - 1] for paths in test.fixations_px]
    kept = [index for index, path in enumerate(own) if path.shape[1] >= fewest]
    if not kept:
        raise InputError(f"observer {observer}: no path of {fewest} fixations, so there is nothing to score.")
    return SideOfFold(
        tuple(test.pictures[index] for index in kept),
        tuple(test.map_pictures[index] for index in kept),
        tuple((own[index],) for index in kept),
        test.maps[kept],
    )


def _released_steps(data: Dataset, memory: int) -> tuple[Steps, Int[np.ndarray, " step"]]:
    """Steps from where gaze was exactly, also beyond the last half pixel, and the fixated cells by truncation."""
    steps = Steps.of(data, memory=memory)
    path, step = np.nonzero(steps.real)
    position_px = np.stack([data.paths.columns["row_px"], data.paths.columns["column_px"]], axis=-1)
    row, column = np.trunc(position_px[path, step + 2]).astype(np.int64).T
    grid = steps.grid
    if not ((row < grid.rows) & (column < grid.columns)).all():
        raise InputError(f"a fixation lies beyond the {grid.rows} x {grid.columns} cells, where no map can be read.")
    position_deg = np.array(steps.history.position_deg)
    position_deg[path, step, 0] = (position_px[path, step + 1] + CENTRE_PX) * PUBLISHED_PX_DEG
    history = replace(steps.history, position_deg=position_deg)
    return eqx.tree_at(lambda it: it.history, steps, history), row * grid.columns + column


# --- maps ------------------------------------------------------------------------------------------------------------


def _row(model: Model, rows: Steps, vectors: np.ndarray, places: np.ndarray, index: int) -> list[np.ndarray]:
    """NSS and AUC, over (draw, step), and the maps at the asked places, on one row of steps."""
    found = _scores(model, rows.paths(slice(index, index + 1)), vectors, places[index])
    return [np.asarray(values) for values in found]


@eqx.filter_jit
def _scores(
    model: Model, row: Steps, vectors: Float[Array, "draw number"], places: Int[Array, "step place"]
) -> tuple[Float[Array, "draw step"], Float[Array, "draw step"], Float[Array, "draw step place"]]:
    scene, picture = row.scene(), row.picture_of(jnp.asarray(row.picture)[0])
    history = jax.tree.map(lambda leaf: leaf[0], row.history)

    def one(_: None, vector: Array) -> tuple[None, tuple[Array, Array, Array]]:
        at = model.from_real(vector)
        shares = jax.vmap(partial(_at_candidates, at.choice), in_axes=(0, None))(history, picture)
        maps = jnp.zeros(())
        for index, policy in enumerate(at.policies):
            sums = log_normaliser(policy, row, scene)[0]
            maps += shares[:, index] * jax.vmap(partial(density, policy), in_axes=(0, None, 0))(history, picture, sums)
        # The result of a branch is stored, while of a plain expression every score would work out the cells again.
        stored = lax.cond(jnp.isfinite(vector).all(), lambda it: it, jnp.zeros_like, maps.reshape(len(places), -1))
        return None, _read(stored, places)

    # One draw after another: which way a sum over cells takes depends on the parameters, and a batch would take all.
    return lax.scan(one, None, vectors)[1]


def _at_candidates(choice: Choice, history: History, picture: Picture) -> Float[Array, "policy *cells"]:
    """Probability of each policy for every cell, as if that cell were the one that is fixated now."""
    if not isinstance(choice, LogisticChoice):  # which alone look at saliency
        return jnp.exp(choice.log_probabilities(history, picture))[:, None, None]

    def feature(saliency: Float[Array, ""]) -> Float[Array, ""]:
        saliencies = jnp.concatenate([saliency[None], history.saliency[1:]])
        return choice.feature(replace(history, saliency=saliencies), picture)

    rho = jax.nn.sigmoid(choice.b * (jax.vmap(jax.vmap(feature))(jnp.asarray(picture.saliency)) - choice.s0))
    return jnp.stack([rho, 1 - rho])


def _read(
    maps: Float[Array, "step cell"], places: Int[Array, "step place"]
) -> tuple[Float[Array, " step"], Float[Array, " step"], Float[Array, "step place"]]:
    """NSS and AUC of the first place, and the map at all places."""
    cells = maps.shape[-1]
    read = jnp.take_along_axis(maps, places, axis=-1)
    fixated, mean = read[:, 0], total(maps) / cells
    beyond = maps - mean[:, None]
    deviation = jnp.sqrt(jnp.einsum("sc,sc->s", beyond, beyond) / cells)
    flat = deviation <= FLAT * mean
    nss = jnp.where(flat, 0.0, (fixated - mean) / jnp.where(flat, 1.0, deviation))
    below = jnp.where(maps < fixated[:, None] * (1 - TIE), 0.5, 0.0)
    not_above = jnp.where(maps <= fixated[:, None] * (1 + TIE), 0.5, 0.0)
    return nss, total(below + not_above) / cells, read


# --- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FoldAverages:
    """What the table needs of a model's scores in one fold: means of each observer, and the pooled AUC."""

    nss: Float[np.ndarray, " observer"]
    auc: Float[np.ndarray, " observer"]
    auc_borji: float

    @classmethod
    def of(cls, observers: Sequence[ReleasedScores]) -> "FoldAverages":
        """From the scores of all observers in the fold, with equally many draws.

        The pooled AUC joins the first draw of every observer, the second, and so on, and is averaged over draws.
        """
        counts = {len(it.nss) for it in observers}
        if len(counts) != 1:
            raise InputError(
                f"scores with {some_of(sorted(counts)) or 'no'} draws: give one or more, all with as many."
            )
        names = [it.observer for it in observers]
        if len(set(names)) != len(names):
            raise InputError(f"observers {some_of(names, 10)}: each can be there once.")
        pooled = [
            pooled_auc(
                np.concatenate([it.density[draw] for it in observers]),
                np.concatenate([it.density_at[draw] for it in observers]),
            ).mean()
            for draw in range(counts.pop())
        ]
        nss, auc = (np.array([it.mean(score) for it in observers]) for score in ("nss", "auc"))
        return cls(nss, auc, float(np.mean(pooled)))


def table2(folds: Mapping[str, Sequence[FoldAverages]]) -> pd.DataFrame:
    """A row for every model: NSS and both AUCs, means over observers, then folds; the published ones; the differences.

    `folds` has the averages of every fold by the model's name. The paper's AUC is pooled, so that `auc_borji` comes
    nearest to it; models that are not in the paper's Table 2 have no published values.
    """
    unknown = [name for name in folds if name not in CATALOGUE]
    if unknown:
        raise InputError(f"no model {some_of(unknown)} in the catalogue; there are {some_of(list(CATALOGUE), 10)}.")
    rows: dict[str, dict[str, Any]] = {}
    for name in (name for name in CATALOGUE if name in folds):
        if not folds[name]:
            raise InputError(f"model {name!r}: no folds given; there must be one or more.")
        row: dict[str, Any] = {}
        for score, published in (("nss", "nss"), ("auc", "auc"), ("auc_borji", "auc")):
            ours = float(np.mean([np.mean(getattr(fold, score)) for fold in folds[name]]))
            theirs = PUBLISHED_TABLE_2.get(name, {}).get(published, np.nan)
            row |= {score: ours, f"{published}_published": theirs, f"{score}_difference": ours - theirs}
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
