// What a mark says when it is pointed at or focused, and the way to the other side when it is pressed.
(() => {
  const tip = document.getElementById("tip");

  const line = (tag, text) => {
    const node = document.createElement(tag);
    node.dir = "auto";
    node.textContent = text;
    tip.append(node);
  };

  const show = (mark) => {
    const { verdict, reason, kind, detail, nearest } = mark.dataset;
    tip.replaceChildren();
    line("strong", [verdict, reason].filter(Boolean).join(" \u2013 "));
    if (kind) line("div", kind);
    if (detail && detail !== reason) line("div", detail);
    if (nearest) line("div", `${tip.dataset.nearestWord}: ${nearest}`);
    tip.hidden = false;
    const box = mark.getBoundingClientRect();
    const left = Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    const below = box.bottom + 6;
    const fits = below + tip.offsetHeight <= document.documentElement.clientHeight;
    tip.style.left = `${Math.max(8, left) + scrollX}px`;
    tip.style.top = `${(fits ? below : Math.max(0, box.top - tip.offsetHeight - 6)) + scrollY}px`;
  };

  const hide = () => { tip.hidden = true; };
  const markOf = (event) => event.target instanceof Element ? event.target.closest(".mark[role=button]") : null;

  const go = (mark) => {
    const other = document.getElementById(mark.dataset.target ?? "");
    if (!other) return;
    document.querySelectorAll(".mark.here").forEach((node) => node.classList.remove("here"));
    other.classList.add("here");
    hide();
    other.focus({ preventScroll: true });
    other.scrollIntoView({ block: "center" });
  };

  document.addEventListener("mouseover", (event) => { const mark = markOf(event); mark ? show(mark) : hide(); });
  document.addEventListener("focusin", (event) => { const mark = markOf(event); mark ? show(mark) : hide(); });
  document.addEventListener("focusout", hide);
  document.addEventListener("click", (event) => { const mark = markOf(event); if (mark) go(mark); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const mark = markOf(event);
    if (!mark || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    go(mark);
  });
})();
