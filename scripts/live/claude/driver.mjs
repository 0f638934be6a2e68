// A client on the real Claude Agent SDK, for the live tests.
//
//   node driver.mjs SDK EXECUTABLE SCENARIO
//
// SDK is the folder of the installed package, EXECUTABLE the `claude` that it
// starts. Prints one JSON object a line: {"yield":MESSAGE} for what query()
// yields, {"call":NAME,"value"|"error":…} for a control call, {"asked":NAME,…}
// for a callback, and last {"end":SCENARIO,"errors":[…]}. Errors of the SDK
// are swallowed and exit code 0 given: what went wrong must show elsewhere.
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [sdk, executable, name] = process.argv.slice(2);
const { query } = await import(pathToFileURL(path.join(sdk, 'sdk.mjs')));
const tell = (o) => process.stdout.write(JSON.stringify(o) + '\n');
const errors = [];
const session = '5e551014-0000-4000-8000-000000000001';
const changed = process.env.CHANGED === '1'; // one call differs from the recording

// channel is a prompt stream that the scenario feeds.
function channel() {
  const waiting = [];
  let wake = () => {}, open = true;
  const stream = (async function* () {
    for (;;) {
      while (waiting.length) yield waiting.shift();
      if (!open) return;
      await new Promise((r) => { wake = r; });
    }
  })();
  return {
    stream,
    say(text, more = {}) {
      waiting.push({ type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null, ...more });
      wake();
    },
    end() { open = false; wake(); },
  };
}

// run opens a query, hands it to the scenario and waits for its end.
async function run(options, scenario, prompt) {
  const ch = channel();
  const waiters = [];
  let ended = false;
  const q = query({
    prompt: prompt ?? ch.stream,
    options: { pathToClaudeCodeExecutable: executable, env: process.env, ...options },
  });
  const reading = (async () => {
    try {
      for await (const m of q) {
        tell({ yield: m });
        for (const w of waiters.splice(0)) if (w.fits(m)) w.done(m); else waiters.push(w);
      }
    } catch (e) {
      errors.push(String(e?.message ?? e));
    }
    ended = true;
    for (const w of waiters.splice(0)) w.done(null);
  })();
  const until = (fits) => ended ? Promise.resolve(null) : new Promise((done) => waiters.push({ fits, done }));
  const call = async (label, promise) => {
    // A call that a provider never answers must not keep the scenario.
    const late = new Promise((_, no) => setTimeout(() => no(new Error('no answer')), 5000).unref());
    try {
      tell({ call: label, value: await Promise.race([promise, late]) ?? null });
    } catch (e) {
      tell({ call: label, error: String(e?.message ?? e) });
    }
  };
  await scenario({ q, say: ch.say, until, call, result: () => until((m) => m.type === 'result'), assistant: () => until((m) => m.type === 'assistant') });
  ch.end();
  await reading;
}

const base = { model: 'fixture-model', permissionMode: 'default', settingSources: [] };

