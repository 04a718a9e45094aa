// What JupyterLab lacks for lessons. Written as what its module loader expects, so that nothing has
// to be compiled: `autograde lab` names this folder to it.
(() => {
  const NAME = "autograde-page";
  const HERE = document.currentScript.src;
  const LOOK = 150; // milliseconds between two looks at the cells
  const SHOWN = 250; // a cell that takes longer says that it runs
  const KEPT = 2000; // one that takes longer is known the next time
  const SETTLED = 8; // times that a cell is scrolled to
  const PATIENCE = 80; // looks for a cell of a notebook that is being opened
  const NARROW = 1000; // pixels: the file browser would take a third of the window

  const LATE = 1500; // milliseconds that an output may still grow after its cell has run

  const started = new WeakMap();
  const ran = new WeakMap(); // the number of a cell's last run
  const seconds = (milliseconds) => `${Math.max(1, Math.round(milliseconds / 1000))} s`;
  const key = (panel, cell) => `${NAME}:${panel.context.path}:${cell.model.id}`;

  function last(name) {
    try {
      return Number(localStorage.getItem(name)) || 0;
    } catch {
      return 0; // a browser that keeps nothing
    }
  }

  function keep(name, milliseconds) {
    try {
      localStorage.setItem(name, String(Math.round(milliseconds)));
    } catch {
      // the next run shows no bar
    }
  }

  function sign(cell) {
    let node = cell.node.querySelector(":scope > .lesson-running");
    if (!node) {
      node = document.createElement("div");
      node.className = "lesson-running";
      const said = document.createElement("span");
      said.setAttribute("role", "status");
      const bar = document.createElement("progress");
      bar.max = 1;
      bar.setAttribute("aria-label", "How much of the expected time has passed");
      node.append(said, bar);
      cell.node.append(node);
    }
    return node;
  }

  function show(panel, cell, passed) {
    const node = sign(cell);
    const [said, bar] = node.children;
    const mine = last(key(panel, cell));
    const before = mine || 1000 * (Number(cell.model.getMetadata("seconds")) || 0);
    const left = before - passed;
    if (left > 0) bar.value = passed / before;
    else bar.removeAttribute("value");
    bar.hidden = !before;
    const late = mine ? ", longer than last time" : ", longer than on the author's machine";
    const then = !before ? "" : left > 0 ? `, about ${seconds(left)} left` : late;
    const text = `Running for ${seconds(passed)}${then}`;
    // a screen reader is told once, not every second
    said.setAttribute("aria-live", passed < SHOWN + 2 * LOOK ? "polite" : "off");
    if (said.textContent !== text) said.textContent = text;
  }

  function ended(cell) {
    const outputs = cell.model.outputs;
    return ![...Array(outputs.length).keys()].some((i) => outputs.get(i).type === "error");
  }

  // Chromium holds the selected cell where it is, and that is the one below: what a cell shows grows
  // upwards, and the headline of a panel would leave the window.
  function showFromItsTop(notebook, cell) {
    const scrolled = notebook.outerNode;
    const output = cell.outputArea?.node;
    if (!scrolled || !output) return;
    const watcher = new ResizeObserver(() => {
      if (notebook.widgets[notebook.activeCellIndex - 1] !== cell) return;
      const [frame, box] = [scrolled, cell.node].map((node) => node.getBoundingClientRect());
      const { top } = box.height < frame.height ? box : output.getBoundingClientRect();
      if (output.offsetHeight && top < frame.top) scrolled.scrollBy(0, top - frame.top);
    });
    watcher.observe(output);
    setTimeout(() => watcher.disconnect(), LATE);
  }

  // what a screen reader says when a rubric has run
  const heard = document.createElement("p");
  heard.className = "lesson-heard";
  heard.setAttribute("role", "status");

  function say(text) {
    heard.textContent = ""; // the same words again are heard again
    requestAnimationFrame(() => (heard.textContent = text));
  }

  function describe(cell) {
    const nodes = cell.outputArea?.node.querySelectorAll(":scope > .jp-OutputArea-child") ?? [];
    [...nodes].forEach((node, place) => {
      const { data = {}, metadata = {} } = cell.model.outputs.get(place) ?? {};
      const { alt, width } = metadata["image/png"] ?? {};
      showStill(node.querySelector(":scope > .jupyter-widgets"), data, width);
      // JupyterLab leaves out the words that are stored with a picture
      const pictures = alt ? node.querySelectorAll("img:not([alt]), img[alt='']") : [];
      pictures.forEach((picture) => picture.setAttribute("alt", alt));
      node.querySelectorAll(".widget-slider").forEach(nameSlider);
    });
  }

  // ipywidgets' sliders have neither a name nor a value in words
  function nameSlider(slider) {
    const handle = slider.querySelector(".noUi-handle");
    const names = { "aria-label": ".widget-label", "aria-valuetext": ".widget-readout" };
    for (const [name, part] of Object.entries(names)) {
      const text = slider.querySelector(part)?.textContent;
      if (text && handle.getAttribute(name) !== text) handle.setAttribute(name, text);
    }
  }

  // The next day no kernel knows the widget, and JupyterLab says only that its model was not found.
  // Show what else the output holds: the first state of a figure with sliders, and its description.
  function showStill(shown, { "image/png": png, "text/plain": text }, width) {
    if (!shown?.textContent.startsWith("Error displaying widget")) return;
    const said = document.createElement("p");
    said.textContent = png ? `${text} To move it, run this cell.` : text;
    if (png) {
      const picture = document.createElement("img");
      Object.assign(picture, { src: `data:image/png;base64,${png}`, className: "widget-image" });
      if (width) picture.width = width;
      said.prepend(picture, document.createElement("br"));
    }
    shown.replaceChildren(said);
  }

  function look(panel) {
    for (const cell of panel?.content?.widgets ?? []) {
      if (cell.model?.type !== "code") continue;
      describe(cell);
      const { executionCount, executionState } = cell.model;
      if (executionState === "idle" && executionCount !== ran.get(cell)) {
        if (ran.has(cell) && executionCount) {
          const took = performance.now() - (started.get(cell) ?? performance.now());
          if (took < KEPT) showFromItsTop(panel.content, cell); // later one reads elsewhere
          say(cell.node.querySelector(".rubric > strong")?.textContent ?? "");
        }
        ran.set(cell, executionCount);
      }
      if (cell.model.executionState === "running") {
        if (!started.has(cell)) started.set(cell, performance.now());
        const passed = performance.now() - started.get(cell);
        if (passed >= SHOWN) show(panel, cell, passed);
      } else if (started.has(cell)) {
        const took = performance.now() - started.get(cell);
        started.delete(cell);
        if (took >= KEPT && ended(cell)) keep(key(panel, cell), took);
        cell.node.querySelector(":scope > .lesson-running")?.remove();
      }
    }
    // what is wider than the page is scrolled, by keys too
    for (const block of panel?.node?.querySelectorAll(".jp-RenderedMarkdown pre") ?? []) {
      if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
      else block.removeAttribute("tabindex");
    }
  }

  // A link to a cell: JupyterLab scrolls to where it guesses that the cell will be, and selects
  // nothing. The cell is selected here, and scrolled to until the cells above have their heights.
  function goTo(app, id, looks = 0, found = 0) {
    const notebook = app.shell.currentWidget?.content;
    const place = notebook?.widgets?.findIndex?.((cell) => cell.model?.id === id) ?? -1;
    if (place >= 0 && found < SETTLED) {
      notebook.activeCellIndex = place;
      notebook.scrollToItem(place, "start");
      found += 1;
    }
    if (found < SETTLED && looks < PATIENCE) setTimeout(() => goTo(app, id, looks + 1, found), SHOWN);
  }

  function follow(app, event) {
    const link = event.target.closest?.("a[href*='#cell-id=']");
    if (link) goTo(app, decodeURIComponent(link.hash.replace("#cell-id=", "")));
  }

  // In command mode JupyterLab's arrow keys pass over cells whose code is folded: over every rubric.
  function step(app, event) {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    const notebook = app.shell.currentWidget?.content;
    if (!by || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    if (notebook?.mode !== "command" || !notebook.node.contains(event.target)) return;
    if (event.target.closest(".jp-OutputArea, input, textarea, [contenteditable=true]")) return;
    const place = notebook.activeCellIndex + by;
    const next = notebook.widgets[place];
    if (!next?.inputHidden || next.isHidden) return;
    event.preventDefault();
    event.stopPropagation();
    notebook.deselectAll();
    notebook.activeCellIndex = place;
    notebook.activate();
    notebook.scrollToItem(place, "smart");
  }

  const plugin = {
    id: `${NAME}:plugin`,
    autoStart: true,
    activate: (app) => {
      const sheet = document.createElement("link");
      sheet.rel = "stylesheet";
      sheet.href = HERE.replace(/page\.js/, "page.css");
      document.head.append(sheet);
      document.body.append(heard);
      setInterval(() => [...app.shell.widgets("main")].forEach(look), LOOK);
      document.addEventListener("click", (event) => follow(app, event), true);
      document.addEventListener("keydown", (event) => step(app, event), true);
      const makeRoom = () => window.innerWidth < NARROW && app.shell.collapseLeft?.();
      app.restored.then(makeRoom);
      window.matchMedia(`(width < ${NARROW}px)`).addEventListener("change", makeRoom); // a zoom, too
    },
  };

  const modules = { "./extension": { __esModule: true, default: plugin } };
  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB[NAME] = { init: () => {}, get: async (name) => () => modules[name] };
})();
