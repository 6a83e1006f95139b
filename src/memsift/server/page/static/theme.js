// Before anything is drawn: the theme that was chosen on this machine, else the system's.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("memsift-theme");
  } catch {
    // Storage may be refused; then the system's theme it is.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
