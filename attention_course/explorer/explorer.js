// The explorer's page: a story whose words can be pressed, and heads that can be changed.
//
// All weights of all stories are here from the start, so looking needs no kernel. A change of a
// head is asked of the kernel: {ask, story, layer, head, at, other}, see live.py.

const MOST = 6; // next words that are shown
const SEEN = 0.005; // a weight below this is 0.00
const DRAWN = 0.01; // a weight below this has no arc
const MOVED = 0.02; // a weight that moves less stays without its old number
const PATIENCE = 2500; // milliseconds
const SVG = "http://www.w3.org/2000/svg";
const SILENT = "No answer from Python yet. It may be running a cell. If not, run this cell again.";
const GONE = "The kernel was restarted. Run this cell again to change heads.";

const two = (number) => number.toFixed(2);
const named = (layer, head) => `${layer + 1}.${head + 1}`;

function make(tag, about = {}, ...children) {
  const { on = {}, style = {}, ...attributes } = about;
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) node.setAttribute(name, value);
  }
  for (const [name, hear] of Object.entries(on)) node.addEventListener(name, hear);
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
  node.append(...children);
  return node;
}

function render({ model, el }) {
  const { stories, vocabulary, layer, head, word } = model.get("shown");
  const state = {
    story: 0,
    layer,
    head,
    word, // the pressed one
    over: null, // the one under the mouse or the keyboard's focus
    change: null,
    after: null, // what the changed model does
  };
  let asked = 0;
  let waiting = null;

  // ---- what is shown

  const told = () => stories[state.story];
  const read = () => state.after ?? told();
  const looking = () => state.over ?? state.word;
  const row = (from, layer = state.layer, head = state.head, word = looking()) =>
    from.weights[layer][head][word];
  const quoted = (word) => `“${told().words[word]}”`;

  const says = make("p", { class: "ae-says" });
  const heard = make("p", { class: "ae-unseen", role: "status", "aria-live": "polite" });
  const picker = make("div", { class: "ae-choices", role: "group", "aria-label": "Story" });
  const text = make("div", { class: "ae-words", role: "group" });
  const arcs = document.createElementNS(SVG, "svg");
  arcs.setAttribute("aria-hidden", "true");
  const page = make("div", { class: "ae-story" }, arcs, text);
  const grid = make("div", { class: "ae-heads", role: "group", "aria-label": "Head" });
  const tries = make("div", { class: "ae-tries", role: "group", "aria-label": "Change a head" });
  const trouble = make("p", { class: "ae-trouble", role: "alert" });
  const bars = make("div", { class: "ae-bars", role: "list" });
  const next = make("p", { class: "ae-title" });
  const legend = make("p", { class: "ae-legend" });
  const tip = make("p", { class: "ae-tip" });
  const root = make(
    "div",
    { class: "attention-explorer", role: "group", "aria-label": "Explorer of attention" },
    says, heard, page, tip,
    make("div", { class: "ae-below" },
      make("div", { class: "ae-controls" },
        make("p", { class: "ae-title" }, "Which head looks?"), grid,
        make("p", { class: "ae-title" }, "What if …"), tries, trouble),
      make("div", { class: "ae-next" }, next, legend, bars)),
  );
  if (stories.length > 1) root.prepend(picker);

  // ---- words and arcs

  function drawWords() {
    text.replaceChildren(
      ...told().words.map((word, place) =>
        make("button", {
          type: "button",
          class: "ae-word",
          tabindex: place === state.word ? 0 : -1,
          on: {
            click: () => press(place),
            focus: () => lookFrom(place),
            blur: () => lookFrom(null),
            pointerenter: (event) => event.pointerType === "mouse" && lookFrom(place),
            pointerleave: (event) => event.pointerType === "mouse" && lookFrom(null),
          },
        }, make("span", { class: "ae-text" }, word), make("span", { class: "ae-number" })),
      ),
    );
    text.setAttribute("aria-label", "The story. Press a word to see what it looks at.");
  }

  function lookFrom(place) {
    state.over = place;
    drawLook();
  }

  function press(place) {
    state.word = place;
    [...text.children].forEach((word, at) => word.setAttribute("tabindex", at === place ? 0 : -1));
    drawLook();
    drawTries();
    say();
  }

  function drawLook() {
    const from = looking();
    const now = row(read());
    const before = row(told());
    const hidden = told().hidden[from];
    const most = Math.max(...now);
    // what is written here must not move the words away from under the mouse
    const moves = now.map((weight, place) => Math.abs(weight - before[place]) >= MOVED);
    [...text.children].forEach((word, place) => {
      const weight = now[place];
      const moved = moves[place];
      word.style.setProperty("--weight", weight.toFixed(3));
      word.classList.toggle("ae-from", place === from);
      word.classList.toggle("ae-pressed", place === state.word);
      word.classList.toggle("ae-hidden-word", hidden[place]);
      word.classList.toggle("ae-most", weight === most);
      word.setAttribute("aria-pressed", String(place === state.word));
      const shown = hidden[place] ? "" : weight >= SEEN || moved ? two(weight) : "";
      const was = moved ? make("span", { class: "ae-was" }, `was ${two(before[place])}`) : "";
      word.querySelector(".ae-number").replaceChildren(shown, was);
      const gets = hidden[place] ? `hidden from ${quoted(from)}` : two(weight);
      word.setAttribute("aria-label", `${told().words[place]}: ${gets}`);
    });
    [...grid.querySelectorAll("button")].forEach((button) => {
      const { layer, head } = button.dataset;
      const strip = button.querySelector(".ae-strip");
      strip.replaceChildren(
        ...row(read(), +layer, +head).map((weight) =>
          make("i", { style: { "--weight": weight.toFixed(3) } })),
      );
    });
    root.classList.toggle("ae-unused", unused(from));
    says.replaceChildren(...inWords(from));
    tip.textContent = (unused(from)
      ? `Now the model does not use what head ${named(state.layer, state.head)} finds for ` +
        `${quoted(from)}.` + (state.change.other === null ? ""
          : ` It gets what this head finds in the story “${stories[state.change.other].label}”.`)
      : "Press a word, or point at it, to see what it looks at.") +
      (hidden.some(Boolean) ? ` The hatched words are hidden from ${quoted(from)}.` : "");
    drawArcs();
  }

  function inWords(from) {
    const weights = row(read(), state.layer, state.head, from);
    const order = weights.map((_, place) => place).sort((a, b) => weights[b] - weights[a]);
    const [first, ...others] = order.filter((place) => weights[place] >= SEEN).slice(0, 4);
    const begins = `In head ${named(state.layer, state.head)}, ${quoted(from)} `;
    const looks = unused(from) ? "would look at " : "looks at ";
    if (first === undefined) return [begins, looks, "nothing."];
    const rest = others.map((place) => `${quoted(place)} ${two(weights[place])}`).join(", ");
    return [
      begins, looks, make("strong", {}, `${quoted(first)} ${two(weights[first])}`),
      rest ? `, then at ${rest}.` : ".",
    ];
  }

  // whether the change replaces what the head on show hands on at a word
  function unused(word) {
    const { change, after, layer, head } = state;
    if (after === null || change.layer !== layer || change.head !== head) return false;
    return change.at === null || change.at === word;
  }

  function drawArcs() {
    const box = page.getBoundingClientRect();
    if (!box.width) return;
    arcs.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    const places = [...text.children].map((word) => {
      const place = word.querySelector(".ae-text").getBoundingClientRect();
      const below = word.getBoundingClientRect().bottom - box.top;
      return { x: place.left + place.width / 2 - box.left, y: place.top - box.top, below };
    });
    const start = places[looking()];
    arcs.replaceChildren(
      ...row(read())
        .map((weight, place) => ({ weight, place }))
        .filter(({ weight }) => weight >= DRAWN)
        .sort((a, b) => a.weight - b.weight)
        .map(({ weight, place }) => arc(start, places[place], weight)),
    );
  }

  function arc(start, end, weight) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", way(start, end));
    path.style.setProperty("--weight", weight.toFixed(3));
    return path;
  }

  function way(start, end) {
    const { x, y } = start;
    if (start === end) return `M${x - 5},${y} c-16,-26 26,-26 10,0`;
    if (end.y < y) return `M${x},${y} C${x},${y - 40} ${end.x},${end.below + 40} ${end.x},${end.below}`;
    if (end.y > y) {
      return `M${x},${start.below} C${x},${start.below + 40} ${end.x},${end.y - 40} ${end.x},${end.y}`;
    }
    const room = y < 60 ? 44 : 30; // above the first line there is more
    const up = y - Math.min(room, 14 + Math.abs(end.x - x) / 7) * (4 / 3);
    const aside = (end.x - x) * 0.15;
    return `M${x},${y} C${x + aside},${up} ${end.x - aside},${up} ${end.x},${y}`;
  }

  // ---- heads

  function drawHeads() {
    grid.replaceChildren(
      ...told().weights.map((heads, layer) =>
        make("div", { class: "ae-layer" },
          make("span", { class: "ae-name" }, `layer ${layer + 1}`),
          ...heads.map((_, head) =>
            make("button", {
              type: "button",
              class: "ae-head",
              "data-layer": layer,
              "data-head": head,
              tabindex: layer === state.layer && head === state.head ? 0 : -1,
              "aria-pressed": String(layer === state.layer && head === state.head),
              "aria-label": `head ${named(layer, head)}`,
              on: { click: () => choose(layer, head) },
            }, named(layer, head), make("span", { class: "ae-strip", "aria-hidden": "true" }))))),
    );
  }

  function choose(layer, head) {
    Object.assign(state, { layer, head });
    for (const button of grid.querySelectorAll("button")) {
      const mine = +button.dataset.layer === layer && +button.dataset.head === head;
      button.setAttribute("aria-pressed", String(mine));
      button.setAttribute("tabindex", mine ? 0 : -1);
    }
    drawLook();
    drawTries();
    say();
  }

  // ---- changes

  const sameChange = (change) =>
    state.change !== null &&
    ["layer", "head", "at", "other"].every((name) => state.change[name] === change[name]);

  function drawTries() {
    const { layer, head, word } = state;
    const name = named(layer, head);
    const off = { layer, head, other: null };
    const focused = [...tries.querySelectorAll("button")].indexOf(document.activeElement);
    const option = (label, change) =>
      make("button", {
        type: "button",
        class: "ae-try",
        "aria-pressed": String(change === null ? state.change === null : sameChange(change)),
        on: { click: () => ask(change === null || sameChange(change) ? null : change) },
      }, label);
    const others = stories
      .map((story, place) => ({ label: story.label, place, n: story.words.length }))
      .filter(({ place, n }) => place !== state.story && word < n);
    const rows = [
      make("div", { class: "ae-row" },
        option("nothing is changed", null)),
      make("div", { class: "ae-row" },
        make("span", {}, `head ${name} is switched off`),
        option(`at ${quoted(word)} only`, { ...off, at: word }),
        option("at every word", { ...off, at: null })),
    ];
    if (others.length) {
      rows.push(
        make("div", { class: "ae-row" },
          make("span", {}, `head ${name} at ${quoted(word)} takes its result from`),
          ...others.map(({ label, place }) => option(label, { ...off, at: word, other: place }))),
      );
    }
    tries.replaceChildren(...rows);
    if (focused >= 0) tries.querySelectorAll("button")[focused]?.focus();
  }

  function ask(change) {
    clearTimeout(waiting);
    trouble.textContent = "";
    asked += 1;
    if (change === null) {
      state.change = null;
      show(null);
      return;
    }
    try {
      model.send({ ask: asked, story: state.story, ...change });
    } catch { // the kernel that made this page is gone
      fail(GONE);
      return;
    }
    state.change = change;
    root.classList.add("ae-waiting");
    waiting = setTimeout(() => { trouble.textContent = SILENT; }, PATIENCE);
    drawTries();
  }

  function fail(why) {
    state.change = null;
    show(null);
    trouble.textContent = why;
  }

  function hear(answer) {
    if (answer.ask !== asked || state.change === null) return;
    clearTimeout(waiting);
    trouble.textContent = "";
    if (answer.error) fail(answer.error);
    else show(answer);
  }

  function show(after) {
    state.after = after;
    root.classList.remove("ae-waiting");
    root.classList.toggle("ae-changed", after !== null);
    drawLook();
    drawTries();
    drawBars();
    say();
  }

  function changeInWords() {
    if (state.after === null) return "";
    const { layer, head, at, other } = state.change;
    const where = at === null ? "at every word" : `at ${quoted(at)}`;
    const name = `head ${named(layer, head)}`;
    return other === null
      ? `${name} switched off ${where}`
      : `${name} ${where} with its result from “${stories[other].label}”`;
  }

  // ---- the next word

  function drawBars() {
    const before = told().chances;
    const now = read().chances;
    const most = (word) => Math.max(before[word], now[word]);
    const shown = vocabulary
      .map((_, word) => word)
      .sort((a, b) => most(b) - most(a))
      .slice(0, MOST)
      .sort((a, b) => before[b] - before[a]);
    const words = told().words;
    next.textContent = `The next word, after “… ${words.slice(-3).join(" ")}”`;
    legend.replaceChildren(
      ...(state.after === null
        ? ["Chance of each next word"]
        : [
            make("span", { class: "ae-key ae-before" }), "before",
            make("span", { class: "ae-key ae-now" }), changeInWords(),
          ]),
    );
    const old = new Map([...bars.children].map((bar) => [bar.dataset.word, bar]));
    bars.replaceChildren(
      ...shown.map((word) => {
        const name = vocabulary[word];
        const bar = old.get(name) ?? make(
          "div", { class: "ae-bar", role: "listitem", "data-word": name },
          make("span", { class: "ae-name" }, name),
          make("span", { class: "ae-track" },
            make("span", { class: "ae-now" }), make("span", { class: "ae-before" })),
          make("span", { class: "ae-value" }));
        const moved = state.after !== null;
        bar.querySelector(".ae-value").replaceChildren(
          ...(moved ? [make("span", { class: "ae-was" }, `${two(before[word])} → `)] : []),
          make("b", {}, two(now[word])));
        // after the bar has been put into the page, so that it grows
        requestAnimationFrame(() => {
          bar.querySelector(".ae-now").style.width = `${100 * now[word]}%`;
          bar.querySelector(".ae-before").style.width = moved ? `${100 * before[word]}%` : "0";
        });
        return bar;
      }),
    );
  }

  function say() {
    const words = [inWords(state.word).map((part) => part.textContent ?? part).join("")];
    if (state.after !== null) {
      const before = told().chances;
      const now = state.after.chances;
      const moves = vocabulary
        .map((name, word) => ({ name, word, by: Math.abs(now[word] - before[word]) }))
        .filter(({ by }) => by >= SEEN)
        .sort((a, b) => b.by - a.by)
        .slice(0, 3)
        .map(({ name, word }) => `${name} from ${two(before[word])} to ${two(now[word])}`);
      const said = moves.length ? moves.join(", ") : "no chance of a next word changes";
      words.push(`With ${changeInWords()}: ${said}.`);
    }
    heard.textContent = words.join(" ");
  }

  // ---- stories

  function drawPicker() {
    picker.replaceChildren(
      make("span", {}, "Story: "),
      ...stories.map(({ label }, place) =>
        make("button", {
          type: "button",
          class: "ae-try",
          "aria-pressed": String(place === state.story),
          on: { click: () => tell(place) },
        }, label)),
    );
  }

  function tell(place) {
    const last = state.word === told().words.length - 1;
    const n = stories[place].words.length;
    const kept = state.change;
    state.story = place;
    state.word = last ? n - 1 : Math.min(state.word, n - 1);
    state.over = null;
    state.after = null;
    [...picker.querySelectorAll("button")].forEach((button, at) =>
      button.setAttribute("aria-pressed", String(at === place)));
    drawWords();
    const fits = kept !== null && kept.other !== place && (kept.at === null || kept.at < n);
    ask(fits ? kept : null);
    drawLook();
  }

  // ---- the keyboard

  const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };

  function step(event) {
    const key = event.key;
    if (!(key in STEPS) && !["Enter", " ", "Home", "End"].includes(key)) return;
    event.stopPropagation(); // the notebook would go to another cell, or into this one
    const places = event.target.closest(".ae-words, .ae-heads");
    if (!places || key === "Enter" || key === " ") return;
    event.preventDefault();
    const buttons = [...places.querySelectorAll("button")];
    const at = buttons.indexOf(event.target);
    const to = key === "Home" ? 0 : key === "End" ? buttons.length - 1
      : Math.max(0, Math.min(buttons.length - 1, at + STEPS[key]));
    buttons[to].focus();
    if (places === grid) buttons[to].click();
  }

  root.addEventListener("keydown", step);
  model.on("msg:custom", hear);
  const watcher = new ResizeObserver(drawArcs);
  watcher.observe(page);
  el.append(root);
  drawPicker();
  drawWords();
  drawHeads();
  drawLook();
  drawTries();
  drawBars();
  say();
  return () => {
    model.off("msg:custom", hear);
    watcher.disconnect();
    clearTimeout(waiting);
  };
}

export default { render };
