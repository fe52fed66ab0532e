// Canvases of the viewer: a map with a scan path over it, and the surprise of every step. Nothing here knows what is
// chosen in the page; colours are [red, green, blue], or names of the page's own.
const foveateDrawing = (() => {
  "use strict";

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const rgb = (hex) => [1, 3, 5].map((from) => parseInt(hex.slice(from, from + 2), 16));
  const text = (colour, alpha = 1) => `rgba(${colour.map(Math.round).join(",")},${alpha})`;
  const mixed = (weights, colours) =>
    [0, 1, 2].map((part) => weights.reduce((sum, it, index) => sum + it * colours[index][part], 0));
  const isLight = (colour) => 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2] > 120;

  // A canvas as sharp as the screen, as wide as its place and so many times as high. Its height follows from its width
  // in the page, too, so that it keeps its shape on paper, which is narrower.
  function prepared(canvas, ratio) {
    const width = canvas.clientWidth;
    const height = Math.round(width * ratio);
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    return [pen, width, height];
  }

  // The square root of every cell's density as the opacity of one colour, a pixel a cell.
  function mapImage(density, most, colour, strongest, grid, up) {
    const { rows, columns } = grid;
    const small = document.createElement("canvas");
    [small.width, small.height] = [columns, rows];
    const pen = small.getContext("2d");
    const pixels = pen.createImageData(columns, rows);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        const drawn = up ? rows - 1 - row : row;
        const strength = strongest * Math.sqrt(density[row * columns + column] / most);
        pixels.data.set([...colour, Math.round(255 * strength)], 4 * (drawn * columns + column));
      }
    pen.putImageData(pixels, 0, 0);
    return small;
  }

  // The picture if there is one, the map if there is one (`most` is the density of its full colour), the path.
  function panel(canvas, { grid, up, image, density, most, colour, path, colourOf }) {
    const [pen, width, height] = prepared(canvas, grid.height_deg / grid.width_deg);
    const place = ([y, x]) => [
      (x / grid.width_deg) * width,
      (up ? 1 - y / grid.height_deg : y / grid.height_deg) * height,
    ];
    pen.fillStyle = css("--paper");
    pen.fillRect(0, 0, width, height);
    const pictured = image !== null && image.complete && image.naturalWidth > 0;
    if (pictured) {
      pen.drawImage(image, 0, 0, width, height);
      pen.fillStyle = text(rgb(css("--paper")), 0.45);
      pen.fillRect(0, 0, width, height);
    }
    if (density !== null) {
      pen.imageSmoothingEnabled = true;
      pen.imageSmoothingQuality = "high";
      pen.drawImage(mapImage(density, most, colour, pictured ? 0.8 : 0.9, grid, up), 0, 0, width, height);
    }
    drawPath(pen, path.map(place), colourOf);
  }

  // The last fixation is the one that the map is about: a dashed line leads to it.
  function drawPath(pen, places, colourOf) {
    const last = places.length - 1;
    const strength = (index) => Math.max(0.3, 1 - 0.09 * Math.max(0, last - 1 - index));
    const [paper, ink] = [rgb(css("--paper")), rgb(css("--ink"))];
    pen.lineCap = pen.lineJoin = "round";
    for (let index = 1; index <= last; index++) {
      const lines = [
        [4, text(paper, 0.75 * strength(index))],
        [1.6, text(ink, strength(index))],
      ];
      for (const [wide, colour] of lines) {
        pen.beginPath();
        pen.setLineDash(index === last ? [5, 5] : []);
        pen.lineWidth = wide;
        pen.strokeStyle = colour;
        pen.moveTo(...places[index - 1]);
        pen.lineTo(...places[index]);
        pen.stroke();
      }
    }
    pen.setLineDash([]);
    pen.font = "600 10px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    places.forEach(([x, y], index) => {
      const colour = colourOf(index);
      pen.globalAlpha = strength(index);
      pen.beginPath();
      pen.arc(x, y, index === last ? 10 : 8, 0, 2 * Math.PI);
      pen.fillStyle = text(colour);
      pen.fill();
      pen.lineWidth = index === last ? 2.5 : 1.2;
      pen.strokeStyle = index === last ? css("--ink") : "#222222";
      pen.stroke();
      pen.fillStyle = isLight(colour) ? "#111111" : "#ffffff";
      pen.fillText(String(index + 1), x, y + 0.5);
    });
    pen.globalAlpha = 1;
  }

  const TIMELINE = { left: 46, right: 10, top: 18, bottom: 22, height: 132 };

  // Bars of every step's surprise; `at` is the fixation that is shown, counted from 1.
  function timeline(canvas, { surprise, uniform, colourOf, at }) {
    const [pen, width, height] = prepared(canvas, TIMELINE.height / canvas.clientWidth);
    const { left, right, top, bottom } = TIMELINE;
    const count = surprise.length;
    const most = Math.max(1.15 * uniform, ...Array.from(surprise).filter(Number.isFinite));
    const each = (width - left - right) / count;
    const y = (bits) => height - bottom - (bits / most) * (height - top - bottom);
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = css("--card");
    pen.fillRect(left + (at - 1) * each, top - 4, each, height - top - bottom + 4);
    surprise.forEach((bits, index) => {
      if (!Number.isFinite(bits)) return;
      pen.fillStyle = text(colourOf(index), index + 1 === at ? 1 : 0.7);
      const wide = Math.max(1, Math.min(each - 2, 26));
      pen.fillRect(left + (index + 0.5) * each - wide / 2, y(bits), wide, y(0) - y(bits));
    });
    pen.strokeStyle = pen.fillStyle = css("--soft");
    pen.lineWidth = 1;
    pen.setLineDash([4, 4]);
    pen.beginPath();
    pen.moveTo(left, y(uniform));
    pen.lineTo(width - right, y(uniform));
    pen.stroke();
    pen.setLineDash([]);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.fillText(uniform.toFixed(1), left - 6, y(uniform));
    pen.fillText("0", left - 6, y(0));
    pen.textAlign = "left";
    pen.fillText("surprise, bits (dashed: a uniform density)", left, 7);
    pen.textAlign = "center";
    const every = Math.ceil(26 / each);
    for (let index = 0; index < count; index += every)
      pen.fillText(String(index + 1), left + (index + 0.5) * each, height - 9);
  }

  // Which fixation, counted from 1, a place on the timeline belongs to.
  const fixationAt = (canvas, x, count) =>
    1 + Math.floor((count * (x - TIMELINE.left)) / (canvas.clientWidth - TIMELINE.left - TIMELINE.right));

  return { css, rgb, text, mixed, panel, timeline, fixationAt };
})();
