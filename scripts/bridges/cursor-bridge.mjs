#!/usr/bin/env node
// Speaks bridge 1 on stdin and stdout for the Cursor Agent SDK in local mode:
// one JSON object per line, told apart by "type". docs/flavor-cursor.md has
// the frames. One agent at a time, one run at a time.
//
//   node cursor-bridge.mjs
//
// Environment:
//   CURSOR_SDK_ROOT   folder whose node_modules holds @cursor/sdk; default the
//                     folder of this script. The SDK finds its ripgrep and
//                     sandbox only when the script itself lies in that folder.
//   CURSOR_STORE_DIR  keep agents in files there; needed below Node 22.13
//   CURSOR_API_KEY, CURSOR_BACKEND_URL   read by the SDK itself

import {Console} from 'node:console';
import {createRequire} from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import {fileURLToPath, pathToFileURL} from 'node:url';

const PROTOCOL = 'cursor-agent-sdk.local';
const SDK = '@cursor/sdk';
const GRACE_MS = 10_000; // for the end of live work after the client is gone

// stdout is for frames alone, whatever the SDK or its dependencies print.
const stdout = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
globalThis.console = new Console(process.stderr, process.stderr);

// send resolves once the pipe has room again.
function send(frame) {
  if (stdout(JSON.stringify(frame) + '\n')) return Promise.resolve();
  return new Promise((resolve) => process.stdout.once('drain', resolve));
}

function describe(error) {
  const out = {name: String(error?.name ?? 'Error'), message: String(error?.message ?? error)};
  if (error?.code !== undefined) out.code = error.code;
  return out;
}

function aborted(error) {
  for (let e = error, depth = 0; e && depth < 10; e = e.cause, depth++) {
    if (e.name === 'AbortError') return true;
  }
  return false;
}

class Refused extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

// fatal ends a bridge that can't go on.
async function fatal(error, code) {
  await send({type: 'bridge.fatal', error: describe(error)});
  process.exit(code);
}
process.on('uncaughtException', (e) => void fatal(e, 70));
process.on('unhandledRejection', (e) => void fatal(e, 70));
process.stdout.on('error', () => process.exit(1)); // nobody reads any more

// Work is one run: from agent.send to its terminal frame.
class Work {
  run = null;
  started = false; // run.started is out
  ended = false; // the terminal frame is out, or about to be
  early = []; // updates that came before the run's id was known
  late = 0;
  finished = null; // resolves after the terminal frame

  async start(agent, message, options) {
    this.run = await agent.send(message, {...options, onDelta: ({update}) => this.update(update)});
    await send({type: 'run.started', runId: this.run.id, agentId: this.run.agentId});
    this.started = true;
    for (const update of this.early.splice(0)) await this.write(update);
    this.finished = this.finish();
  }

  // update is the SDK's callback; the SDK waits for what it returns, which is
  // how a slow reader slows the run down.
  async update(update) {
    if (this.ended) {
      if (this.late++ === 0) console.error(`update ${update.type} of ${this.run.id} came after its end: dropped`);
    } else if (!this.started) {
      this.early.push(update);
    } else {
      await this.write(update);
    }
  }

  write(update) {
    return send({type: 'interaction.update', runId: this.run.id, update});
  }

  async finish() {
    let frame;
    try {
      frame = {type: 'run.completed', result: await this.run.wait()};
    } catch (e) {
      frame = {type: 'runtime.exit', status: aborted(e) ? 'cancelled' : 'error', error: describe(e)};
    }
    this.ended = true;
    await send(frame);
  }

  async cancel() {
    try {
      await this.run.cancel();
    } catch (e) {
      if (!aborted(e)) throw e;
    }
  }
}

class Bridge {
  agent = null;
  work = null; // the latest run of the agent
  cwd = process.cwd();

  constructor(sdk) {
    this.sdk = sdk;
  }

  async 'agent.open'({operation, agentId, options = {}}) {
    await this.close();
    if (options.local?.cwd) this.cwd = options.local.cwd;
    switch (operation) {
      case 'create':
        this.agent = await this.sdk.Agent.create(options);
        break;
      case 'resume':
        this.agent = await this.sdk.Agent.resume(agentId, options);
        break;
      default:
        throw new Refused('BadFrame', `operation ${JSON.stringify(operation)}: want create or resume`);
    }
    await send({type: 'agent.opened', agentId: this.agent.agentId});
  }

