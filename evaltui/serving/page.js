// Before the terminal's own script, which reads these when the page is there.
const terminal = document.getElementById("terminal");
const scheme = location.protocol === "https:" ? "wss:" : "ws:";
terminal.dataset.sessionWebsocketUrl = `${scheme}//${location.host}/ws`;

// As many columns as the workbench needs, as long as they can be read.
const COLUMNS = 80, CELL = 0.6, SMALLEST = 9, LARGEST = 15;
const fitting = Math.floor(innerWidth / COLUMNS / CELL);
terminal.dataset.fontSize = Math.max(SMALLEST, Math.min(LARGEST, fitting));

// By the code with which the server closes; without one, the connection was lost.
const ENDED = "This session has ended.";
const REASONS = {
  1001: "evaltui serve was ended.",
  1006: "The connection to evaltui was lost.",
  1009: "This session has ended: a pasted text was over 1 MB.",
  1013: "All sessions are in use. Close one of them first.",
  4000: "This session has ended: no key and no click for 30 minutes.",
};
const NOT_OPENED = "No session was opened. The terminal of evaltui serve shows why.";
const OFFERED = "Unsaved changes are offered when a new one starts.";
const OTHER_SERVER = "This page is from an earlier start. Open the address that evaltui serve prints.";
const NO_RESPONSE = "evaltui does not respond. Run evaltui serve again and open the address that it prints.";
const PATIENCE = 10_000;

const why = document.getElementById("why"), again = document.getElementById("again");

// The terminal's script opens the socket and tells nobody why it was closed.
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    let isOpen = false;
    this.addEventListener("open", () => { isOpen = true; });
    this.addEventListener("close", ({ code }) => {
      const reason = REASONS[code] ?? ENDED;
      why.textContent = !isOpen ? NOT_OPENED : code === 1013 ? reason : `${reason} ${OFFERED}`;
    });
  }
};

// A page that cannot be loaded again would take the place of this one.
again.addEventListener("click", async () => {
  try {
    const response = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    if (response.ok) {
      location.reload();
    } else {
      why.textContent = response.status === 401 ? OTHER_SERVER : NO_RESPONSE;
    }
  } catch {
    why.textContent = NO_RESPONSE;
  }
});

// Keys go to the terminal once there is something in it; after its end to the button.
new MutationObserver(() => {
  const { classList } = document.body;
  if (classList.contains("-closed")) {
    again.focus();
  } else if (classList.contains("-first-byte") && document.activeElement === document.body) {
    document.querySelector(".xterm-helper-textarea")?.focus();
  }
}).observe(document.body, { attributeFilter: ["class"] });
