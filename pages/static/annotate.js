// The one script of the page on which people vote. All texts are data: they are put in as text, never as markup.
// A page that stands alone has its battles and hands out a table; a page of a server (`live`) asks for battles under a
// name, and sends every vote. A vote that cannot be sent stays in the browser until it can.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const live = data.live;
  let key = "";
  let count = 0;
  const KEYS = { 1: "answer_1", 2: "answer_2", 0: "tie" };
  const COLUMNS = ["page", "battle", "answer_1", "answer_2", "winner", "annotator", "note", "voted_at"];

  // What a person has done so far: votes and notes by the number of the battle, and the battle that is shown; of a
  // server those that are still to be sent, each with the time of its last change.
  const fresh = () => ({ votes: {}, notes: {}, unsent: {}, shown: 0, name: data.annotator });
  let state = fresh();
  let kept = true;
  const load = () => {
    try {
      state = { ...fresh(), ...JSON.parse(localStorage.getItem(key) || "{}") };
    } catch { kept = false; }
    state.shown = Math.min(Math.max(0, state.shown), count);
  };
  const save = () => {
    try { localStorage.setItem(key, JSON.stringify(state)); kept = true; } catch { kept = false; }
    at("lost").hidden = kept;
  };

  // What the server has goes before what this browser remembers, but for votes that have not been sent.
  const reconcile = () => {
    data.battles.forEach((battle, place) => {
      if (Object.hasOwn(state.unsent, place)) return;
      if (battle.vote) {
        state.votes[place] = { winner: battle.vote.winner, at: (state.votes[place] || {}).at || "" };
        state.notes[place] = battle.vote.note || state.notes[place] || "";
      } else if (state.votes[place]) state.unsent[place] = Date.now();
    });
  };
  const waiting = () => Object.keys(state.unsent).length;
  const mark = (place) => { if (live) state.unsent[place] = Date.now() + Math.random(); };
  const AGAIN_MS = 10000;
  let sending = false;
  let timer = 0;
  const complain = (sentence) => {
    const number = waiting();
    at("unsent").textContent = number
      ? `${number === 1 ? "One vote is" : `${number} votes are`} not in the store yet: ${sentence} They stay in this browser and are sent again by themselves.`
      : sentence;
    at("unsent").hidden = !sentence;
  };
  const reason = async (answer) => {
    try { return `${(await answer.json()).error}.`.replace(/\.\.$/, "."); } catch { return `the server refuses them (${answer.status}).`; }
  };
  const send = async () => {
    if (!live || sending) return;
    sending = true;
    clearTimeout(timer);
    const mine = key;
    let trouble = "";
    let refused = "";
    try {
      while (!trouble && key === mine && waiting()) {
        const place = Object.keys(state.unsent)[0];
        const stamp = state.unsent[place];
        const [one, other] = data.battles[place].answers;
        const body = { token: live.token, annotator: state.name, answer_1: one.code, answer_2: other.code,
          winner: state.votes[place].winner, note: state.notes[place] || "" };
        const answer = await fetch(live.vote, { method: "POST", credentials: "same-origin",
          headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
        // What is wrong with the vote itself stays wrong: it is not sent again, and does not hold up the others.
        if (answer.status === 400 || answer.status === 404) refused = await reason(answer);
        else if (!answer.ok) trouble = await reason(answer);
        if ((answer.ok || refused) && key === mine && state.unsent[place] === stamp) { delete state.unsent[place]; save(); }
      }
    } catch { trouble = "the server does not answer."; }
    sending = false;
    if (key !== mine) { send(); return; }
    complain(trouble || refused);
    if (trouble) timer = setTimeout(send, AGAIN_MS);
    summarize();
  };

  const voted = () => Object.keys(state.votes).length;
  // As storage/transfer/delimited.py writes tables: no text is a formula of a spreadsheet, and the header's spelling says
  // that the apostrophe before it is to be taken away again.
  const neutral = (text) => (/^'*[=+\-@]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text);
  const cell = (text) => `"${neutral(String(text).replace(/\s+/g, " ")).replaceAll('"', '""')}"`;
  const table = () => {
    const rows = [`"${COLUMNS[0]}",${COLUMNS.slice(1).join(",")}`];
    data.battles.forEach((battle, place) => {
      const vote = state.votes[place];
      const note = state.notes[place] || "";
      if (!vote && !note) return;
      const name = state.name.trim() || data.annotator;
      rows.push([data.page, place + 1, battle.answers[0].code, battle.answers[1].code, vote ? vote.winner : "", name,
        note, vote ? vote.at : ""].map(cell).join(","));
    });
    return `${rows.join("\n")}\n`;
  };

  // A text of megabytes takes seconds to lay out: a long one is folded until somebody wants all of it.
  const FOLD = 100000;
  const texts = {};
  const put = (name, open) => {
    const text = texts[name];
    const long = text.length > FOLD;
    const button = at(`unfold-${name}`);
    // No letter of two halves is cut in the middle.
    const end = /[\ud800-\udbff]/.test(text.charAt(FOLD - 1)) ? FOLD - 1 : FOLD;
    at(name).textContent = long && !open ? `${text.slice(0, end)}…` : text;
    at(name).classList.toggle("empty", text === "");
    button.hidden = !long;
    button.setAttribute("aria-expanded", String(long && open));
    const size = text.length.toLocaleString("en");
    button.textContent = open ? `Fold the text of ${size} characters` : `Show the whole text, ${size} characters`;
  };
  const fill = (name, text) => {
    texts[name] = text;
    put(name, document.body.classList.contains("whole"));
    at(name).scrollTop = 0;
  };
  const summarize = () => {
    at("voted").textContent = `${voted()} of ${count} voted${live && waiting() ? `, ${waiting()} not sent` : ""}`;
    at("progress").value = voted();
    at("rows").value = table();
    at("resume").hidden = voted() === count;
    if (live) at("where").textContent = waiting() ? "Some votes are not in the store yet." : "All your votes are in the store, and can still be changed.";
    at("left").textContent = count - voted() ? `${count - voted()} battles have no vote yet.` : "All battles have a vote.";
  };
  const show = () => {
    const ended = state.shown >= count;
    at("battle").hidden = ended;
    at("bar").hidden = ended;
    at("end").hidden = !ended;
    at("place").textContent = ended ? "End" : `Battle ${state.shown + 1} of ${count}`;
    summarize();
    if (ended) return;
    const battle = data.battles[state.shown];
    const vote = state.votes[state.shown];
    fill("asked", battle.asked);
    battle.answers.forEach((answer, side) => fill(`text-${side + 1}`, answer.text));
    for (const button of document.querySelectorAll("button.vote")) {
      button.setAttribute("aria-pressed", String(Boolean(vote) && vote.winner === KEYS[button.dataset.key]));
    }
    for (const side of [1, 2]) at(`answer-${side}`).classList.toggle("chosen", Boolean(vote) && vote.winner === KEYS[side]);
    at("note").value = state.notes[state.shown] || "";
    at("noting").hidden = !at("note").value;
    at("back").disabled = state.shown === 0;
  };
  const go = (place) => {
    state.shown = Math.min(Math.max(0, place), count);
    save();
    show();
    window.scrollTo(0, 0);
    (state.shown < count ? at("heading") : at("over")).focus({ preventScroll: true });
  };

  // After a vote comes the next battle that has none, so that one that was changed does not lead through all again.
  const next = () => {
    for (let step = 1; step <= count; step += 1) {
      const place = (state.shown + step) % count;
      if (!state.votes[place]) return place;
    }
    return count;
  };
  const vote = (name) => {
    if (state.shown >= count) return;
    const place = state.shown;
    state.votes[place] = { winner: KEYS[name], at: new Date().toISOString() };
    mark(place);
    go(next());
    send();
  };
  const back = () => go(state.shown - 1);
  const forth = () => go(state.shown + 1);
  const note = () => {
    if (state.shown >= count) return;
    at("noting").hidden = false;
    at("note").focus();
  };
  const whole = () => {
    const all = document.body.classList.toggle("whole");
    at("whole").setAttribute("aria-pressed", String(all));
    for (const name of Object.keys(texts)) put(name, all);
  };

  const download = () => {
    const address = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = `votes-${data.page}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };

  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("input, textarea");
    if (writing) {
      if (event.key === "Escape") writing.blur();
      return;
    }
    if (!key || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const act = Object.hasOwn(KEYS, event.key) ? () => vote(event.key)
      : { n: note, b: back, Backspace: back, f: forth, w: whole }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  for (const button of document.querySelectorAll("button.vote")) button.addEventListener("click", () => vote(button.dataset.key));
  for (const button of document.querySelectorAll("button.unfold")) {
    button.addEventListener("click", () => put(button.getAttribute("aria-controls"), button.getAttribute("aria-expanded") !== "true"));
  }
  at("back").addEventListener("click", back);
  at("again").addEventListener("click", back);
  at("resume").addEventListener("click", () => go(next()));
  at("write").addEventListener("click", note);
  at("whole").addEventListener("click", whole);
  for (const button of document.querySelectorAll("button.download")) button.addEventListener("click", download);
  at("note").addEventListener("input", () => { state.notes[state.shown] = at("note").value; save(); summarize(); });
  at("note").addEventListener("change", () => {
    if (!state.votes[state.shown]) return;
    mark(state.shown);
    save();
    send();
  });
  at("rows").addEventListener("focus", () => at("rows").select());
  window.addEventListener("storage", (event) => {
    if (!key || event.key !== key) return;
    load();
    if (!live) at("name").value = state.name;
    show();
  });

  const begin = (name) => {
    key = live ? `venire-annotate-${data.page}-${name}` : `venire-annotate-${data.page}`;
    count = data.battles.length;
    load();
    at("progress").max = count;
    if (live) {
      reconcile();
      if (state.votes[state.shown]) state.shown = next();
    }
    save();
    show();
  };

  // The name is kept apart from votes: the next sample is voted on under the same one.
  const NAME = "venire-annotate-name";
  const remembered = () => { try { return localStorage.getItem(NAME) || ""; } catch { return ""; } };
  const ask = () => {
    clearTimeout(timer);
    key = "";
    state = fresh();
    for (const id of ["how-far", "battle", "bar", "end", "who", "more"]) at(id).hidden = true;
    at("naming").hidden = false;
    at("name").value = remembered();
    at("name").focus();
  };
  const enter = async (name) => {
    complain("");
    try {
      const answer = await fetch(`${live.battles}?${new URLSearchParams({ annotator: name })}`, { credentials: "same-origin" });
      if (!answer.ok) { ask(); complain(await reason(answer)); return; }
      Object.assign(data, await answer.json());
    } catch {
      ask();
      complain("The server does not answer.");
      return;
    }
    try { localStorage.setItem(NAME, data.annotator); } catch { /* asked for again next time */ }
    at("naming").hidden = true;
    for (const id of ["how-far", "who", "more"]) at(id).hidden = false;
    at("me").textContent = data.annotator;
    begin(data.annotator);
    (state.shown < count ? at("heading") : at("over")).focus({ preventScroll: true });
    send();
  };
  if (live) {
    at("naming").addEventListener("submit", (event) => { event.preventDefault(); enter(at("name").value); });
    at("other").addEventListener("click", ask);
    if (remembered()) enter(remembered()); else ask();
  } else {
    at("name").addEventListener("input", () => { state.name = at("name").value; save(); summarize(); });
    begin(data.annotator);
    at("name").value = state.name;
  }
})();
