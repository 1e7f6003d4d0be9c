// Runs before the page is drawn, so that a chosen colour mode never flashes.
(function () {
  var mode = null;
  try { mode = localStorage.getItem("pr-mode"); } catch (error) { mode = null; }
  var root = document.documentElement;
  root.classList.add("pr-js");
  if (mode === "light" || mode === "dark") { root.dataset.theme = mode; }
})();
