#!/usr/bin/env node
// Stands in for the service behind the Cursor Agent SDK's local mode, on
// loopback, with a scripted model in place of the service's own:
//
//   node main.mjs --model-url http://127.0.0.1:8700 [--model NAME] [--listen PORT]
//
// It prints its URL when it listens, and ends when its stdin does. It answers
// what @cursor/sdk 1.0.32 asks over HTTP/1.1 while it creates and resumes
// agents, and runs them: text, thinking, commands, lists, plans, subagents,
// cancelling, errors. The rest is refused, with a note on stderr. Nothing of
// it was measured on the real service.
import http from 'node:http';
import {parseArgs} from 'node:util';
import {Run} from './run.mjs';
import {encode, envelope, Message, Refusal} from './wire.mjs';

const {values: flags} = parseArgs({
  options: {
    'model-url': {type: 'string'},
    model: {type: 'string', default: 'scripted-model'},
    listen: {type: 'string', default: '0'},
  },
});
const conversations = new Map(); // by id, which is the agent's
const channels = new Map(); // by the id of the run's request

// channel is what the SDK says in a run. Its messages are numbered, each comes
// in a request of its own, and maybe before the stream that they belong to.
function channel(id) {
  if (!channels.has(id)) channels.set(id, {next: 0, early: new Map(), hear: null});
  return channels.get(id);
}

// drain hands on the messages whose turn it is.
function drain(c) {
  while (c.hear && c.early.has(c.next)) {
    const message = c.early.get(c.next);
    c.early.delete(c.next++);
    c.hear(message);
  }
}

// append takes one message of the SDK.
function append(body) {
  const request = new Message(body);
  const c = channel(request.message(2).text(1));
  const bytes = request.has(4) ? request.bytes(4) : Buffer.from(request.text(1), 'hex');
  c.early.set(request.number(3), new Message(bytes));
  drain(c);
}

// stream is the other half of a run: what the SDK hears.
function stream(body, request, response) {
  const id = new Message(body.subarray(5)).text(1);
  const c = channel(id);
  const cancelled = new AbortController();
  const send = (bytes) => response.write(envelope(bytes));
  const end = (error) => response.end(envelope(Buffer.from(JSON.stringify(error ? {error} : {})), true));
  response.writeHead(200, {'content-type': request.headers['content-type'], 'cache-control': 'no-store'});
  response.flushHeaders();
  response.on('close', () => {
    cancelled.abort();
    channels.delete(id);
  });
  let run;
  c.hear = (message) => {
    if (message.has(1)) {
      const asked = message.message(1);
      const agent = asked.text(5);
      if (!conversations.has(agent)) conversations.set(agent, {messages: [], todos: []});
      run = new Run({
        send,
        model: {url: flags['model-url'], name: flags.model},
        conversation: conversations.get(agent),
        signal: cancelled.signal,
      });
      const action = asked.message(2);
      const prompt = action.message(1).message(1);
      const start = action.has(1) ? run.start(prompt.text(1), prompt.number(4)) : Promise.reject(new Refusal('unimplemented', 'an action without a message'));
      start.then(
        () => end(),
        (e) => {
          if (cancelled.signal.aborted) return;
          console.error(`cursor-backend: ${e.message}`);
          if (e instanceof Refusal) end({code: e.code, message: e.message});
          else response.destroy();
        },
      );
    }
    for (const kind of [2, 5, 6]) if (message.has(kind)) run?.answered(kind, message.message(kind));
  };
  drain(c);
}

// token is one that nobody has signed, good for an hour.
function token() {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({alg: 'none'})}.${part({sub: 'nobody', exp: Math.floor(Date.now() / 1000) + 3600})}.none`;
}

const json = (response, value, status = 200) => {
  response.writeHead(status, {'content-type': 'application/json'});
  response.end(JSON.stringify(value));
};
const proto = (response, bytes = Buffer.alloc(0)) => {
  response.writeHead(200, {'content-type': 'application/proto'});
  response.end(bytes);
};

// answers are by the last part of the path.
const answers = {
  RunSSE: stream,
  BidiAppend: (body, _, response) => {
    append(body);
    proto(response);
  },
  exchange_user_api_key: (_, __, response) => json(response, {accessToken: token(), refreshToken: 'none'}),
  GetUserPrivacyMode: (_, __, response) => proto(response, encode([[1, 1]])),
  models: (_, __, response) => json(response, {items: [{id: flags.model, displayName: flags.model, aliases: [], parameters: [], variants: []}], models: []}),
};
// What the SDK asks on the side, and takes an empty answer to.
const empty = /^\/aiserver\.v1\.(AnalyticsService|ServerConfigService)\/|OrEmptyIfNotInTeam$/;

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const path = new URL(request.url, 'http://localhost').pathname;
    const call = path.split('/').at(-1);
    try {
      if (answers[call]) return answers[call](Buffer.concat(chunks), request, response);
      if (empty.test(path)) return proto(response);
    } catch (e) {
      console.error(`cursor-backend: ${path}: ${e.message}`);
      return json(response, {code: 'invalid_argument', message: e.message}, 400);
    }
    console.error(`cursor-backend: ${path} is not served`);
    json(response, {code: 'unimplemented', message: `${path} is not served`}, 404);
  });
});
if (!flags['model-url']) {
  console.error('cursor-backend: want --model-url URL');
  process.exit(2);
}
server.listen(Number(flags.listen), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on('end', () => process.exit(0));
