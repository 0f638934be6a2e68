// A client of the bridge to the Cursor Agent SDK:
//   node cursor.mjs SCENARIO BRIDGE
// It creates one agent in the working directory, sends the scenario's prompts,
// each after the end of the run before, and prints one line per run.
import { spawn } from "node:child_process";
import readline from "node:readline";
import { fail, prompts } from "./prompts.mjs";

const [scenario, program] = process.argv.slice(2);
const bridge = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
const lines = readline.createInterface({ input: bridge.stdout })[Symbol.asyncIterator]();
const say = (frame) => bridge.stdin.write(`${JSON.stringify(frame)}\n`);

// hear returns the next frame of a type. A refusal, or the end, is none.
async function hear(type) {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) fail(`the bridge ended before ${type}`);
    const frame = JSON.parse(value);
    if (frame.type === type) return frame;
    if (frame.error) fail(`${frame.type}: ${frame.error.message}`);
  }
}

const model = { id: "scripted-model" };
const mode = "agent";
await hear("bridge.ready");
const local = { cwd: process.cwd(), settingSources: [], enableAgentRetries: false };
say({ type: "agent.open", operation: "create", options: { model, mode, apiKey: "none", local } });
const { agentId } = await hear("agent.opened");
for (const message of prompts(scenario)) {
  say({ type: "run.start", message, options: { model, mode } });
  const { result } = await hear("run.completed");
  console.log(result.status, result.result ?? "");
  if (result.status !== "finished") fail(result.error?.message);
}
say({ type: "agent.close", agentId });
bridge.stdin.end();
bridge.on("exit", (code) => process.exit(code));
