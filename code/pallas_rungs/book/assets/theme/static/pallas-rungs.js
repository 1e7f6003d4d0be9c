// What a page does beyond being read: colour mode, copy buttons, and where the reader is.
(function () {
  "use strict";
  var root = document.documentElement;

  function startMode() {
    var button = document.querySelector(".pr-mode");
    if (!button) { return; }
    var names = { auto: "as the system", light: "light", dark: "dark" };
    var order = ["auto", "light", "dark"];
    function show(mode) {
      if (mode === "auto") { delete root.dataset.theme; } else { root.dataset.theme = mode; }
      button.dataset.mode = mode;
      button.setAttribute("aria-label", "Colours: " + names[mode]);
      button.title = "Colours: " + names[mode];
    }
    var mode = root.dataset.theme || "auto";
    button.hidden = false;
    show(mode);
    button.addEventListener("click", function () {
      mode = order[(order.indexOf(mode) + 1) % order.length];
      show(mode);
      try {
        if (mode === "auto") { localStorage.removeItem("pr-mode"); }
        else { localStorage.setItem("pr-mode", mode); }
      } catch (error) { button.title += " (not remembered)"; }
    });
  }

  function copyText(text) {
    if (navigator.clipboard && window.isSecureContext) { return navigator.clipboard.writeText(text); }
    var area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("readonly", "");
    area.className = "pr-hidden";
    document.body.appendChild(area);
    area.select();
    var done = document.execCommand("copy");
    area.remove();
    return done ? Promise.resolve() : Promise.reject(new Error("copying was refused"));
  }

  function startCopy() {
    var status = document.createElement("p");
    status.className = "pr-hidden";
    status.setAttribute("role", "status");
    var main = document.querySelector("main");
    if (!main) { return; }
    main.appendChild(status);
    document.querySelectorAll("div.highlight").forEach(function (block) {
      if (block.closest(".cell_output") || !block.querySelector("pre")) { return; }
      var button = document.createElement("button");
      button.type = "button";
      button.className = "pr-copy";
      button.textContent = "Copy";
      button.addEventListener("click", function () {
        var text = block.querySelector("pre").innerText.replace(/\n$/, "");
        copyText(text).then(
          function () { button.textContent = status.textContent = "Copied"; },
          function () { button.textContent = status.textContent = "Could not copy"; }
        ).then(function () { setTimeout(function () { button.textContent = "Copy"; }, 1600); });
      });
      block.appendChild(button);
    });
  }

  // A wide block scrolls inside itself; then the keyboard must be able to reach it.
  function startScrollers() {
    findScrollers();
    window.addEventListener("resize", findScrollers);
    document.addEventListener("toggle", findScrollers, true);
  }

  function findScrollers() {
    document.querySelectorAll("main pre, .pr-wide, .cell_output .output, div.math, .pr-math").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth + 1 && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        if (!box.hasAttribute("role")) { box.setAttribute("role", "group"); }
        if (!box.hasAttribute("aria-label")) { box.setAttribute("aria-label", "Wide content, scrolls sideways"); }
      }
    });
  }

  function startWhere() {
    var links = Array.prototype.slice.call(document.querySelectorAll(".pr-toc a[href^='#']"));
    if (!links.length || !("IntersectionObserver" in window)) { return; }
    var byId = {};
    links.forEach(function (link) { byId[decodeURIComponent(link.hash.slice(1))] = link; });
    var heads = Object.keys(byId).map(function (id) { return document.getElementById(id); }).filter(Boolean);
    function mark() {
      var current = heads[0];
      heads.forEach(function (head) { if (head.getBoundingClientRect().top < 120) { current = head; } });
      links.forEach(function (link) { link.removeAttribute("aria-current"); });
      if (current) { byId[current.id].setAttribute("aria-current", "true"); }
    }
    var observer = new IntersectionObserver(mark, { rootMargin: "-100px 0px -60% 0px" });
    heads.forEach(function (head) { observer.observe(head); });
    mark();
  }

  function showCurrentChapter() {
    var contents = document.getElementById("pr-contents");
    var here = contents && contents.querySelector("li.current > a.current, li.current > a");
    if (here && contents.scrollHeight > contents.clientHeight) {
      contents.scrollTop = here.offsetTop - contents.clientHeight / 3;
    }
  }

  function start() { startMode(); startCopy(); startScrollers(); startWhere(); showCurrentChapter(); }
  if (document.readyState === "loading") { document.addEventListener("DOMContentLoaded", start); } else { start(); }
})();
