// A client written with @agentclientprotocol/sdk 2.x:
//   node sdk-2.mjs SDK_FOLDER WORKSPACE HELLO AGENT [ARGS…]
// It has the conversation of internal/peer/testdata/acp/client.ndjson, and
// swallows every error: only the agent can tell that something went wrong.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { Readable, Writable } from "node:stream";

const [, , sdk, cwd, hello, command, ...args] = process.argv;
const acp = await import(`${sdk}/dist/v1/stable/acp.js`);

const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => agent.once("exit", resolve));
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

let secondAnswered;
const second = new Promise((resolve) => (secondAnswered = resolve));
let turnBegun;
const waiting = new Promise((resolve) => (turnBegun = resolve));
const own = (id) => {
  if (id !== "mine") throw new Error(`no terminal ${id}`);
};

const client = acp
  .client({ name: "client" })
  .onRequest("session/request_permission", async ({ params }) => {
    const first = params.toolCall.toolCallId === "first";
    if (first) await second;
    else setTimeout(secondAnswered, 20);
    return { outcome: { outcome: "selected", optionId: params.options[first ? 0 : 1].optionId } };
  })
  .onRequest("fs/write_text_file", ({ params }) => {
    fs.writeFileSync(params.path, params.content);
    return {};
  })
  .onRequest("fs/read_text_file", ({ params }) => ({ content: fs.readFileSync(params.path, "utf8") }))
  .onRequest("terminal/create", () => ({ terminalId: "mine" }))
  .onRequest("terminal/wait_for_exit", ({ params }) => (own(params.terminalId), { exitCode: 0 }))
  .onRequest("terminal/output", ({ params }) => {
    own(params.terminalId);
    return { output: "hi\n", truncated: false, exitStatus: { exitCode: 0 } };
  })
  .onRequest("terminal/release", ({ params }) => (own(params.terminalId), {}))
  .onRequest("_example/ping", (params) => params, ({ params }) => ({ pong: params.n }))
  .onNotification("session/update", ({ params }) => {
    if (params.update.content?.text === "Waiting") turnBegun();
  });

try {
  await client.connectWith(stream, async (ctx) => {
    await ctx.request("initialize", {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      clientInfo: { name: "client", version: "1" },
    });
    const { sessionId } = await ctx.request("session/new", { cwd, mcpServers: [] });
    const prompt = (text) => ctx.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    console.log((await prompt(hello)).stopReason);
    const turn = prompt("wait");
    await waiting;
    await ctx.notify("session/cancel", { sessionId });
    console.log((await turn).stopReason);
  });
} catch (error) {
  console.log("swallowed:", error?.message ?? error);
}
agent.stdin.end();
await ended;
process.exit(0);
