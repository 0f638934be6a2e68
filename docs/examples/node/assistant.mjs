// Asks Claude Code one question, over the protocol that its Agent SDK speaks:
// one JSON message a line, and a control request that opens the conversation.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

// What a user reads when the provider fails: an assistant that is away is no
// reason to crash.
export const UNAVAILABLE = "The assistant is not available.";

const FLAGS = [
  "--input-format", "stream-json",
  "--output-format", "stream-json",
  "--verbose",
  "--model", "claude-sonnet-4-5",
  "--permission-mode", "default",
  "--permission-prompt-tool", "stdio",
  "--setting-sources=",
  "--session-id", "5e551014-0000-4000-8000-000000000001",
];

// ask returns the answer to a prompt about the workspace.
export async function ask(workspace, prompt) {
  const claude = spawn("claude", FLAGS, { cwd: workspace, stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => {
    claude.on("error", () => resolve(-1));
    claude.on("close", resolve);
  });
  claude.stdin.on("error", () => {}); // it has ended: the exit code tells
  const send = (message) => claude.stdin.write(JSON.stringify(message) + "\n");
  send({ type: "control_request", request_id: "open", request: { subtype: "initialize" } });
  send({ type: "user", message: { role: "user", content: prompt }, parent_tool_use_id: null });

  let answer = UNAVAILABLE;
  for await (const line of createInterface({ input: claude.stdout })) {
    const message = JSON.parse(line);
    if (message.type === "result") {
      if (message.subtype === "success") answer = message.result;
      claude.stdin.end();
    }
  }
  return (await exited) === 0 ? answer : UNAVAILABLE;
}
