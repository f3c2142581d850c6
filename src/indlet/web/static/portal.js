// Small conveniences. Every page works without them.
"use strict";

(() => {
  const root = document.documentElement.dataset.root; // the path that the node is mounted below
  const narrow = window.matchMedia("(max-width: 60rem)");

  // On a phone the facets start folded.
  const facets = document.querySelector("details.facets");
  if (facets && narrow.matches) facets.open = false;

  // A changed order is applied at once.
  for (const select of document.querySelectorAll("select[data-submit]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }

  // Years can be chosen by dragging across the bars; the form below them does the same.
  const years = document.querySelector("svg.years"), chosen = document.querySelector(".years-form");
  if (years && chosen) {
    const { first, step, span } = years.dataset, NS = "http://www.w3.org/2000/svg";
    const slot = (event) => {
      const box = years.getBoundingClientRect(), wide = years.viewBox.baseVal.width;
      const x = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.9999) * wide;
      return Math.floor(x / Number(step));
    };
    let from = null, to = null, shade = null;
    years.addEventListener("dragstart", (event) => event.preventDefault());
    years.addEventListener("pointerdown", (event) => { if (event.button === 0) from = to = slot(event); });
    years.addEventListener("pointermove", (event) => {
      if (from === null || (slot(event) === to && !shade)) return;
      to = slot(event);
      if (!shade) {
        years.setPointerCapture(event.pointerId);
        years.querySelector(".shade")?.remove();
        shade = document.createElementNS(NS, "rect");
        shade.setAttribute("class", "shade"); shade.setAttribute("y", "0");
        shade.setAttribute("height", years.viewBox.baseVal.height);
        years.prepend(shade);
      }
      shade.setAttribute("x", Math.min(from, to) * step);
      shade.setAttribute("width", (Math.abs(to - from) + 1) * step);
    });
    years.addEventListener("pointercancel", () => { from = shade = null; });
    // A click above a low bar chooses it, too.
    years.addEventListener("click", (event) => {
      if (event.target === years) { from = to = slot(event); shade = years; choose(); }
    });
    const choose = () => {
      if (shade) {
        const low = Math.min(from, to), high = Math.max(from, to);
        chosen.since.value = Number(first) + low * span;
        chosen.until.value = Number(first) + (high + 1) * span - 1;
        years.addEventListener("click", (event) => event.preventDefault(), { once: true, capture: true });
        chosen.requestSubmit();
      }
      from = null;
    };
    years.addEventListener("pointerup", choose);
  }

  // The appearance changes without leaving the page; the link would do the same by way of the server.
  const theme = document.getElementById("theme");
  const dark = () => {
    const set = document.documentElement.dataset.theme;
    return set ? set === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  };
  if (theme) {
    const words = { light: theme.dataset.light, dark: theme.dataset.dark };
    const show = () => { theme.textContent = dark() ? words.light : words.dark; };
    theme.addEventListener("click", (event) => {
      event.preventDefault();
      const next = dark() ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      document.cookie = `theme=${next}; path=${root || "/"}; max-age=31536000; samesite=lax`;
      show();
    });
    show();
  }

  // "/" goes to the query box, as on many sites.
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = document.getElementById("q");
    if (box) { event.preventDefault(); box.focus(); box.select(); }
  });

  // Suggestions: a combobox as the ARIA authoring practices describe it.
  for (const form of document.querySelectorAll("form[data-suggest]")) suggest(form);

  function suggest(form) {
    const box = form.querySelector("input[type=search]");
    const list = document.createElement("ul");
    list.className = "suggestions";
    list.id = "suggestions";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", box.labels[0]?.textContent ?? "");
    list.hidden = true;
    box.after(list);
    for (const [name, value] of Object.entries({
      role: "combobox", "aria-controls": list.id, "aria-expanded": "false", "aria-autocomplete": "list",
    })) box.setAttribute(name, value);
    let current = -1, wanted = 0, timer = 0;

    const close = () => {
      list.hidden = true; current = -1;
      box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant");
    };
    const mark = (next) => {
      const items = [...list.children];
      current = (next + items.length) % items.length;
      items.forEach((item, i) => item.setAttribute("aria-selected", String(i === current)));
      box.setAttribute("aria-activedescendant", items[current].id);
    };
    const take = (text) => { box.value = text; close(); form.requestSubmit(); };

    box.addEventListener("input", () => {
      clearTimeout(timer);
      const text = box.value;
      if (text.trim().length < 2) { close(); return; }
      timer = setTimeout(async () => {
        const turn = ++wanted;
        try {
          const answer = await fetch(`${form.dataset.suggest}?q=${encodeURIComponent(text)}`);
          if (!answer.ok || turn !== wanted || document.activeElement !== box) return;
          const { completions, hits } = await answer.json();
          const option = (left, right, taken) => {
            const item = document.createElement("li");
            item.setAttribute("role", "option");
            item.setAttribute("aria-selected", "false");
            const shown = document.createElement("span"), count = document.createElement("span");
            shown.textContent = left; count.textContent = right; count.className = "count";
            item.append(shown, count);
            item.addEventListener("mousedown", (event) => { event.preventDefault(); taken(); });
            item.taken = taken;
            return item;
          };
          const number = (n) => n.toLocaleString(document.documentElement.lang);
          const words = completions.map((one) => option(
            one.kind === "word" ? one.query : one.word,
            [form.dataset[one.kind], number(one.records)].filter(Boolean).join(" · "), () => take(one.query),
          ));
          const records = hits.map((one) => option(one.title, one.about, () => { location.href = root + one.href; }));
          for (const item of records) item.className = "hit";
          list.replaceChildren(...words, ...records);
          [...list.children].forEach((item, i) => { item.id = `suggestion-${i}`; });
          current = -1;
          list.hidden = list.children.length === 0;
          box.setAttribute("aria-expanded", String(!list.hidden));
        } catch { close(); }
      }, 120);
    });
    box.addEventListener("keydown", (event) => {
      if (list.hidden) return;
      if (event.key === "ArrowDown") { event.preventDefault(); mark(current + 1); }
      else if (event.key === "ArrowUp") { event.preventDefault(); mark(current < 0 ? -1 : current - 1); }
      else if (event.key === "Escape") { event.preventDefault(); close(); }
      else if (event.key === "Enter" && current >= 0) { event.preventDefault(); list.children[current].taken(); }
    });
    box.addEventListener("blur", close);
  }

  // Comparing: a record under the pointer or the focus shows its way through all rankings.
  const comparison = document.querySelector(".compare");
  if (comparison) {
    const light = (event, on) => {
      const id = event.target.closest?.("[data-record]")?.dataset.record;
      if (!id) return;
      for (const path of comparison.querySelectorAll("path")) {
        path.classList.toggle("lit", on && path.dataset.record === id);
      }
    };
    for (const [name, on] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
      comparison.addEventListener(name, (event) => light(event, on));
    }
  }

  // A click on a record page that leads to its owner is counted, without saying who clicked.
  if (location.pathname.startsWith(`${root}/record`)) {
    document.addEventListener("click", (event) => {
      if (event.target.closest?.("a[rel~=external]")) {
        navigator.sendBeacon(`${root}/clicks`, new URLSearchParams({ page: location.pathname + location.search }));
      }
    });
  }

  // The desk: parts of a page that are alive fetch themselves anew while something runs.
  for (const part of document.querySelectorAll("[data-live]")) live(part);

  function live(part) {
    const again = async () => {
      try {
        const answer = await fetch(part.dataset.live, { headers: { Accept: "text/html" } });
        if (answer.ok && !answer.redirected) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          const fresh = page.getElementById(part.id);
          if (fresh && fresh.innerHTML !== part.innerHTML) renew(part, fresh);
        }
      } catch { /* the server may be restarting; the next turn tries again */ }
      setTimeout(again, pause());
    };
    // Often while something moves, seldom while nothing does or nobody looks.
    const pause = () => (document.hidden ? 15000 : part.querySelector("progress") ? 700 : 3000);
    setTimeout(again, pause());
  }

  // New content; whoever was at a link or button in the old stays at the same one.
  function renew(part, fresh) {
    const reachable = () => [...part.querySelectorAll("a[href], button, [tabindex]")];
    const at = reachable().indexOf(document.activeElement);
    part.replaceChildren(...fresh.childNodes);
    if (at >= 0) reachable()[at]?.focus({ preventScroll: true });
  }

  // A form of the API sends what was filled in, and nothing else.
  for (const form of document.querySelectorAll("form[data-filled-only]")) {
    form.addEventListener("formdata", (event) => {
      for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
    });
  }

  // Lists that this browser keeps, and nobody else: marked records, the last queries.
  const kept = (name) => {
    try { const found = JSON.parse(localStorage.getItem(name) ?? "[]"); return Array.isArray(found) ? found : []; }
    catch { return []; }
  };
  const keep = (name, list) => { try { localStorage.setItem(name, JSON.stringify(list)); } catch { /* it is full, or forbidden */ } };

  const MOST_MARKED = 500, MOST_QUERIES = 12;
  const same = (one, id, source) => one.id === id && one.source === source;
  // What the list keeps of a record, as its article says it.
  const described = (button) => {
    const article = button.closest("article"), link = article.querySelector("h2 a[href]");
    const year = article.querySelector(".byline")?.textContent.match(/\b\d{4}\b/)?.[0] ?? "";
    const people = article.querySelector(".byline b")?.textContent
      ?? [...article.querySelectorAll(".creators > a")].slice(0, 3).map((one) => one.textContent).join("; ");
    const path = article.querySelector("h1") ? location.pathname + location.search : link.getAttribute("href");
    return {
      href: path.slice(root.length), title: article.querySelector("h1, h2").textContent.trim(),
      by: [people, year].filter(Boolean).join(" "),
    };
  };
  const tell = () => {
    const menu = document.getElementById("marked-link"), marked = kept("marked");
    const count = menu?.querySelector(".count");
    if (count) { count.textContent = marked.length; count.hidden = marked.length === 0; }
    for (const button of document.querySelectorAll("[data-mark]")) {
      const on = marked.some((one) => same(one, button.dataset.mark, button.dataset.source));
      button.hidden = false;
      button.setAttribute("aria-pressed", String(on));
      button.title = on ? menu.dataset.on : menu.dataset.off;
      if (button.closest(".actions")) button.textContent = button.title;
      button.setAttribute("aria-label", `${menu.dataset.off}: ${described(button).title}`);
    }
  };
  for (const button of document.querySelectorAll("[data-mark]")) {
    button.addEventListener("click", () => {
      const { mark: id, source } = button.dataset, { href, title, by } = described(button);
      const others = kept("marked").filter((one) => !same(one, id, source));
      const on = button.getAttribute("aria-pressed") === "true";
      keep("marked", on ? others : [...others, { id, source, href, title, by }].slice(-MOST_MARKED));
      tell();
    });
  }
  tell();
  window.addEventListener("storage", tell);

  const list = document.getElementById("marked");
  if (list) {
    const show = () => {
      const marked = kept("marked");
      list.hidden = marked.length === 0;
      document.getElementById("marked-none").hidden = marked.length > 0;
      list.querySelector("ol").replaceChildren(...marked.map((one) => {
        const item = document.createElement("li"), link = document.createElement("a");
        const by = document.createElement("span"), field = document.createElement("input"), off = document.createElement("button");
        link.textContent = one.title;
        // Only to ourselves, whatever stands in the list.
        link.href = root + (String(one.href).startsWith("/record") ? one.href : "/");
        by.textContent = one.by; by.className = "byline small";
        field.type = "hidden"; field.name = "record"; field.value = `${one.source}\n${one.id}`;
        off.type = "button"; off.className = "mark"; off.textContent = "×";
        off.setAttribute("aria-label", `${list.dataset.remove}: ${one.title}`);
        off.addEventListener("click", () => { keep("marked", kept("marked").filter((other) => !same(other, one.id, one.source))); show(); tell(); });
        item.append(link, by, off, field);
        return item;
      }));
    };
    const clear = document.getElementById("marked-clear");
    clear.addEventListener("click", () => { if (window.confirm(clear.dataset.ask)) { keep("marked", []); show(); tell(); } });
    show();
  }

  // The last queries: noted on a result page, shown at the start.
  const asked = document.querySelector("#results-title") && document.getElementById("q")?.value.trim();
  if (asked && asked !== "*") {
    keep("queries", [asked, ...kept("queries").filter((one) => one !== asked)].slice(0, MOST_QUERIES));
  }
  const past = document.getElementById("history");
  if (past && kept("queries").length) {
    past.querySelector("ul").replaceChildren(...kept("queries").map((one) => {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = `${root}/?q=${encodeURIComponent(one)}`; link.textContent = one;
      item.append(link);
      return item;
    }));
    past.querySelector("button").addEventListener("click", () => { keep("queries", []); past.hidden = true; });
    past.hidden = false;
  }

  // A citation goes to the clipboard; where that is not allowed, it is selected.
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy);
      try { await navigator.clipboard.writeText(text.textContent); }
      catch { getSelection().selectAllChildren(text); document.execCommand("copy"); }
      const before = button.textContent;
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = before; }, 1500);
    });
  }

  // What cannot be undone asks first.
  for (const form of document.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (event) => { if (!window.confirm(form.dataset.confirm)) event.preventDefault(); });
  }
})();
