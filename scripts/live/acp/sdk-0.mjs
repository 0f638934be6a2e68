// A client written with @agentclientprotocol/sdk 0.x:
//   node sdk-0.mjs SDK_FOLDER WORKSPACE HELLO AGENT [ARGS…]
// The same conversation as sdk-2.mjs, on the interface that 2.x took away.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { Readable, Writable } from "node:stream";

const [, , sdk, cwd, hello, command, ...args] = process.argv;
const acp = await import(`${sdk}/dist/acp.js`);

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

class Client {
  async requestPermission(params) {
    const first = params.toolCall.toolCallId === "first";
    if (first) await second;
    else setTimeout(secondAnswered, 20);
    return { outcome: { outcome: "selected", optionId: params.options[first ? 0 : 1].optionId } };
  }
  async sessionUpdate(params) {
    if (params.update.content?.text === "Waiting") turnBegun();
  }
  async writeTextFile(params) {
    fs.writeFileSync(params.path, params.content);
    return {};
  }
  async readTextFile(params) {
    return { content: fs.readFileSync(params.path, "utf8") };
  }
  async createTerminal() {
    return { terminalId: "mine" };
  }
  async waitForTerminalExit(params) {
    own(params.terminalId);
    return { exitCode: 0 };
  }
  async terminalOutput(params) {
    own(params.terminalId);
    return { output: "hi\n", truncated: false, exitStatus: { exitCode: 0 } };
  }
  async releaseTerminal(params) {
    own(params.terminalId);
    return {};
  }
  async extMethod(_method, params) {
    return { pong: params.n };
  }
}

try {
  const connection = new acp.ClientSideConnection(() => new Client(), stream);
  await connection.initialize({
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: { name: "client", version: "1" },
  });
  const { sessionId } = await connection.newSession({ cwd, mcpServers: [] });
  const prompt = (text) => connection.prompt({ sessionId, prompt: [{ type: "text", text }] });
  console.log((await prompt(hello)).stopReason);
  const turn = prompt("wait");
  await waiting;
  await connection.cancel({ sessionId });
  console.log((await turn).stopReason);
} catch (error) {
  console.log("swallowed:", error?.message ?? error);
}
agent.stdin.end();
await ended;
process.exit(0);
