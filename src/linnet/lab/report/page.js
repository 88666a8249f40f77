// Columns can be sorted; without this script the tables are whole, in the order of the study.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 3) continue;
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const column = head.cellIndex;
      const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const key = (row) => row.cells[column].dataset.key;
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x !== undefined && y !== undefined) return way * (x - y);
        if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1;
        return way * a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      };
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      body.append(...[...body.rows].sort(compare));
    });
  }
}
