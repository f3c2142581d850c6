// Small conveniences. Every page works without them.
"use strict";

(() => {
  const narrow = window.matchMedia("(max-width: 60rem)");

  // On a phone the facets start folded.
  const facets = document.querySelector("details.facets");
  if (facets && narrow.matches) facets.open = false;

  // A changed order is applied at once.
  for (const select of document.querySelectorAll("select[data-submit]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
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
      document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=lax`;
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
          const [, words, counts] = await answer.json();
          list.replaceChildren(...words.map((word, i) => {
            const item = document.createElement("li");
            item.id = `suggestion-${i}`;
            item.setAttribute("role", "option");
            item.setAttribute("aria-selected", "false");
            const shown = document.createElement("span"), count = document.createElement("span");
            shown.textContent = word; count.textContent = counts[i]; count.className = "count";
            item.append(shown, count);
            item.addEventListener("mousedown", (event) => { event.preventDefault(); take(word); });
            item.dataset.word = word;
            return item;
          }));
          current = -1;
          list.hidden = words.length === 0;
          box.setAttribute("aria-expanded", String(words.length > 0));
        } catch { close(); }
      }, 120);
    });
    box.addEventListener("keydown", (event) => {
      if (list.hidden) return;
      if (event.key === "ArrowDown") { event.preventDefault(); mark(current + 1); }
      else if (event.key === "ArrowUp") { event.preventDefault(); mark(current < 0 ? -1 : current - 1); }
      else if (event.key === "Escape") { event.preventDefault(); close(); }
      else if (event.key === "Enter" && current >= 0) { event.preventDefault(); take(list.children[current].dataset.word); }
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

  // What cannot be undone asks first.
  for (const form of document.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (event) => { if (!window.confirm(form.dataset.confirm)) event.preventDefault(); });
  }
})();
