// What the drivers of this folder have in common: the prompts of a scenario,
// and the ways to wait.
import fs from "node:fs";

// prompts reads the messages of a scenario.yaml, one "- message: {text: …}"
// after the other. The scenario's other steps are the orchestrator's.
export function prompts(file) {
  const found = [];
  for (const line of fs.readFileSync(file, "utf8").split("\n")) {
    const text = line.match(/^ *- message: \{text: ("(?:[^"\\]|\\.)*")/);
    if (text) found.push(JSON.parse(text[1]));
  }
  if (found.length === 0) throw new Error(`${file}: no messages`);
  return found;
}

// silence is done when touch was not called for a while.
export class Silence {
  #at = Date.now();
  touch() {
    this.#at = Date.now();
  }
  async wait(ms = 600) {
    for (let left; (left = this.#at + ms - Date.now()) > 0; ) await new Promise((r) => setTimeout(r, left));
  }
}

// fail ends the driver; what it has started ends with its pipes.
export function fail(message) {
  process.stderr.write(`driver: ${message}\n`);
  process.exit(1);
}
setTimeout(() => fail("not done after two minutes"), 120_000).unref();
