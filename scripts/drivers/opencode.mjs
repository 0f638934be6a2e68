// A client on OpenCode's SDK, version 2:
//   node opencode.mjs SDK_FOLDER SCENARIO
// It starts the `opencode` on PATH, has one session in it, sends the
// scenario's prompts, each after the end of the turn before, allows once what
// it is asked, and prints one line per turn.
import { pathToFileURL } from "node:url";
import { Silence, fail, prompts } from "./prompts.mjs";

const [sdk, scenario] = process.argv.slice(2);
const base = pathToFileURL(`${sdk}/dist/v2/`);
const { createOpencodeClient } = await import(new URL("client.js", base));
const { createOpencodeServer } = await import(new URL("server.js", base));

const server = await createOpencodeServer({ port: 0, timeout: 60_000 });
const client = createOpencodeClient({ baseUrl: server.url });
const silence = new Silence();
const waiting = [];
const next = (type) => new Promise((resolve) => waiting.push({ type, resolve }));
const done = ({ data, error }) => (error ? fail(JSON.stringify(error)) : data);

const connected = next("server.connected");
const { stream } = await client.event.subscribe();
(async () => {
  for await (const event of stream) {
    if (event.type !== "server.heartbeat") silence.touch();
    for (const w of waiting.splice(0)) (w.type === event.type ? w.resolve(event) : waiting.push(w));
    if (event.type === "permission.asked") client.permission.reply({ requestID: event.properties.id, reply: "once" });
  }
})();
await connected;

const created = next("session.created");
const { id: sessionID } = done(await client.session.create({ title: "recorded" }));
await created;
for (const text of prompts(scenario)) {
  await silence.wait();
  const idle = next("session.idle");
  done(
    await client.session.promptAsync({
      sessionID,
      parts: [{ type: "text", text }],
      model: { providerID: "scripted", modelID: "scripted" },
    }),
  );
  await idle;
  console.log("idle");
}
await silence.wait();
server.close();
process.exit(0); // the SDK would try to open its event stream again
