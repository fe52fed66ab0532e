// Where gaze goes next, as foveate's model package defines it: policies, choices and their mixture on a grid of cells.
// Pure functions, for the page and for Node alike. Positions are [y, x] in degrees, maps are flat, row by row.
const foveateDensities = (() => {
  "use strict";

  const COVARIANCE_RATIO = 4; // of the repelling Gaussian, as in the released code
  const REPELLED_WEIGHT = 1e-200; // of a forbidden cell
  const SMALLEST_SALIENCY = 1e-300;
  const DRAWN_FROM_MAP = 2; // fixations at the beginning of a path

  const cellSize = (grid) => [grid.height_deg / grid.rows, grid.width_deg / grid.columns];

  function cellOf(grid, position) {
    const [height, width] = cellSize(grid);
    const clip = (value, count) => Math.min(Math.max(Math.floor(value), 0), count - 1);
    return [clip(position[0] / height, grid.rows), clip(position[1] / width, grid.columns)];
  }

  const saliencyAt = (grid, saliency, position) => {
    const [row, column] = cellOf(grid, position);
    return saliency[row * grid.columns + column];
  };

  // What a model may look at after these fixations, oldest first: the last two, the most recent one first.
  function historyOf(grid, saliency, positions) {
    const count = positions.length;
    const made = count ? positions : [[grid.height_deg / 2, grid.width_deg / 2]];
    const recent = [0, 1].map((back) => made[Math.max(made.length - 1 - back, 0)]);
    return { position: recent, saliency: recent.map((it) => saliencyAt(grid, saliency, it)), count };
  }

  const centres = (count, size) => Float64Array.from({ length: count }, (_, index) => (index + 0.5) * size);

  // --- Gaussians: a factor for every row and one for every column -----------------------------------------------

  // Density times the side of a cell, so that the product of both axes is a mass per cell.
  function gaussianAxis(cells, centre, variance, size) {
    const scale = size / Math.sqrt(2 * Math.PI * variance);
    const rate = -0.5 / variance;
    return cells.map((at) => scale * Math.exp(rate * ((at - centre) * (at - centre))));
  }

  // Logarithm relative to the cell nearest to the centre: never above zero.
  function logGaussianAxis(cells, nearest, centre, variance) {
    const rate = -0.5 / variance;
    return cells.map((at) => rate * Math.max((at - nearest) * (at + nearest - 2 * centre), 0));
  }

  function axes(grid, make) {
    const size = cellSize(grid);
    return [grid.rows, grid.columns].map((count, axis) => make(centres(count, size[axis]), axis, size[axis]));
  }

  const gaussian = (grid, centre, variances) =>
    axes(grid, (cells, axis, size) => gaussianAxis(cells, centre[axis], variances[axis], size));

  function logGaussian(grid, centre, variances) {
    const near = cellOf(grid, centre);
    return axes(grid, (cells, axis) => logGaussianAxis(cells, cells[near[axis]], centre[axis], variances[axis]));
  }

  const overCells = (grid, value) => {
    const found = new Float64Array(grid.rows * grid.columns);
    for (let row = 0, cell = 0; row < grid.rows; row++)
      for (let column = 0; column < grid.columns; column++, cell++) found[cell] = value(row, column, cell);
    return found;
  };

  const logOf = (saliency) => (saliency > 0 ? Math.log(saliency) : -Infinity);

  function repelled(grid, wide, narrow, saliency, divisor) {
    return overCells(grid, (row, column, cell) => {
      const difference = wide[0][row] * wide[1][column] - (narrow[0][row] * narrow[1][column]) / divisor(cell);
      return logOf(saliency[cell]) + Math.log(Math.max(difference, REPELLED_WEIGHT));
    });
  }

  // --- policies: the logarithm of every cell's weight -------------------------------------------------------------

  const LOG_WEIGHTS = {
    StaticSaliency: (policy, history, saliency, grid) => overCells(grid, (row, column, cell) => logOf(saliency[cell])),
    Local: (policy, history, saliency, grid) => {
      const [rows, columns] = logGaussian(grid, history.position[0], policy.epsilon);
      return overCells(grid, (row, column) => rows[row] + columns[column]);
    },
    Global: (policy, history, saliency, grid) => {
      const [rows, columns] = logGaussian(grid, history.position[0], policy.xi);
      return overCells(grid, (row, column, cell) => logOf(saliency[cell]) + (rows[row] + columns[column]));
    },
    RepelledGlobal: (policy, history, saliency, grid) => {
      const wide = gaussian(grid, history.position[0], policy.xi);
      const quarter = policy.epsilon.map((it) => it / COVARIANCE_RATIO);
      return repelled(grid, wide, gaussian(grid, history.position[0], quarter), saliency, () => 1);
    },
    PrintedRepelledGlobal: (policy, history, saliency, grid) => {
      const wide = gaussian(grid, history.position[0], policy.xi);
      const narrow = gaussian(grid, history.position[0], policy.epsilon);
      const cells = grid.rows * grid.columns;
      return repelled(grid, wide, narrow, saliency, (cell) => (saliency[cell] > 0 ? saliency[cell] : 1) * cells);
    },
  };

  function normalised(logWeights) {
    let most = -Infinity;
    for (const it of logWeights) if (it > most) most = it;
    let sum = 0;
    for (const it of logWeights) sum += Math.exp(it - most);
    const whole = Math.log(sum);
    return logWeights.map((it) => it - most - whole);
  }

  const knowsPolicy = (policy) => Object.hasOwn(LOG_WEIGHTS, policy.class);

  // Of every policy of a model by itself; null for one that is not known here.
  const policyLogDensities = (model, history, saliency, grid) =>
    model.policies.map((policy) =>
      knowsPolicy(policy) ? normalised(LOG_WEIGHTS[policy.class](policy, history, saliency, grid)) : null,
    );

  // --- choices: the logarithm of every policy's probability -------------------------------------------------------

  const logSigmoid = (f) => (f >= 0 ? -Math.log1p(Math.exp(-f)) : f - Math.log1p(Math.exp(f)));
  const logistic = (choice, feature) => {
    const f = choice.b * (feature - choice.s0);
    return [logSigmoid(f), logSigmoid(-f)];
  };

  const CHOICES = {
    OnlyPolicy: () => [0],
    FixedChoice: (choice) => [Math.log(choice.rho), Math.log1p(-choice.rho)],
    SaliencyRatioChoice: (choice, history) =>
      logistic(choice, history.saliency[0] / Math.max(history.saliency[1], SMALLEST_SALIENCY)),
    SaliencyLevelChoice: (choice, history, grid) =>
      logistic(choice, grid.rows * grid.columns * history.saliency[0]),
  };

  const knowsChoice = (choice) => Object.hasOwn(CHOICES, choice.class);

  const choiceLogProbabilities = (choice, history, grid) =>
    knowsChoice(choice) ? CHOICES[choice.class](choice, history, grid) : null;

  // --- the model --------------------------------------------------------------------------------------------------

  const knowsModel = (model) => model.policies.every(knowsPolicy) && knowsChoice(model.choice);

  // Of every cell being fixated next; null where a part of the model is not known here.
  function logDensity(model, history, saliency, grid) {
    if (history.count < DRAWN_FROM_MAP) return normalised(saliency.map(logOf));
    if (!knowsModel(model)) return null;
    const densities = policyLogDensities(model, history, saliency, grid);
    if (densities.length === 1) return densities[0];
    const chosen = choiceLogProbabilities(model.choice, history, grid);
    return overCells(grid, (row, column, cell) => {
      const terms = densities.map((it, index) => chosen[index] + it[cell]);
      const most = Math.max(...terms);
      if (most === -Infinity) return most;
      return most + Math.log(terms.reduce((sum, it) => sum + Math.exp(it - most), 0));
    });
  }

  // The described model with these values for its parameters: fields of one name are one parameter.
  function withParameters(description, values) {
    const filled = (part) =>
      Object.fromEntries(Object.entries(part).map(([name, value]) => [name, Object.hasOwn(values, name) ? values[name] : value]));
    return { policies: description.policies.map(filled), choice: filled(description.choice) };
  }

  return {
    DRAWN_FROM_MAP, cellOf, historyOf, policyLogDensities, choiceLogProbabilities, logDensity, withParameters,
    knowsPolicy, knowsChoice, knowsModel,
  };
})();

if (typeof module !== "undefined") module.exports = foveateDensities;
