// A client on the Claude Agent SDK:
//   node claude.mjs SDK_FOLDER SCENARIO CLAUDE
// It has one query in the working directory, offers the scenario's prompts,
// each after the result of the one before, allows what it is asked, and prints
// one line per turn.
import path from "node:path";
import { pathToFileURL } from "node:url";
import { fail, prompts } from "./prompts.mjs";

const [sdk, scenario, executable] = process.argv.slice(2);
const { query } = await import(pathToFileURL(path.join(sdk, "sdk.mjs")));

let next;
const offered = (async function* () {
  for (const text of prompts(scenario)) {
    const result = new Promise((resolve) => (next = resolve));
    yield { type: "user", message: { role: "user", content: text }, parent_tool_use_id: null };
    await result;
  }
})();
const conversation = query({
  prompt: offered,
  options: {
    pathToClaudeCodeExecutable: executable,
    env: process.env,
    model: "claude-sonnet-4-5",
    permissionMode: "default",
    settingSources: [],
    sessionId: "5e551014-0000-4000-8000-000000000001",
    canUseTool: async (_, input) => ({ behavior: "allow", updatedInput: input }),
  },
});
try {
  for await (const m of conversation) {
    if (m.type !== "result") continue;
    console.log(m.subtype, m.is_error ? m.result : "");
    if (m.is_error) fail(m.result);
    next();
  }
} catch (error) {
  fail(error.message);
}