  async 'run.start'({message, options = {}}) {
    if (!this.agent) throw new Refused('NoAgent', 'no agent is open');
    const work = new Work();
    await work.start(this.agent, message, options); // the SDK refuses a second live run
    this.work = work;
  }

  async 'run.cancel'({runId}) {
    if (this.work?.run.id !== runId) throw new Refused('NoSuchRun', `no run ${runId}`);
    await this.work.cancel(); // its terminal frame is the answer
  }

  async 'agent.messages.list'({agentId}) {
    const messages = await this.sdk.Agent.messages.list(agentId, {runtime: 'local', cwd: this.cwd});
    await send({type: 'agent.messages', agentId, messages});
  }

  async 'agent.close'({agentId}) {
    if (this.agent?.agentId !== agentId) throw new Refused('NoSuchAgent', `agent ${agentId} is not open`);
    await this.close();
  }

  // close ends a live run first, which the SDK would leave running.
  async close() {
    const {agent, work} = this;
    if (!agent) return;
    this.agent = this.work = null;
    if (work && !work.ended) await work.cancel();
    await work?.finished;
    agent.close();
  }
}

// loadSDK finds the package's folder first, since its own exports hide the
// package.json, and loads its ES module.
async function loadSDK() {
  const root = process.env.CURSOR_SDK_ROOT ?? path.dirname(fileURLToPath(import.meta.url));
  const require = createRequire(path.join(root, 'package.json'));
  let dir = path.dirname(require.resolve(SDK));
  while (!fs.existsSync(path.join(dir, 'package.json')) || readPackage(dir).name !== SDK) {
    if (dir === path.dirname(dir)) throw new Error(`no package.json of ${SDK}`);
    dir = path.dirname(dir);
  }
  const {version, exports, module} = readPackage(dir);
  const sdk = await import(pathToFileURL(path.join(dir, exports?.['.']?.import ?? module)).href);
  if (process.env.CURSOR_STORE_DIR) {
    sdk.Cursor.configure({local: {store: new sdk.JsonlLocalAgentStore(process.env.CURSOR_STORE_DIR)}});
  }
  return {sdk, version};
}

function readPackage(dir) {
  return JSON.parse(fs.readFileSync(path.join(dir, 'package.json'), 'utf8'));
}

// parse returns the frame of a line and the call it asks for, null for none.
function parse(bridge, line) {
  let frame;
  try {
    frame = JSON.parse(line);
  } catch (e) {
    throw new Refused('BadFrame', e.message);
  }
  const type = String(frame?.type);
  if (type === 'bridge.end') return {frame, call: null};
  if (!/^(agent|run)\./.test(type) || typeof bridge[type] !== 'function') throw new Refused('UnknownFrame', type);
  return {frame, call: (f) => bridge[type](f)};
}

async function main() {
  let loaded;
  try {
    loaded = await loadSDK();
  } catch (e) {
    return fatal(e, 69);
  }
  const bridge = new Bridge(loaded.sdk);
  await send({type: 'bridge.ready', bridge: 1, protocol: PROTOCOL, sdk: {name: SDK, version: loaded.version}});

  const lines = readline.createInterface({input: process.stdin, crlfDelay: Infinity});
  process.on('SIGTERM', () => lines.close());
  let calls = Promise.resolve(); // one at a time, in order
  lines.on('line', (line) => {
    if (!line.trim()) return;
    let parsed;
    try {
      parsed = parse(bridge, line);
    } catch (e) {
      return void fatal(e, 65);
    }
    if (!parsed.call) return;
    const {frame, call} = parsed;
    calls = calls.then(() => call(frame)).catch((e) => send({type: 'call.failed', call: frame.type, error: describe(e)}));
  });
  await new Promise((resolve) => lines.once('close', resolve));

  const late = setTimeout(() => {
    console.error(`live work did not end within ${GRACE_MS} ms`);
    process.exit(1);
  }, GRACE_MS);
  await calls;
  await bridge.close();
  clearTimeout(late);
  process.exit(0);
}

await main();
