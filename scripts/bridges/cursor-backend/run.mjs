// One run of an agent: asks the model, tells the SDK what it says, and lets
// the SDK or this backend do what it calls for, until it calls for nothing.
import {ask} from './model.mjs';
import {argumentsOf, offered, shellCommand, todoFields, toolCall} from './tools.mjs';
import {encode, Message} from './wire.mjs';

// Updates are the fields of the message InteractionUpdate.
const TEXT = 1, STARTED = 2, COMPLETED = 3, THINKING = 4, THOUGHT = 5, PARTIAL = 7, TOKENS = 8, TURN_ENDED = 14, STEP_COMPLETED = 17;
const LONGEST_PREVIEW = 200; // characters of a shell's output that the model is told

// Run speaks to the SDK with send(bytes). conversation is {messages, todos},
// and outlives the run.
export class Run {
  #send;
  #model; // {url, name}
  #conversation;
  #signal;
  #waiting = new Map(); // what answers of the SDK are awaited, by kind and id
  #asked = 0;
  #usage = {input: 0, output: 0};

  constructor({send, model, conversation, signal}) {
    this.#send = send;
    this.#model = model;
    this.#conversation = conversation;
    this.#signal = signal;
    signal.addEventListener('abort', () => {
      for (const {reject} of this.#waiting.values()) reject(signal.reason);
    });
  }

  // start answers a prompt, and resolves when the turn has ended. One that
  // failed leaves nothing in the conversation: the SDK may try it again.
  async start(prompt, mode) {
    const begin = Date.now();
    const {messages} = this.#conversation;
    const before = messages.length;
    messages.push({role: 'user', content: prompt});
    try {
      await this.#talk(messages, this.#speaker());
    } catch (e) {
      if (!this.#signal.aborted) messages.length = before;
      throw e;
    }
    this.#update(STEP_COMPLETED, [[1, 1], [2, Date.now() - begin]]);
    this.#send(encode([[3, [[10, mode || 1]]]])); // the conversation's state, which is kept here
    this.#update(TURN_ENDED, [[1, this.#usage.input], [2, this.#usage.output], [3, 0], [4, 0]]);
  }

  // answered takes an answer of the SDK: 2 of a tool, 6 of a question. An
  // answer without a result, or 5 with a failure, fails the call.
  answered(kind, message) {
    const failure = kind === 5 && message.has(2) ? message.message(2) : null;
    const id = (failure ?? message).number(1);
    const waiting = this.#waiting.get(`${kind === 5 ? 2 : kind} ${id}`);
    if (!waiting || (kind === 5 && !failure)) return;
    if (failure) waiting.reject(new Error(`the SDK could not do it: ${failure.text(2)}`));
    else if (message.has(waiting.field)) waiting.resolve(message.bytes(waiting.field));
  }

  // request asks the SDK for something and returns the field of its answer.
  #request(kind, answer, field, fields) {
    const id = ++this.#asked;
    const result = new Promise((resolve, reject) => this.#waiting.set(`${answer} ${id}`, {field, resolve, reject}));
    this.#send(encode([[kind, [[1, id], ...fields]]]));
    return result.finally(() => this.#waiting.delete(`${answer} ${id}`));
  }

  #update(kind, fields) {
    this.#signal.throwIfAborted();
    this.#send(encode([[1, [[kind, fields]]]]));
  }

  // speaker passes on what the main agent says. Thinking is over when
  // something else begins.
  #speaker() {
    let since = 0;
    const thought = () => {
      if (since) this.#update(THOUGHT, [[1, Date.now() - since]]);
      since = 0;
    };
    const tokens = (text) => this.#update(TOKENS, [[1, Math.ceil(text.length / 4)]]);
    return {
      thinking: (text) => {
        since ||= Date.now();
        this.#update(THINKING, [[1, text]]);
        tokens(text);
      },
      text: (text) => {
        thought();
        this.#update(TEXT, [[1, text]]);
        tokens(text);
      },
      partial: (call, step) => {
        thought();
        this.#update(PARTIAL, [[1, call.id], [2, toolCall(call)], [4, step]]);
      },
      started: (call, step) => {
        thought();
        this.#update(STARTED, [[1, call.id], [2, toolCall(call)], [3, step]]);
      },
      completed: (call, step, result) => this.#update(COMPLETED, [[1, call.id], [2, toolCall(call, result)], [3, step]]),
      over: thought,
    };
  }

  // talk has a conversation with the model until it calls for nothing.
  async #talk(messages, speaker) {
    for (let step = 1; ; step++) {
      const said = [];
      const calls = [];
      for await (const {text, thinking, call} of ask(this.#model.url, this.#model.name, messages, offered, this.#signal)) {
        if (text !== undefined) speaker.text(text);
        if (thinking !== undefined) speaker.thinking(thinking);
        if (call) calls.push(call);
        else if (text !== undefined) said.push({type: 'text', text});
      }
      speaker.over();
      this.#usage.input += 100;
      this.#usage.output += 10;
      messages.push({role: 'assistant', content: [...said, ...calls.map((c) => ({type: 'tool_use', ...c}))]});
      if (calls.length === 0) return;
      const name = `step-${step}`;
      const running = calls.map((call) => this.#call(call, name, speaker));
      const results = await Promise.all(running);
      messages.push({role: 'user', content: results.map((content, i) => ({type: 'tool_result', tool_use_id: calls[i].id, content}))});
    }
  }

  // call does what the model calls for, and returns what it is told of it.
  async #call(call, step, speaker) {
    argumentsOf(call); // throws for a tool that there is not
    if (call.name !== 'shell') speaker.partial(call, step);
    speaker.started(call, step);
    const [result, told] = await this.#perform(call);
    speaker.completed(call, step, result);
    return told;
  }

  #perform(call) {
    switch (call.name) {
      case 'shell':
        return this.#shell(call);
      case 'create_plan':
        return this.#plan(call);
      case 'task':
        return this.#task(call);
      default:
        return this.#todos(call);
    }
  }

