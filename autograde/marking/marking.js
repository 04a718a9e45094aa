"use strict";
// Saves each mark at once, with the mark that was seen; the server refuses when that is outdated.

const main = document.querySelector("main");
const articles = [...document.querySelectorAll("article")];
const counts = document.querySelectorAll("#waiting, [aria-current] .count");
const unsaved = document.getElementById("unsaved");
const said = document.getElementById("said");
let current = articles[0];

const field = (article, name) => article.querySelector(`[name=${name}]`);

function typed(article) {
  const text = field(article, "score").value.trim().replace(",", ".");
  return {
    score: text === "" ? null : Number(text),
    comment: field(article, "comment").value.trim(),
  };
}

function differs(article) {
  const mark = typed(article);
  const other = mark.score !== article.before.score || mark.comment !== article.before.comment;
  return other || article.dataset.state === "unsaved";
}

function tell(article, state, text) {
  article.dataset.state = state;
  article.querySelector(".state").textContent = text;
  said.textContent = text;
  const left = articles.filter((each) => each.dataset.state === "unsaved").length;
  unsaved.textContent = left ? `${left} not saved` : "";
}

function accept(article, mark, seen) {
  article.before = mark;
  article.dataset.seen = seen;
  tell(article, mark.waits ? "waits" : "marked", mark.waits ? "awaits marking" : "saved");
}

function save(article) {
  const mark = typed(article);
  if (Number.isNaN(mark.score)) return tell(article, "unsaved", "not saved: not a number");
  const text = JSON.stringify(mark);
  if (article.sending === text) return; // Enter saves, and so does leaving the field
  article.sending = text;
  tell(article, "unsaved", "saving");
  // one at a time for each answer: the next one has to say what this one saves
  article.queue = (article.queue || Promise.resolve()).then(async () => {
    try {
      const answer = await fetch(main.dataset.address, {
        method: "PUT",
        headers: { "Content-Type": "application/json", "X-XSRFToken": main.dataset.xsrf },
        body: JSON.stringify({ grade: article.dataset.grade, seen: article.dataset.seen, ...mark }),
      });
      const told = await answer.json();
      if (answer.ok) {
        accept(article, told.now, told.seen);
        for (const count of counts) count.textContent = told.waiting;
        addComment(told.now.comment);
      } else {
        tell(article, "unsaved", `not saved: ${told.message}`);
      }
    } catch (error) {
      tell(article, "unsaved", `not saved: ${error.message}`);
    }
    if (article.sending === text) article.sending = null;
  });
}

function go(article) {
  if (!article) return;
  current = article;
  field(article, "score").focus({ preventScroll: true });
  field(article, "score").select();
  article.scrollIntoView({ block: "start" });
}

function nextThatWaits(article) {
  const at = articles.indexOf(article);
  const others = [...articles.slice(at + 1), ...articles.slice(0, at)];
  return others.find((each) => each.before.waits && each.dataset.state === "waits");
}

function addComment(text) {
  const list = document.getElementById("comments");
  const known = [...list.querySelectorAll("button")].some((each) => each.dataset.text === text);
  if (!text || known) return;
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.dataset.text = text;
  button.textContent = text;
  button.onclick = () => insert(text);
  item.append(button);
  list.append(item);
}

function insert(text) {
  const comment = field(current, "comment");
  if (!comment.value.includes(text)) comment.value = `${comment.value} ${text}`.trim();
  save(current);
  field(current, "score").focus({ preventScroll: true });
}

for (const article of articles) {
  article.before = JSON.parse(article.dataset.before);
  article.addEventListener("focusin", () => { current = article; });
  article.addEventListener("change", () => { if (differs(article)) save(article); });
  article.addEventListener("keydown", (event) => {
    const score = event.target.name === "score";
    const at = articles.indexOf(article);
    if (event.key === "Enter" && (score || event.ctrlKey)) {
      event.preventDefault();
      const empty = typed(article).score === null;
      if (differs(article) || (article.before.waits && !empty)) save(article);
      go(nextThatWaits(article));
    } else if (score && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      go(articles[at + (event.key === "ArrowDown" ? 1 : -1)]);
    }
  });
}

document.addEventListener("keydown", (event) => {
  const digit = event.altKey && /^Digit([1-9])$/.exec(event.code);
  const button = digit && document.querySelectorAll("#comments button")[digit[1] - 1];
  if (button && current) {
    event.preventDefault();
    insert(button.dataset.text);
  }
});

document.getElementById("names").addEventListener("change", (event) => {
  for (const name of document.querySelectorAll(".name")) name.hidden = event.target.checked;
});

window.addEventListener("beforeunload", (event) => {
  if (articles.some(differs)) {
    event.preventDefault();
  }
});

function leaveRoomForHeader() {
  const height = document.querySelector("header").offsetHeight;
  document.documentElement.style.setProperty("--header", `${height}px`);
}

window.addEventListener("resize", leaveRoomForHeader);
leaveRoomForHeader();
for (const text of JSON.parse(document.getElementById("comments").dataset.given)) addComment(text);
go(articles.find((article) => article.before.waits));
