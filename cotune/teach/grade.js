(() => {
  const box = document.currentScript.closest(".cotune-answer");
  const field = box.querySelector("input, select"), out = box.querySelector("output");
  const check = () => {
    const text = field.value.trim().replace(/[,\s]/g, ""), value = Number(text);
    if (text === "") out.value = "Not answered yet.";
    else if (!Number.isFinite(value)) out.value = "This wants one number, such as 12.5.";
    else {
      const hit = JSON.parse(box.dataset.verdicts).find(([low, high]) => low <= value && value <= high);
      out.value = hit ? hit[2] : box.dataset.else;
    }
  };
  box.querySelector("button").addEventListener("click", check);
  field.addEventListener(field.options ? "change" : "keydown", e => { if (!e.key || e.key === "Enter") check(); });
})();
