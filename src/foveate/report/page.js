// What every report does: sort a table by the column whose head is clicked, switch colours, and print in light ones.
(() => {
  "use strict";
  const root = document.documentElement;
  const changed = () => root.dispatchEvent(new Event("foveate-theme"));

  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.classList.contains("text")) return cell.textContent;
    return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
  };

  // What has no value stays below, whichever way the others are sorted.
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
    return sign * order;
  };

  const sort = (head) => {
    const table = head.closest("table");
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => ({ row, key: key(row, head.cellIndex) }));
    rows.sort((a, b) => compare(a.key, b.key, sign));
    body.append(...rows.map((it) => it.row));
    for (const other of head.parentNode.cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  };

  for (const head of document.querySelectorAll("th")) head.firstElementChild.addEventListener("click", () => sort(head));

  const themes = document.querySelectorAll("button[data-theme]");
  const choose = (theme) => {
    root.classList.remove("light", "dark");
    if (theme !== "auto") root.classList.add(theme);
    for (const it of themes) it.setAttribute("aria-pressed", String(it.dataset.theme === theme));
    changed();
  };
  for (const button of themes) button.addEventListener("click", () => choose(button.dataset.theme));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);

  // Paper is white, and has no folded parts.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const it of folded) it.open = true;
    root.classList.add("printing");
    changed();
  });
  addEventListener("afterprint", () => {
    for (const it of folded) it.open = false;
    root.classList.remove("printing");
    changed();
  });
})();
