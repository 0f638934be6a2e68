// Drives the fake `opencode` on PATH with the real SDK, which starts it
// itself. Prints, as JSON lines, what an SDK's user sees, in that order:
//
//	{"result":"session.abort","data":true}
//	{"event":{…}}
//
// node sdk.mjs SDK_FOLDER v1|v2 [wrong]
import { pathToFileURL } from "node:url";

const [folder, version, wrong] = process.argv.slice(2);
const base = pathToFileURL(`${folder}/dist/${version === "v1" ? "" : "v2/"}`);
const { createOpencodeClient } = await import(new URL("client.js", base));
const { createOpencodeServer } = await import(new URL("server.js", base));

const print = (value) => console.log(JSON.stringify(value));
const server = await createOpencodeServer({ port: 0, timeout: 60_000 });
const client = createOpencodeClient({ baseUrl: server.url });

// One spelling of the calls for both versions.
const call = async (operation, method, v1, v2) => {
  const r = await method(version === "v1" ? v1 : v2);
  if (r.error) print({ result: operation, status: r.response?.status, error: r.error });
  else print({ result: operation, data: r.response?.status === 204 ? null : r.data });
  return r.data;
};

let ended = false;
const waiting = [];
const seen = new Promise((resolve, reject) => {
  (async () => {
    const { stream } = await client.event.subscribe();
    for await (const event of stream) {
      if (event.type === "server.connected") resolve();
      else print({ event });
      for (const w of waiting.splice(0)) (w.fits(event) ? w.resolve(event) : waiting.push(w));
    }
    ended = true;
    for (const w of waiting.splice(0)) w.reject(new Error("the stream has ended"));
  })().catch(reject);
});
const next = (type, times = 1) =>
  new Promise((resolve, reject) => {
    if (ended) return reject(new Error("the stream has ended"));
    waiting.push({ resolve, reject, fits: (e) => e.type === type && --times === 0 });
  });
const prompt = async (id, text) => {
  const body = { parts: [{ type: "text", text }], model: { providerID: "scripted", modelID: "scripted" } };
  await call("session.promptAsync", (o) => client.session.promptAsync(o), { path: { id }, body }, { sessionID: id, ...body });
};

try {
  await seen;
  const created = next("session.created");
  const { id } = await call("session.create", (o) => client.session.create(o), { body: { title: "sdk" } }, { title: "sdk" });
  await created;

  const permission = next("permission.asked");
  await prompt(id, "run echo hi");
  const { id: permissionID } = (await permission).properties;
  const answer = wrong ? "always" : "once";
  let idle = next("session.idle");
  if (version === "v1") {
    const o = { path: { id, permissionID }, body: { response: answer } };
    await call("permission.respond", (o) => client.postSessionIdPermissionsPermissionId(o), o);
  } else {
    await call("permission.reply", (o) => client.permission.reply(o), null, { requestID: permissionID, reply: answer });
  }
  await idle;

  if (version === "v2") {
    const asked = next("question.asked");
    await prompt(id, "ask me");
    const requestID = (await asked).properties.id;
    idle = next("session.idle");
    await call("question.reply", (o) => client.question.reply(o), null, { requestID, answers: [["Red"]] });
    await idle;
  }

  const started = next("message.part.delta");
  await prompt(id, "count slowly");
  await started;
  idle = next("session.idle", 2);
  await call("session.abort", (o) => client.session.abort(o), { path: { id } }, { sessionID: id });
  await idle;

  const at = [{ path: { id } }, { sessionID: id }];
  await call("session.messages", (o) => client.session.messages(o), ...at);
  await call("session.messages", (o) => client.session.messages(o), ...at);
  const other = "ses_00000000000fAAAAAAAAAAAAAA";
  await call("session.get", (o) => client.session.get(o), { path: { id: other } }, { sessionID: other });
  const deleted = next("session.deleted");
  await call("session.delete", (o) => client.session.delete(o), ...at);
  await deleted;
} catch (error) {
  print({ swallowed: String(error) });
} finally {
  server.close();
  process.exit(0); // where its server dies, the SDK goes on trying to open its event stream
}
