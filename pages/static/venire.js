// The one script of Venire's pages. Without it everything works by links and forms; with it pages follow a running
// campaign, a search goes on by itself, and j and k walk through battles.
"use strict";
(() => {
  const main = document.getElementById("main");
  const lost = document.getElementById("lost");
  const say = (sentence) => { lost.textContent = sentence; lost.hidden = !sentence; };
  const fetched = async (address, signal) => {
    const answer = await fetch(address, { signal, headers: { Accept: "text/html" }, credentials: "same-origin" });
    return { status: answer.status, page: new DOMParser().parseFromString(await answer.text(), "text/html") };
  };
  const time = () => new Date().toLocaleTimeString();

  // Parts of the page that change while a campaign runs are marked with data-live and have an id. A part in which the
  // reader is at work (a field has the focus, text is selected, details are open) is left as it is.
  const busy = (part) => {
    const chosen = document.getSelection();
    return part.contains(document.activeElement) || part.querySelector("details[open]")
      || (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode));
  };
  const swap = (page) => {
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const newer = page.getElementById(part.id);
      if (!newer || busy(part) || newer.isEqualNode(part)) continue;
      const scrolled = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
      const adopted = document.importNode(newer, true);
      part.replaceWith(adopted);
      [...adopted.querySelectorAll(".scroll")].forEach((one, place) => { one.scrollLeft = scrolled[place] || 0; });
    }
    // A picture that a run was to draw which has ended is drawn by the server that shows its store now.
    for (const picture of document.querySelectorAll("img")) if (picture.complete && !picture.naturalWidth) picture.src = picture.src;
  };

  let asking = false;
  let again = false;
  let over = false;  // the run has ended, and its server answers for a moment only
  const refresh = async () => {
    if (asking) { again = true; return; }
    asking = true;
    try {
      const { status, page } = await fetched(location.href);
      if (status === 200) swap(page);
    } catch { /* the stream of events says what is wrong */ } finally {
      asking = false;
      if (again) { again = false; setTimeout(refresh, over ? 0 : 1000); }
    }
  };

  // The stream of a hidden tab is closed: a browser has six connections to a server, for all tabs together.
  const follow = (address) => {
    const moves = document.querySelector("[data-live][id]");
    const badge = document.getElementById("running");
    const mark = (words) => { if (badge) { badge.textContent = words; badge.className = words === "running" ? "badge on" : "badge"; } };
    let events = null;
    const begin = () => {
      if (events || over) return;
      events = new EventSource(address);
      events.addEventListener("changed", () => { say(""); mark("running"); if (moves) refresh(); });
      events.addEventListener("ended", (event) => {
        const { ending, follows } = JSON.parse(event.data);
        if (!follows) { over = true; events.close(); }
        else if (!badge || badge.textContent !== "running") { say(""); return; }
        if (moves) refresh();
        mark("ended");
        say(`The run has ended (${ending || "it says no reason"}). The page shows its last state${follows ? ", and follows the next run" : ""}.`);
      });
      events.addEventListener("error", () => {
        if (!over) say(`No answer since ${time()}: the run has ended or was stopped, or the connection is lost. Trying again.`);
      });
    };
    const pause = () => { if (events) events.close(); events = null; };
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) pause();
      else if (!over) { begin(); if (moves) refresh(); }
    });
    if (!document.hidden) begin();
  };
  if (main.dataset.events) follow(main.dataset.events);

  // A page that waits for a computation asks again until it is there; the server answers when it is, or after a second.
  // Where that is a part of the page, the part alone is shown anew, and may wait for the next computation.
  const waits = (page) => page.querySelector("#waiting[data-again]");
  const look = async () => {
    const waiting = waits(document);
    if (!waiting) return;
    const part = waiting.closest("[data-live][id]");
    try {
      const { page } = await fetched(location.href);
      if (part) swap(page);
      else if (!waits(page)) { location.reload(); return; }
      else waiting.querySelector("p").textContent = waits(page).querySelector("p").textContent;
      setTimeout(look, part ? 700 : 200);
    } catch {
      say(`No answer since ${time()}. Trying again.`);
      setTimeout(look, 3000);
    }
  };
  if (waits(document)) setTimeout(look, 100);

  // A search in replies goes on part by part, newest first, until it is stopped or has enough.
  const found = document.getElementById("found");
  const enough = 500;
  if (found && found.dataset.more) {
    const stop = document.getElementById("stop");
    const list = found.querySelector(".hits");
    const ending = new AbortController();
    stop.hidden = false;
    stop.addEventListener("click", () => ending.abort());
    const link = found.querySelector(".go a");
    const more = async () => {
      try {
        while (found.dataset.more && list.children.length < enough && !ending.signal.aborted) {
          const { status, page } = await fetched(found.dataset.more, ending.signal);
          const part = status === 200 && page.getElementById("found");
          if (!part) break;
          for (const hit of [...part.querySelectorAll(".hits > li")]) list.append(document.importNode(hit, true));
          found.querySelector(".far").textContent = part.querySelector(".far").textContent;
          found.dataset.more = part.dataset.more;
          if (link) { if (part.dataset.more) link.href = part.dataset.more; else link.remove(); }
          const nothing = found.querySelector(".nothing");
          if (nothing) nothing.textContent = list.children.length ? "" : part.dataset.more ? "Nothing was found so far." : "Nothing was found.";
        }
      } catch { /* stopped, or the server is gone: what was found stays, and the link goes on from there */ }
      stop.hidden = true;
    };
    more();
  }

  // Empty fields of a filter stay out of the address.
  for (const form of document.querySelectorAll("form.filters[method=get]")) {
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
      setTimeout(() => { for (const field of form.elements) field.disabled = false; });
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, button")) return;
    const rel = { j: "next", k: "prev" }[event.key];
    const link = rel && document.querySelector(`main a[rel=${rel}]`);
    if (link) { event.preventDefault(); link.click(); }
    const field = event.key === "/" && document.getElementById("q");
    if (field) { event.preventDefault(); field.focus(); }
  });
})();
