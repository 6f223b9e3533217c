(() => {
  const box = document.currentScript.closest(".cotune-answer");
  const field = box.querySelector("input, select"), button = box.querySelector("button"), out = box.querySelector("output");
  // How a number may be written: the same as PLAIN and GROUPED in grade.py.
  const number = /^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d{1,3}(,\d{3})+(\.\d*)?)$/;
  const reply = () => {
    const text = field.value.replace(/\s/g, ""), value = Number(text.replace(/,/g, ""));
    if (text === "") return "Not answered yet.";
    if (!number.test(text) || !Number.isFinite(value)) return box.dataset.wanted;
    if (box.dataset.whole && !Number.isInteger(value)) return "Not yet. It must be a whole number.";
    const hit = JSON.parse(box.dataset.verdicts).find(([low, high]) => low <= value && value <= high);
    return hit ? hit[2] : box.dataset.else;
  };
  const check = () => { out.value = reply(); };
  field.disabled = button.disabled = false;
  button.addEventListener("click", check);
  field.addEventListener(field.options ? "change" : "keydown", e => { if (!e.key || e.key === "Enter") check(); });
})();
