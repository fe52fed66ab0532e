// The numbers that are embedded in the page for the viewer, decoded when they are first shown.
const foveateEmbedded = (data) => {
  "use strict";
  const KINDS = { Uint8Array, Uint16Array, Float32Array };
  const FULL = 65535; // the largest number of two bytes

  const decoded = new Map();
  function numbers(text, kind) {
    if (!decoded.has(text)) {
      const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      decoded.set(text, new KINDS[kind](bytes.buffer));
    }
    return decoded.get(text);
  }

  const maps = new Map();
  function mapOf(index) {
    if (!maps.has(index)) {
      const { peak, root } = data.maps[index];
      maps.set(index, Float64Array.from(numbers(root, "Uint16Array"), (it) => peak * (it / FULL) ** 2));
    }
    return maps.get(index);
  }

  let begin = 0;
  for (const path of data.paths) {
    path.begin = begin;
    begin += path.length;
  }

  // Of the fixations of a path alone.
  const ofPath = (text, kind, path) => numbers(text, kind).subarray(path.begin, path.begin + path.length);

  function positions(text, path) {
    const all = numbers(text, "Uint16Array");
    return Array.from({ length: path.length }, (_, index) => {
      const at = 2 * (path.begin + index);
      return [all[at] * data.step_deg, all[at + 1] * data.step_deg];
    });
  }

  // How long each fixation of an observed path lasted, zero where that is not known; null where it never is.
  const durations_ms = (path) => (data.duration_ms ? ofPath(data.duration_ms, "Uint16Array", path) : null);

  // The probability of every policy to have made a fixation of a path.
  function probabilities(model, path) {
    if (model.probability === null) return () => [1];
    const [whole, count] = [numbers(model.probability, "Uint16Array"), model.policies.length];
    return (index) => Array.from({ length: count }, (_, policy) => whole[(path.begin + index) * count + policy] / FULL);
  }

  return { mapOf, ofPath, positions, durations_ms, probabilities };
};
