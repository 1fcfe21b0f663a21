// Before the terminal's own script, which reads these when the page is there.
const terminal = document.getElementById("terminal");
const scheme = location.protocol === "https:" ? "wss:" : "ws:";
terminal.dataset.sessionWebsocketUrl = `${scheme}//${location.host}/ws`;

// As many columns as the workbench needs, as long as they can be read.
const COLUMNS = 80, CELL = 0.6, SMALLEST = 9, LARGEST = 15;
const fitting = Math.floor(innerWidth / COLUMNS / CELL);
terminal.dataset.fontSize = Math.max(SMALLEST, Math.min(LARGEST, fitting));

document.getElementById("again").addEventListener("click", () => location.reload());

// Keys go to the terminal once there is something in it; after its end to the button.
new MutationObserver(() => {
  const { classList } = document.body;
  if (classList.contains("-closed")) {
    document.getElementById("again").focus();
  } else if (classList.contains("-first-byte") && document.activeElement === document.body) {
    document.querySelector(".xterm-helper-textarea")?.focus();
  }
}).observe(document.body, { attributeFilter: ["class"] });
