"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const cases = all("details.case");
  const search = one("search");
  const bodyOf = (item) => item.querySelector(":scope > .body");
  const textOf = new Map();
  let current = null;

  // Cases that are data: a block of them is read when the first of it is opened.
  const blocks = new Map();
  const read = async (number) => {
    const packed = Uint8Array.from(atob(one(`block-${number}`).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const load = async (item) => {
    const body = bodyOf(item);
    const place = body.dataset.at;
    if (!place) return;
    const [block, number] = place.split(".").map(Number);
    if (!blocks.has(block)) blocks.set(block, read(block));
    try {
      const bodies = await blocks.get(block);
      if (!body.dataset.at) return;
      // Escaped when the report was written; scripts in it would not run, and the policy forbids them.
      body.innerHTML = bodies[number];
      delete body.dataset.at;
      addCopy(body);
    } catch (error) {
      blocks.delete(block);
      body.textContent = `This browser cannot read the case (${error.message}). The JSON report has it.`;
    }
  };

  // Filter
  const chosen = () => all(".chips button[aria-pressed=true]");
  const matches = (item, words, statuses, changes, tags) => {
    if (statuses.length && !statuses.includes(item.dataset.status)) return false;
    const isChanged = (name) => (name === "regression" ? "regression" in item.dataset : item.dataset.change === name);
    if (changes.length && !changes.some(isChanged)) return false;
    const own = (item.dataset.tags || "").split(" ");
    if (!tags.every((tag) => own.includes(tag))) return false;
    if (!words.length) return true;
    if (!textOf.has(item)) {
      const set = item.closest(".set").querySelector("h2").firstChild.textContent;
      textOf.set(item, `${set} ${item.querySelector("summary").textContent}`.toLowerCase());
    }
    return words.every((word) => textOf.get(item).includes(word));
  };
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const statuses = chosen().map((button) => button.dataset.status).filter(Boolean);
    const changes = chosen().map((button) => button.dataset.change).filter(Boolean);
    const tags = chosen().map((button) => button.dataset.tag).filter(Boolean);
    let shown = 0;
    for (const item of cases) {
      item.hidden = !matches(item, words, statuses, changes, tags);
      if (!item.hidden) shown += 1;
    }
    for (const set of all(".set")) set.hidden = all("details.case:not([hidden])", set).length === 0;
    const isFiltered = words.length + statuses.length + changes.length + tags.length > 0;
    one("shown").textContent = isFiltered ? `${shown.toLocaleString("en")} of ${cases.length.toLocaleString("en")}` : "";
    one("none").hidden = shown > 0 || !isFiltered;
  };
  const clear = () => {
    search.value = "";
    for (const button of chosen()) button.setAttribute("aria-pressed", "false");
    filter();
  };

  // Moving
  const visible = () => cases.filter((item) => !item.hidden);
  const select = (item) => {
    if (current) current.classList.remove("current");
    current = item;
    item.classList.add("current");
  };
  const move = (step) => {
    const shown = visible();
    if (!shown.length) return;
    const at = shown.indexOf(current);
    const next = shown[at < 0 ? (step > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + step, 0), shown.length - 1)];
    select(next);
    next.querySelector("summary").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  const differences = (item) => {
    const rows = all(".row.differs, .judged.failed, .error-box", bodyOf(item));
    // A call and its arguments are one difference, unless it is arguments that differ.
    return rows.filter((row) => !(row.classList.contains("arg") && !row.querySelector(".op").textContent));
  };
  const go = (row) => {
    for (const old of all(".here")) old.classList.remove("here");
    for (let around = row.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
    row.classList.add("here");
    row.scrollIntoView({ block: "center" });
  };
  const walk = async (step) => {
    const failing = visible().filter((item) => "attention" in item.dataset);
    if (!failing.length) return;
    const here = document.querySelector(".here");
    const owner = here ? here.closest(".case") : null;
    let at = failing.indexOf(current);
    if (at >= 0 && current.open) {
      const rows = differences(current);
      const next = rows[owner === current ? rows.indexOf(here) + step : step > 0 ? 0 : rows.length - 1];
      if (next) return go(next);
    }
    if (at < 0) at = step > 0 ? -1 : 0;
    // A case that is closed is opened first, also where it is the current one.
    const item = at >= 0 && !failing[at].open ? failing[at] : failing[(at + step + failing.length) % failing.length];
    select(item);
    item.open = true;
    await load(item);
    const rows = differences(item);
    const first = step > 0 ? rows[0] : rows[rows.length - 1];
    if (first) go(first);
    else {
      for (const old of all(".here")) old.classList.remove("here");
      item.scrollIntoView({ block: "start" });
    }
  };

  // Links to cases
  const follow = async () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch { /* It is meant as it stands. */ }
    const body = name && one(name);
    const item = body && body.closest("details.case");
    if (!item) return;
    if (item.hidden) clear();
    select(item);
    item.open = true;
    await load(item);
    item.scrollIntoView({ block: "start" });
  };
  const remember = (item) => {
    try { history.replaceState(null, "", `#${encodeURIComponent(bodyOf(item).id)}`); } catch { /* Not everywhere. */ }
  };
  const addCopy = (body) => {
    const command = body.querySelector(".command");
    if (!command || !navigator.clipboard) return;
    const button = document.createElement("button");
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.querySelector("code").textContent);
      button.textContent = "Copied";
    });
    command.append(button);
  };

  const isDark = () => {
    const asked = document.documentElement.dataset.theme;
    return asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const setTheme = (theme) => {
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("evaltui-theme", theme); } catch { /* Then it lasts for this page. */ }
  };
  try {
    const theme = localStorage.getItem("evaltui-theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch { /* As the system has it. */ }

  document.addEventListener("toggle", (event) => {
    const item = event.target;
    if (item.matches && item.matches("details.case") && item.open) load(item);
  }, true);
  document.addEventListener("click", (event) => {
    const summary = event.target.closest("details.case > summary");
    if (summary) {
      select(summary.parentElement);
      if (!summary.parentElement.open) remember(summary.parentElement);
    }
    const chip = event.target.closest(".chips button");
    if (chip) {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter();
    }
  });
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    n: () => walk(1),
    N: () => walk(-1),
    "/": () => { search.focus(); search.select(); },
    "?": () => one("help").showModal(),
    Escape: clear,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || one("help").open) return;
    if (event.target === search) {
      if (event.key === "Escape") { clear(); search.blur(); event.preventDefault(); }
      if (event.key === "Enter") { search.blur(); move(1); event.preventDefault(); }
      return;
    }
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  search.addEventListener("input", filter);
  one("clear").addEventListener("click", clear);
  one("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  one("keys").addEventListener("click", () => one("help").showModal());
  addEventListener("hashchange", follow);

  // What did not pass is printed in full.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = visible().filter((item) => "attention" in item.dataset && !item.open && !bodyOf(item).dataset.at);
    for (const item of opened) item.open = true;
  });
  addEventListener("afterprint", () => {
    for (const item of opened) item.open = false;
  });

  for (const body of all(".body:not([data-at])")) addCopy(body);
  one("tools").hidden = false;
  filter();
  const first = cases.find((item) => item.open);
  if (first) load(first);
  follow();
})();
