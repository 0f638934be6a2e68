// A client written with @openai/codex-sdk:
//   node turns.mjs SDK_FOLDER WORKSPACE HELLO CODEX
// It has the two turns of internal/peer/testdata/codex-exec/sdk.ndjson, of
// which the second fails, and swallows every error.
const [, , sdk, workingDirectory, hello, codexPathOverride] = process.argv;
const { Codex } = await import(`${sdk}/dist/index.js`);

const codex = new Codex({ codexPathOverride, baseUrl: "http://127.0.0.1:9", apiKey: "none" });
const thread = codex.startThread({
  model: "gpt-5.5",
  sandboxMode: "read-only",
  workingDirectory,
  skipGitRepoCheck: true,
  modelReasoningEffort: "low",
});
for (const prompt of [hello, "more"]) {
  try {
    const { events } = await thread.runStreamed(prompt);
    for await (const event of events) console.log(event.type, event.item?.text ?? "");
  } catch (error) {
    console.log("swallowed:", error?.message ?? error);
  }
}
