(() => {
  const box = document.currentScript.closest(".explorer");
  const pic = box.querySelector(".ex-pic"), say = box.querySelector(".ex-say");
  const knobs = [...box.querySelectorAll(".ex-row input, .ex-row select")];
  const read = k => k.options ? k.selectedIndex : +k.value;
  const write = (k, i) => k.options ? k.selectedIndex = i : k.value = i;
  const size = k => k.options ? k.options.length : +k.max + 1;
  const frame = () => knobs.reduce((n, k) => n * size(k) + read(k), 0);
  const home = knobs.map(read);
  let data, at = frame();

  const shown = k => k.options ? k.options[k.selectedIndex].text : JSON.parse(k.dataset.shown)[read(k)];
  const show = () => {
    const n = frame();
    if (n === at) return;
    data ||= JSON.parse(box.querySelector(".ex-data").textContent);
    const runs = data.frames[n], out = [];
    for (let i = 0; i < runs.length; i += 2) out.push(...data.lines.slice(runs[i], runs[i] + runs[i + 1]));
    pic.innerHTML = out.join("");
    pic.setAttribute("aria-label", data.says[n]);
    say.textContent = data.says[n];
    for (const k of knobs) {
      k.nextElementSibling.value = shown(k);
      if (!k.options) k.setAttribute("aria-valuetext", shown(k));
    }
    at = n;
  };
  const set = v => { knobs.forEach((k, i) => write(k, v[i])); show(); };

  // A guess is kept in this browser, so that the explorer at the end of the lesson starts from it.
  const store = k => "cotune:" + k.dataset.keep;
  for (const k of knobs) {
    k.disabled = false;
    if (!k.dataset.keep) continue;
    try { const v = localStorage.getItem(store(k)); if (v !== null && +v < size(k)) write(k, +v); } catch {}
  }
  show();
  box.addEventListener("input", e => {
    show();
    if (e.target.dataset.keep) {
      try { localStorage.setItem(store(e.target), read(e.target)); } catch {}
      for (const k of document.querySelectorAll(`[data-keep="${e.target.dataset.keep}"]`)) {
        if (k === e.target || read(k) === read(e.target)) continue;
        write(k, read(e.target));
        k.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
  });

  let kept;                                  // paper shows the frame that the text speaks of
  addEventListener("beforeprint", () => { kept = knobs.map(read); set(home); });
  addEventListener("afterprint", () => { if (kept) set(kept); });
})();