  // shell has the SDK run the command; its result stands in the call as it is.
  async #shell(call) {
    const bytes = await this.#request(2, 2, 2, [[15, call.id], [2, shellCommand(call)]]);
    const result = new Message(bytes);
    const outcome = [1, 2].find((kind) => result.has(kind)); // it ran, and how it went
    if (!outcome) return [bytes, 'it could not be run'];
    const ran = result.message(outcome);
    return [bytes, `exit code ${ran.number(3)}\n${ran.text(5)}${ran.text(6)}`.slice(0, LONGEST_PREVIEW)];
  }

  // plan asks the SDK, as it would ask the user, whether the plan will do.
  async #plan(call) {
    const response = await this.#request(7, 6, 7, [[7, [[1, argumentsOf(call)], [2, call.id]]]]);
    const result = new Message(response).bytes(1);
    return [result, new Message(result).has(1) ? 'accepted' : 'not accepted'];
  }

  // todos keeps the list of the conversation.
  async #todos({input: {todos, merge = false}}) {
    const kept = new Map(merge ? this.#conversation.todos.map((t) => [t.id, t]) : []);
    for (const t of todos) kept.set(t.id, {...kept.get(t.id), ...t});
    this.#conversation.todos = [...kept.values()];
    const list = this.#conversation.todos.map((t) => [1, todoFields(t)]);
    return [[[1, [...list, [2, list.length], [3, merge]]]], `${list.length} in the list`];
  }

  // task lets a subagent work, of which the SDK hears at its end: its steps
  // are the result.
  async #task(call) {
    const begin = Date.now();
    const steps = [];
    let text = '';
    const flush = () => {
      if (text) steps.push([1, [[1, [[1, text]]]]]);
      text = '';
    };
    await this.#talk([{role: 'user', content: call.input.prompt}], {
      text: (more) => (text += more),
      thinking: (more) => {
        flush();
        steps.push([1, [[3, [[1, more]]]]]);
      },
      partial: () => {},
      started: flush,
      completed: (inner, _, result) => steps.push([1, [[2, toolCall(inner, result)]]]),
      over: flush,
    });
    const last = steps.at(-1)?.[1][0];
    const report = last?.[0] === 1 ? last[1][0][1] : '';
    return [[[1, [...steps, [2, `agent-${call.id}`], [4, Date.now() - begin]]]], report];
  }
}
