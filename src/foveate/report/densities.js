// Where gaze goes next, as foveate's model package defines it: the policies of a model, the choice among them and their
// mixture on a grid of cells. Pure functions, for the page and for Node alike; the parts are in densities_parts.js.
// Positions are [y, x] in degrees, maps are flat, row by row.
const foveateDensities = (() => {
  "use strict";

  const parts = typeof module === "undefined" ? foveateParts : require("./densities_parts.js");
  const { cellOf, overCells, logOf } = parts;
  const DRAWN_FROM_MAP = 2; // fixations at the beginning of a path

  const saliencyAt = (grid, saliency, position) => {
    const [row, column] = cellOf(grid, position);
    return saliency[row * grid.columns + column];
  };

  // What a model may look at after these fixations, oldest first: all of them, the most recent one first, and never
  // fewer than two, the oldest being repeated. `durations_s` has how long each lasted, null where that is not known.
  function historyOf(grid, saliency, positions, durations_s = null) {
    const count = positions.length;
    const made = count ? positions : [[grid.height_deg / 2, grid.width_deg / 2]];
    const lasted = made.map((_, index) => (durations_s !== null && count ? durations_s[index] : 0));
    const recent = Array.from({ length: Math.max(count, 2) }, (_, back) => Math.max(made.length - 1 - back, 0));
    return {
      position: recent.map((index) => made[index]),
      saliency: recent.map((index) => saliencyAt(grid, saliency, made[index])),
      duration_s: recent.map((index) => lasted[index]),
      count,
    };
  }

  function normalised(logWeights) {
    let most = -Infinity;
    for (const it of logWeights) if (it > most) most = it;
    let sum = 0;
    for (const it of logWeights) sum += Math.exp(it - most);
    const whole = Math.log(sum);
    return logWeights.map((it) => it - most - whole);
  }

  const knowsPolicy = (policy) => parts.unknownInPolicy(policy).length === 0;
  const knowsChoice = (choice) => parts.unknownInChoice(choice).length === 0;

  // The names of parts of a model that are not known here, each once.
  const unknownParts = (model) => [
    ...new Set([...model.policies.flatMap(parts.unknownInPolicy), ...parts.unknownInChoice(model.choice)]),
  ];
  const knowsModel = (model) => unknownParts(model).length === 0;

  // Of every policy of a model by itself; null for one that is not known here.
  const policyLogDensities = (model, history, saliency, grid) =>
    model.policies.map((policy) =>
      knowsPolicy(policy) ? normalised(parts.LOG_WEIGHTS[policy.class](policy, history, saliency, grid)) : null,
    );

  // Of every policy being chosen; null where the choice is not known here.
  const choiceLogProbabilities = (choice, history, grid) =>
    knowsChoice(choice) ? parts.LOG_PROBABILITIES[choice.class](choice, history, grid) : null;

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

  // The described model with these values for its parameters, however its parts are nested: fields of one name are one
  // parameter.
  function withParameters(description, values) {
    const filled = (value) => {
      if (Array.isArray(value)) return value.map(filled);
      if (value === null || typeof value !== "object") return value;
      const fields = Object.entries(value);
      return Object.fromEntries(fields.map(([name, it]) => [name, Object.hasOwn(values, name) ? values[name] : filled(it)]));
    };
    return { policies: filled(description.policies), choice: filled(description.choice) };
  }

  return {
    DRAWN_FROM_MAP, cellOf, historyOf, policyLogDensities, choiceLogProbabilities, logDensity, withParameters,
    knowsPolicy, knowsChoice, knowsModel, unknownParts,
  };
})();

if (typeof module !== "undefined") module.exports = foveateDensities;
