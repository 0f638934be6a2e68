// A plain client of ACP agents, version 1:
//   node acp.mjs SCENARIO AGENT
// It has one session in the working directory, sends the scenario's prompts,
// allows once what it is asked, and prints one line per turn. It waits for
// silence before each prompt, so that two recordings agree.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Silence, fail, prompts } from "./prompts.mjs";

const [scenario, command] = process.argv.slice(2);
const agent = spawn(command, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => agent.once("exit", (code, signal) => resolve(signal ?? code)));
const silence = new Silence();
const open = new Map();
let last = 0;

const send = (message) => agent.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const call = (method, params) =>
  new Promise((resolve) => {
    open.set(++last, (m) => (m.error ? fail(`${method}: ${JSON.stringify(m.error)}`) : resolve(m.result)));
    send({ id: last, method, params });
  });

function answer({ id, method, params }) {
  if (method !== "session/request_permission") {
    return send({ id, error: { code: -32601, message: `no ${method} here` } });
  }
  const option = params.options.find((o) => o.kind === "allow_once") ?? params.options[0];
  send({ id, result: { outcome: { outcome: "selected", optionId: option.optionId } } });
}

const lines = createInterface({ input: agent.stdout });
lines.on("line", (line) => {
  silence.touch();
  const m = JSON.parse(line);
  if (m.method && m.id !== undefined) return answer(m);
  if (m.method) return;
  open.get(m.id)?.(m);
  open.delete(m.id);
});
lines.on("close", () => open.size > 0 && fail("the agent has closed in the middle"));

await call("initialize", {
  protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
  clientInfo: { name: "driver", version: "1" },
});
const { sessionId } = await call("session/new", { cwd: process.cwd(), mcpServers: [] });
for (const text of prompts(scenario)) {
  await silence.wait();
  console.log((await call("session/prompt", { sessionId, prompt: [{ type: "text", text }] })).stopReason);
}
await silence.wait();
agent.stdin.end();
const late = setTimeout(() => agent.kill("SIGTERM"), 5000);
await ended;
clearTimeout(late);
