// The parts that models are made of, as foveate's model package defines them: the weights of policies, the factors on
// them, and the choice among policies. Pure functions, for the page and for Node alike.
// A grid is {rows, columns, height_deg, width_deg, up}; `up` says whether y grows upwards as a viewer sees the picture.
const foveateParts = (() => {
  "use strict";

  const COVARIANCE_RATIO = 4; // of the repelling Gaussian, as in the released code
  const REPELLED_WEIGHT = 1e-200; // of a forbidden cell
  const SMALLEST_SALIENCY = 1e-300;
  const NEAR_DEG = 0.25; // within which directions fade
  // The harmonics of a narrow peak at one direction, as factors.py has them.
  const PEAK = [
    0.2566035795352941, 0.2252592286826766, 0.18151716997440195, 0.13450064369547562, 0.09185007417741818,
    0.05795891521429381, 0.03389115896312437, 0.018419229757315376,
  ];
  const LEAST_RELATIVE_SALIENCY = 1e-6;
  const SMALL_AMPLITUDE_DEG = 0.3;
  const DURATIONS_S = [0.05, 2]; // outside, a duration counts as the nearer of the two

  // --- cells --------------------------------------------------------------------------------------------------------

  const cellSize = (grid) => [grid.height_deg / grid.rows, grid.width_deg / grid.columns];

  const centres = (count, size) => Float64Array.from({ length: count }, (_, index) => (index + 0.5) * size);

  function cellOf(grid, position) {
    const [height, width] = cellSize(grid);
    const clip = (value, count) => Math.min(Math.max(Math.floor(value), 0), count - 1);
    return [clip(position[0] / height, grid.rows), clip(position[1] / width, grid.columns)];
  }

  const overCells = (grid, value) => {
    const found = new Float64Array(grid.rows * grid.columns);
    for (let row = 0, cell = 0; row < grid.rows; row++)
      for (let column = 0; column < grid.columns; column++, cell++) found[cell] = value(row, column, cell);
    return found;
  };

  // Something for every row and for every column, made of their centres.
  function axes(grid, make) {
    const size = cellSize(grid);
    return [grid.rows, grid.columns].map((count, axis) => make(centres(count, size[axis]), axis, size[axis]));
  }

  const logOf = (saliency) => (saliency > 0 ? Math.log(saliency) : -Infinity);

  // --- Gaussians: a factor for every row and one for every column ---------------------------------------------------

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

  const gaussian = (grid, centre, variances) =>
    axes(grid, (cells, axis, size) => gaussianAxis(cells, centre[axis], variances[axis], size));

  const bothAxes = (variances) => (Array.isArray(variances) ? variances : [variances, variances]);

  function logGaussian(grid, centre, given) {
    const variances = bothAxes(given);
    const near = cellOf(grid, centre);
    return axes(grid, (cells, axis) => logGaussianAxis(cells, cells[near[axis]], centre[axis], variances[axis]));
  }

  // --- policies: the logarithm of every cell's weight ---------------------------------------------------------------

  function repelled(grid, wide, narrow, saliency, divisor) {
    return overCells(grid, (row, column, cell) => {
      const difference = wide[0][row] * wide[1][column] - (narrow[0][row] * narrow[1][column]) / divisor(cell);
      return logOf(saliency[cell]) + Math.log(Math.max(difference, REPELLED_WEIGHT));
    });
  }

  // s(z)^exponent n(z; centre, variances); a cell without saliency has no weight, whatever the exponent.
  function salient(grid, saliency, exponent, centre, variances, tail = (it) => it) {
    const [rows, columns] = logGaussian(grid, centre, variances);
    return overCells(grid, (row, column, cell) =>
      saliency[cell] > 0 ? exponent * Math.log(saliency[cell]) + tail(rows[row] + columns[column]) : -Infinity,
    );
  }

  function nearby(grid, centre, variances) {
    const [rows, columns] = logGaussian(grid, centre, variances);
    return overCells(grid, (row, column) => rows[row] + columns[column]);
  }

  const lastSaccade = (history) => [0, 1].map((axis) => history.position[0][axis] - history.position[1][axis]);

  const LOG_WEIGHTS = {
    StaticSaliency: (policy, history, saliency, grid) => overCells(grid, (row, column, cell) => logOf(saliency[cell])),
    Local: (policy, history, saliency, grid) => nearby(grid, history.position[0], policy.epsilon),
    Global: (policy, history, saliency, grid) => salient(grid, saliency, 1, history.position[0], policy.xi),
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
    SalientLocal: (policy, history, saliency, grid) =>
      salient(grid, saliency, policy.alpha, history.position[0], policy.epsilon),
    SalientGlobal: (policy, history, saliency, grid) =>
      salient(grid, saliency, policy.alpha, history.position[0], policy.xi),
    HeavyTailedGlobal: (policy, history, saliency, grid) => {
      const [y, x] = history.position[0];
      const [rows, columns] = axes(grid, (cells, axis) => cells.map((at) => (at - [y, x][axis]) ** 2 / bothAxes(policy.xi)[axis]));
      return overCells(grid, (row, column, cell) => {
        const tail = (-(policy.nu + 2) / 2) * Math.log1p((rows[row] + columns[column]) / policy.nu);
        return saliency[cell] > 0 ? policy.alpha * Math.log(saliency[cell]) + tail : -Infinity;
      });
    },
    Momentum: (policy, history, saliency, grid) => {
      const ahead = lastSaccade(history).map((it, axis) => history.position[0][axis] + policy.kappa * it);
      return salient(grid, saliency, policy.alpha, ahead, policy.zeta);
    },
    Return: (policy, history, saliency, grid) =>
      salient(grid, saliency, policy.alpha, history.position[1], policy.eta),
    CentreBias: (policy, history, saliency, grid) =>
      nearby(grid, [grid.height_deg / 2, grid.width_deg / 2], policy.tau),
    Uniform: (policy, history, saliency, grid) => overCells(grid, () => 0),
    Modulated: (policy, history, saliency, grid) => {
      const found = LOG_WEIGHTS[policy.policy.class](policy.policy, history, saliency, grid);
      for (const factor of policy.factors)
        LOG_FACTORS[factor.class](factor, history, saliency, grid).forEach((it, cell) => (found[cell] += it));
      return found;
    },
  };

  // --- factors: the logarithm of what multiplies every cell's weight ------------------------------------------------

  // Sine and cosine of a direction as a viewer sees it; both fade close to the gaze.
  function direction(grid, y, x) {
    const up = grid.up ? y : -y;
    const length = Math.sqrt(up * up + x * x + NEAR_DEG ** 2);
    return [up / length, x / length];
  }

  function overDirections(grid, gaze, value) {
    const [y, x] = axes(grid, (cells, axis) => cells.map((at) => at - gaze[axis]));
    return overCells(grid, (row, column) => value(...direction(grid, y[row], x[column])));
  }

  // Powers of a cosine and i times a sine, up to the eighth.
  function harmonics(cosine, sine) {
    const powers = [[cosine, sine]];
    while (powers.length < PEAK.length) {
      const [x, y] = powers[powers.length - 1];
      powers.push([x * cosine - y * sine, x * sine + y * cosine]);
    }
    return powers;
  }

  // The narrow peak at the direction that is zero for this cosine and sine.
  const peak = (cosine, sine) => harmonics(cosine, sine).reduce((sum, [x], at) => sum + PEAK[at] * x, 0);

  const LOG_FACTORS = {
    Cardinal: (factor, history, saliency, grid) =>
      overDirections(grid, history.position[0], (sine, cosine) => {
        const [twice, sineTwice] = [cosine * cosine - sine * sine, 2 * cosine * sine];
        const once = factor.rightward * cosine + factor.upward * sine;
        const fourfold = twice * twice - sineTwice * sineTwice;
        return once + factor.horizontal * twice + factor.diagonal * sineTwice + factor.cardinal * fourfold;
      }),
    Turning: (factor, history, saliency, grid) => {
      const [lastUp, lastRight] = direction(grid, ...lastSaccade(history));
      return overDirections(grid, history.position[0], (up, right) => {
        const [cosine, sine] = [up * lastUp + right * lastRight, up * lastRight - right * lastUp];
        return factor.onward * cosine + factor.axial * (cosine * cosine - sine * sine);
      });
    },
    CardinalPeaks: (factor, history, saliency, grid) =>
      overDirections(grid, history.position[0], (sine, cosine) => {
        const level = peak(cosine, sine) + peak(-cosine, -sine);
        return factor.sideways * level + factor.above * peak(sine, -cosine);
      }),
    TurningPeak: (factor, history, saliency, grid) => {
      const [lastUp, lastRight] = direction(grid, ...lastSaccade(history));
      return overDirections(grid, history.position[0], (up, right) => {
        const [cosine, sine] = [up * lastUp + right * lastRight, up * lastRight - right * lastUp];
        return factor.ahead * peak(cosine, sine) + factor.behind * peak(-cosine, -sine);
      });
    },
    Here: (factor, history, saliency, grid) => {
      const [rows, columns] = axes(grid, (cells, axis) =>
        cells.map((at) => Math.exp((-0.5 / factor.psi) * (at - history.position[0][axis]) ** 2)),
      );
      return overCells(grid, (row, column) => factor.phi * rows[row] * columns[column]);
    },
    VisitedBefore: (factor, history, saliency, grid) => {
      const visited = history.position.slice(1, Math.min(factor.span + 1, history.count));
      const bumps = visited.map((place) =>
        axes(grid, (cells, axis) => cells.map((at) => Math.exp((-0.5 / factor.omega) * (at - place[axis]) ** 2))),
      );
      const bump = ([rows, columns], row, column, back) => factor.lambda_ ** back * (rows[row] * columns[column]);
      return overCells(grid, (row, column) =>
        factor.mu * bumps.reduce((sum, it, back) => sum + bump(it, row, column, back), 0),
      );
    },
    SaliencyDrift: (factor, history, saliency, grid) => {
      const exponent = factor.delta * FEATURES.number(history);
      const cells = grid.rows * grid.columns;
      return overCells(grid, (row, column, cell) => exponent * Math.log(Math.max(cells * saliency[cell], LEAST_RELATIVE_SALIENCY)));
    },
  };

  // --- features of the history, roughly standardised ----------------------------------------------------------------

  const logSaliency = (history, grid, back) =>
    Math.log(Math.max(grid.rows * grid.columns * history.saliency[back], LEAST_RELATIVE_SALIENCY));

  const amplitude = (saccade) => (Math.log(Math.hypot(...saccade) + SMALL_AMPLITUDE_DEG) - 1.4) / 0.8;

  const FEATURES = {
    amplitude: (history) => amplitude(lastSaccade(history)),
    duration: (history) => {
      const [least, most] = DURATIONS_S;
      const seconds = history.duration_s[0];
      return seconds > 0 ? (Math.log(Math.min(Math.max(seconds, least), most)) + 1.4) / 0.4 : 0;
    },
    saliency: (history, grid) => (logSaliency(history, grid, 0) - 1.2) / 1.2,
    ratio: (history, grid) => (logSaliency(history, grid, 0) - logSaliency(history, grid, 1)) / 1.5,
    number: (history) => Math.log(Math.max(history.count, 1) / 10) / 0.8,
    earlier: (history) =>
      history.count > 2 ? amplitude([0, 1].map((axis) => history.position[1][axis] - history.position[2][axis])) : 0,
  };

  // --- choices: the logarithm of every policy's probability ---------------------------------------------------------

  const logSigmoid = (f) => (f >= 0 ? -Math.log1p(Math.exp(-f)) : f - Math.log1p(Math.exp(f)));
  const logistic = (choice, feature) => {
    const f = choice.b * (feature - choice.s0);
    return [logSigmoid(f), logSigmoid(-f)];
  };

  const LOG_PROBABILITIES = {
    OnlyPolicy: () => [0],
    FixedChoice: (choice) => [Math.log(choice.rho), Math.log1p(-choice.rho)],
    SaliencyRatioChoice: (choice, history) =>
      logistic(choice, history.saliency[0] / Math.max(history.saliency[1], SMALLEST_SALIENCY)),
    SaliencyLevelChoice: (choice, history, grid) => logistic(choice, grid.rows * grid.columns * history.saliency[0]),
    SoftmaxChoice: (choice, history, grid) => {
      const values = choice.features.map((name) => FEATURES[name](history, grid));
      const linear = (base, slopes) => slopes.reduce((sum, it, index) => sum + it * values[index], base);
      const odds = [0, ...choice.base.map((base, other) => linear(base, choice.slopes[other]))];
      const most = Math.max(...odds);
      const whole = most + Math.log(odds.reduce((sum, it) => sum + Math.exp(it - most), 0));
      return odds.map((it) => it - whole);
    },
  };

  // --- what is not known here, by name: a part of one's own, or of a later version ----------------------------------

  const unlessIn = (known, name) => (Object.hasOwn(known, name) ? [] : [name]);

  function unknownInPolicy(policy) {
    const factors = policy.class === "Modulated" ? policy.factors : [];
    const inner = policy.class === "Modulated" ? unknownInPolicy(policy.policy) : [];
    return [...unlessIn(LOG_WEIGHTS, policy.class), ...inner, ...factors.flatMap((it) => unlessIn(LOG_FACTORS, it.class))];
  }

  const unknownInChoice = (choice) => [
    ...unlessIn(LOG_PROBABILITIES, choice.class),
    ...(choice.class === "SoftmaxChoice" ? choice.features.flatMap((it) => unlessIn(FEATURES, it)) : []),
  ];

  return { LOG_WEIGHTS, LOG_PROBABILITIES, cellOf, overCells, logOf, unknownInPolicy, unknownInChoice };
})();

if (typeof module !== "undefined") module.exports = foveateParts;