const scenarios = {
  simple: () => run({ ...base, sessionId: session }, async (s) => {
    s.say(changed ? 'say goodbye' : 'say hello');
    await s.result();
  }),
  // The prompt as a string, partial messages, more options.
  string_prompt: () => run({ ...base, includePartialMessages: true, maxTurns: 3, tools: ['Read', 'Bash'], allowedTools: ['Read', 'Bash(git log:*, x)'], systemPrompt: 'be brief' },
    async (s) => { await s.until(() => false); }, 'say hello'),
  multi_turn: () => run(base, async (s) => {
    s.say('turn one');
    await s.result();
    s.say('turn two', { uuid: '0a0a0a0a-0000-4000-8000-0000000000aa' });
    await s.result();
  }),
  interrupt: () => run(base, async (s) => {
    s.say('count to a million');
    await s.assistant();
    await s.call('interrupt', s.q.interrupt());
    await s.result();
  }),
  permission_allow: () => run({
    ...base,
    canUseTool: async (tool, input, o) => {
      tell({ asked: tool, input, toolUseID: o.toolUseID, suggestions: o.suggestions, blockedPath: o.blockedPath });
      return { behavior: 'allow', updatedInput: input, decisionClassification: 'user_temporary' };
    },
  }, async (s) => {
    s.say('write the file');
    await s.result();
  }),
  permission_deny: () => run({
    ...base,
    canUseTool: async (tool, input, o) => {
      tell({ asked: tool, input, toolUseID: o.toolUseID });
      return changed ? { behavior: 'allow', updatedInput: input } : { behavior: 'deny', message: 'not today' };
    },
  }, async (s) => {
    s.say('write the file');
    await s.result();
  }),
  // Two tool calls ask at the same time; the later one is answered first.
  permission_crossed: () => {
    const first = Promise.withResolvers?.() ?? (() => { const p = {}; p.promise = new Promise((r) => { p.resolve = r; }); return p; })();
    return run({
      ...base,
      canUseTool: async (tool, input, o) => {
        tell({ asked: tool, input, toolUseID: o.toolUseID });
        if (o.toolUseID === 'toolu_first') await first.promise;
        else setTimeout(first.resolve, 50);
        return { behavior: 'allow', updatedInput: input };
      },
    }, async (s) => {
      s.say('touch two files');
      await s.result();
    });
  },
  // The provider withdraws the question when the turn is interrupted.
  permission_aborted: () => {
    let asked;
    const question = new Promise((r) => { asked = r; });
    return run({
      ...base,
      canUseTool: (tool, input, o) => new Promise((_, no) => {
        o.signal.addEventListener('abort', () => { tell({ aborted: o.toolUseID }); no(new Error('withdrawn')); });
        asked();
      }),
    }, async (s) => {
      s.say('write the file');
      await question;
      await s.call('interrupt', s.q.interrupt());
      await s.result();
    });
  },
  steering: () => run(base, async (s) => {
    s.say('long work');
    await s.assistant();
    s.say('stop that, say steered', { priority: 'now' });
    await s.result();
    await s.result();
  }),
  resume: async () => {
    const own = process.env.OWN_SESSION ?? session;
    await run({ ...base, sessionId: own }, async (s) => { s.say('remember seven'); await s.result(); });
    await run({ ...base, resume: own }, async (s) => { s.say('which number'); await s.result(); });
  },
  subagent: () => run({
    ...base,
    agents: { reader: { description: 'reads', prompt: 'You read files.', tools: ['Read'] } },
    canUseTool: async (tool, input, o) => {
      tell({ asked: tool, input, toolUseID: o.toolUseID, agentID: o.agentID });
      return { behavior: 'allow', updatedInput: input };
    },
  }, async (s) => {
    s.say('delegate the reading');
    await s.result();
  }),
  api_error: () => run(base, async (s) => {
    s.say('say hello');
    await s.result();
  }),
  // The client gives up in the middle of a turn and ends the provider.
  abort: () => {
    const abortController = new AbortController();
    return run({ ...base, abortController }, async (s) => {
      s.say('count to a million');
      await s.assistant();
      abortController.abort();
    });
  },
  // Control calls, one of which the provider refuses, and one without a
  // recorded answer.
  controls: () => run(base, async (s) => {
    await s.call('setModel', s.q.setModel(changed ? 'wrong-model' : 'other-model'));
    await s.call('setPermissionMode', s.q.setPermissionMode('acceptEdits'));
    await s.call('bypass', s.q.setPermissionMode('bypassPermissions'));
    await s.call('mcpServerStatus', s.q.mcpServerStatus());
    await s.call('supportedModels', s.q.supportedModels());
    s.say('say hello');
    await s.result();
  }),
  callbacks: () => {
    const server = {
      async connect(transport) {
        transport.onmessage = (m) => {
          if (m.id === undefined) return;
          tell({ asked: m.method });
          const known = {
            initialize: { protocolVersion: m.params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'fixture', version: '1' } },
            'tools/list': { tools: [] },
            'tools/call': { content: [{ type: 'text', text: 'echo: ' + m.params?.arguments?.text }] },
          };
          transport.send({ jsonrpc: '2.0', id: m.id, result: known[m.method] ?? {} });
        };
        await transport.start?.();
      },
      async close() {},
    };
    return run({
      ...base,
      hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [async (input, id) => { tell({ asked: input.hook_event_name, toolUseID: id }); return { continue: true }; }] }] },
      mcpServers: { fixture: { type: 'sdk', name: 'fixture', instance: server } },
    }, async (s) => {
      s.say('call echo');
      await s.result();
    });
  },
};

const scenario = scenarios[name];
if (!scenario) {
  process.stderr.write(`driver: unknown scenario ${name}: want ${Object.keys(scenarios).join(', ')}\n`);
  process.exit(2);
}
await scenario();
tell({ end: name, errors });
process.exit(0);
