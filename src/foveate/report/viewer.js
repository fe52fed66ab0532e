// The viewer: scan paths over maps of the next fixation, step by step. Numbers are those that are embedded in the page
// (embedded.js); maps are worked out by densities.js.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("viewer-data").textContent);
  if (!data) return;
  const [D, P, E] = [foveateDensities, foveateDrawing, foveateEmbedded(data)];
  const element = (id) => document.getElementById(id);
  const UNTIMED_MS = 250; // that a fixation is shown whose duration is not known, where others are as fast as they were

  // --- what is shown ------------------------------------------------------------------------------------------------

  const first = data.models.find((it) => it.policies.length > 1) || data.models[0];
  const state = { path: data.paths[0], model: first, kind: "mixture", at: 3, timer: null, photo: true };
  let shown = null; // numbers of the path and the model that are chosen

  function load() {
    const { path, model } = state;
    const values = model.estimates[path.observer][String(path.fold)];
    shown = {
      saliency: E.mapOf(path.map),
      observed: E.positions(data.positions, path),
      simulated: E.positions(model.simulated, path),
      duration_ms: E.durations_ms(path),
      chosen: E.ofPath(model.chosen, "Uint8Array", path),
      model: D.withParameters(model.description, values),
      surprise: E.ofPath(model.surprise_bits, "Float32Array", path),
      probability: E.probabilities(model, path),
      image: imageOf(data.pictures[path.picture]),
    };
    state.at = Math.min(Math.max(state.at, 1), path.length);
  }

  // Whether the models say something of a fixation: not of the first two of a path, and not of forced ones.
  const predicted = (index) => !Number.isNaN(shown.surprise[index]);

  const images = new Map();
  function imageOf(name) {
    if (!Object.hasOwn(data.images, name)) return null;
    if (!images.has(name)) {
      const image = new Image();
      image.onload = draw;
      image.src = data.images[name];
      images.set(name, image);
    }
    return images.get(name);
  }

  // What a model knows before fixation number `at` (from 1) of a path is made; simulated fixations have no durations.
  function historyBefore(path, at) {
    const { saliency, observed, duration_ms } = shown;
    const lasted = path === observed && duration_ms ? Array.from(duration_ms, (it) => it / 1000) : null;
    return D.historyOf(data.grid, saliency, path.slice(0, at - 1), lasted);
  }

  // The map under a path before its fixation number `at` is made: probabilities, or null where there is none.
  function densityBefore(path, at) {
    const { saliency, model } = shown;
    if (state.kind === "saliency") return saliency;
    const history = historyBefore(path, at);
    if (history.count < D.DRAWN_FROM_MAP) return saliency;
    const found =
      state.kind === "mixture"
        ? D.logDensity(model, history, saliency, data.grid)
        : D.policyLogDensities(model, history, saliency, data.grid)[Number(state.kind)];
    return found === null ? null : found.map(Math.exp);
  }

  // --- colours ------------------------------------------------------------------------------------------------------

  const NEUTRAL = [255, 255, 255]; // of fixations that no policy made
  const policyColours = () => state.model.policies.map((it) => P.rgb(it.colour));
  const shade = () => P.rgb(state.kind in state.model.policies ? state.model.policies[state.kind].colour : P.css("--ink"));

  // --- words --------------------------------------------------------------------------------------------------------

  const node = (tag, words, kind) => {
    const made = document.createElement(tag);
    if (words !== undefined) made.textContent = words;
    if (kind) made.className = kind;
    return made;
  };

  function readout() {
    const index = state.at - 1;
    const { observed, model } = shown;
    const titles = state.model.policies.map((it) => it.title);
    const items = [[`${state.at} of ${state.path.length}`, "fixation"]];
    if (index > 0) {
      const [y, x] = [0, 1].map((axis) => observed[index][axis] - observed[index - 1][axis]);
      items.push([`${Math.hypot(y, x).toFixed(1)} deg`, "saccade to it"]);
    }
    if (shown.duration_ms && shown.duration_ms[index]) items.push([`${shown.duration_ms[index]} ms`, "its duration"]);
    if (predicted(index)) {
      items.push([`${shown.surprise[index].toFixed(2)} bits`, "surprise"]);
      if (titles.length > 1) {
        const chosen = D.choiceLogProbabilities(model.choice, historyBefore(observed, state.at), data.grid);
        const before = (policy) => (chosen ? `${Math.exp(chosen[policy]).toFixed(2)} before it was made` : "");
        shown.probability(index).forEach((it, policy) =>
          items.push([it.toFixed(2), `probability ${titles[policy]}`, before(policy)]),
        );
      }
    } else if (index < D.DRAWN_FROM_MAP) items.push(["from the map", "the first two of a path"]);
    else items.push(["forced", "conditions later ones, is not scored"]);
    element("readout").replaceChildren(
      ...items.map(([value, name, further]) => {
        const made = node("div");
        made.append(node("strong", value), node("span", name));
        if (further) made.append(node("small", further));
        return made;
      }),
    );
  }

  function legend(most) {
    const parts = state.model.policies.map((it) => [it.title, it.colour]);
    const items = [...parts, ["by no policy", "#ffffff"]].map(([title, colour]) => {
      const made = node("span");
      const dot = node("i");
      dot.style.background = colour;
      made.append(dot, title);
      return made;
    });
    if (most !== null) {
      const made = node("span");
      const bar = node("i", undefined, "shade");
      bar.style.background = `linear-gradient(to right, ${P.text(shade(), 0)}, ${P.text(shade(), 0.9)})`;
      made.append(bar, `0 to ${(100 * most).toPrecision(2)} % a cell, shaded by its square root`);
      items.push(made);
    }
    element("legend").replaceChildren(...items);
  }

  function message() {
    const unknown = D.unknownParts(state.model.description);
    element("message").textContent = unknown.length
      ? `This page cannot draw maps of ${unknown.join(", ")}; probability and surprise are exact all the same.`
      : "";
  }

  function draw() {
    if (shown === null) return;
    const colours = policyColours();
    const made = (index) => P.mixed(shown.probability(index), colours);
    const image = state.photo ? shown.image : null;
    const common = { grid: data.grid, up: data.grid.up, image, colour: shade() };
    const both = [
      ["observed", shown.observed, (index) => (predicted(index) ? made(index) : NEUTRAL)],
      ["simulated", shown.simulated, (index) => colours[shown.chosen[index]] || NEUTRAL],
    ].map(([id, path, colourOf]) => ({ id, path, colourOf, density: densityBefore(path, state.at) }));
    const largest = (density) => density.reduce((a, b) => Math.max(a, b), 0);
    const most = both[0].density === null ? null : Math.max(...both.map((it) => largest(it.density)));
    for (const { id, path, colourOf, density } of both)
      P.panel(element(id), { ...common, density, most, path: path.slice(0, state.at), colourOf });
    P.timeline(element("timeline"), { surprise: shown.surprise, uniform: data.uniform_bits, colourOf: made, at: state.at });
    readout();
    legend(most);
    message();
    element("back").disabled = element("first").disabled = state.at <= 1;
    element("next").disabled = element("last").disabled = state.at >= state.path.length;
    element("photo").hidden = shown.image === null;
  }

  // --- what a reader does -------------------------------------------------------------------------------------------

  function go(at) {
    state.at = Math.min(Math.max(at, 1), state.path.length);
    draw();
  }

  function pause() {
    clearTimeout(state.timer);
    state.timer = null;
    element("play").textContent = "Play";
  }

  function play() {
    if (state.at >= state.path.length) state.at = 1;
    element("play").textContent = "Pause";
    const wait = () => {
      const speed = Number(element("speed").value);
      return speed || shown.duration_ms[state.at - 1] || UNTIMED_MS;
    };
    const step = () => {
      go(state.at + 1);
      if (state.at >= state.path.length) pause();
      else state.timer = setTimeout(step, wait());
    };
    state.timer = setTimeout(step, wait());
    draw();
  }

  const toggle = () => (state.timer === null ? play() : pause());

  function options(select, items, chosen) {
    select.replaceChildren(
      ...items.map(([value, words]) => {
        const made = node("option", words.length > 60 ? `${words.slice(0, 57)}…` : words);
        made.value = String(value);
        made.title = words;
        return made;
      }),
    );
    select.value = String(chosen);
  }

  function choosePath(path) {
    pause();
    state.path = path;
    load();
    draw();
  }

  function offerPictures() {
    const observer = Number(element("observer").value);
    const own = data.paths.map((path, index) => [path, index]).filter(([path]) => path.observer === observer);
    own.sort(([a], [b]) => a.picture - b.picture);
    const name = (path) => data.pictures[path.picture] + (path.trial === null ? "" : `, trial ${path.trial}`);
    const same = own.find(([path]) => path.picture === state.path.picture) || own[0];
    options(element("picture"), own.map(([path, index]) => [index, name(path)]), same[1]);
    choosePath(same[0]);
  }

  function offerKinds() {
    const policies = state.model.policies;
    const kinds = [["mixture", policies.length > 1 ? "mixture" : "next fixation"]];
    if (policies.length > 1) policies.forEach((it, index) => kinds.push([String(index), it.title]));
    kinds.push(["saliency", "saliency map"]);
    if (!kinds.some(([kind]) => kind === state.kind)) state.kind = "mixture";
    element("kinds").replaceChildren(
      ...kinds.map(([kind, words]) => {
        const made = node("button", words);
        made.type = "button";
        made.dataset.kind = kind;
        const known = { mixture: D.knowsModel(state.model.description), saliency: true };
        made.disabled = !(kind in known ? known[kind] : D.knowsPolicy(state.model.description.policies[kind]));
        made.setAttribute("aria-pressed", String(kind === state.kind));
        made.addEventListener("click", () => {
          state.kind = kind;
          for (const it of element("kinds").children) it.setAttribute("aria-pressed", String(it === made));
          draw();
        });
        return made;
      }),
    );
  }

  options(element("observer"), data.observers.map((name, index) => [index, name]), state.path.observer);
  options(element("model"), data.models.map((it, index) => [index, it.title]), data.models.indexOf(first));
  const speeds = [[1000, "1 step a second"], [500, "2 steps a second"], [200, "5 steps a second"]];
  options(element("speed"), data.duration_ms ? [["0", "as fast as it was"], ...speeds] : speeds, 500);
  element("model-label").hidden = data.models.length < 2;

  element("observer").addEventListener("change", offerPictures);
  element("picture").addEventListener("change", (event) => choosePath(data.paths[Number(event.target.value)]));
  element("model").addEventListener("change", (event) => {
    state.model = data.models[Number(event.target.value)];
    offerKinds();
    load();
    draw();
  });
  const stepping = { first: () => 1, back: () => state.at - 1, next: () => state.at + 1, last: () => state.path.length };
  for (const [id, to] of Object.entries(stepping))
    element(id).addEventListener("click", () => {
      pause();
      go(to());
    });
  element("play").addEventListener("click", toggle);
  element("photo").addEventListener("click", () => {
    state.photo = !state.photo;
    element("photo").setAttribute("aria-pressed", String(state.photo));
    draw();
  });
  element("timeline").addEventListener("click", (event) => {
    pause();
    go(P.fixationAt(event.target, event.offsetX, state.path.length));
  });
  document.addEventListener("keydown", (event) => {
    // On a list of the viewer, left and right step through the path, too: up and down are left for choosing.
    const onList = event.target.closest("#viewer-box select") && /^Arrow(Left|Right)$/.test(event.key);
    const taken = !onList && event.target.closest("select, input, textarea");
    if (taken || event.altKey || event.ctrlKey || event.metaKey) return;
    const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };
    const inView = event.target.closest("#viewer-box") !== null;
    if (event.key in keys && (inView || event.key.startsWith("Arrow"))) element(keys[event.key]).click();
    else if (event.key === " " && inView && event.target.tagName !== "BUTTON") toggle();
    else return;
    event.preventDefault();
  });
  document.documentElement.addEventListener("foveate-theme", draw);
  new ResizeObserver(draw).observe(element("viewer-box"));

  offerKinds();
  offerPictures();
})();
