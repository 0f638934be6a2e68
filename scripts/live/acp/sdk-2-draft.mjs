// A client of the draft of protocol version 2, written with
// @agentclientprotocol/sdk 2.x:
//   node sdk-2-draft.mjs SDK_FOLDER WORKSPACE HELLO AGENT [ARGS…]
// It has the conversation of internal/peer/testdata/acp/draft.ndjson: a turn
// ends with a state update, and a second prompt steers the first.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [, , sdk, cwd, hello, command, ...args] = process.argv;
const acp = await import(`${sdk}/dist/v2/stable/acp.js`);

const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => agent.once("exit", resolve));
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const idle = [];
const states = [];
const client = acp
  .client({ name: "client" })
  .onRequest("session/request_permission", ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options[0].optionId },
  }))
  .onNotification("session/update", ({ params: { update } }) => {
    if (update.sessionUpdate !== "state_update") return;
    states.push(update.state);
    if (update.state === "idle") idle.shift()?.(update.stopReason);
  });
const turnEnd = () => new Promise((resolve) => idle.push(resolve));

try {
  await client.connectWith(stream, async (ctx) => {
    await ctx.request("initialize", { protocolVersion: 2, capabilities: {}, info: { name: "client", version: "1" } });
    const { sessionId } = await ctx.request("session/new", { cwd, mcpServers: [] });
    const prompt = (text) => ctx.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    const first = turnEnd();
    console.log((await prompt(hello)).messageId);
    console.log((await prompt("and more")).messageId);
    console.log(await Promise.race([first, ended]));
    const second = turnEnd();
    console.log((await prompt("wait")).messageId);
    await ctx.notify("session/cancel", { sessionId });
    console.log(await Promise.race([second, ended]));
    console.log(states.join(" "));
  });
} catch (error) {
  console.log("swallowed:", error?.message ?? error);
}
agent.stdin.end();
await ended;
process.exit(0);
