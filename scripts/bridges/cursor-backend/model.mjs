// A client of the scripted model: Anthropic Messages in events.

import {Refusal} from './wire.mjs';

// refused is an error that the model answered.
function refused(status, {type, message} = {}) {
  const code = status === 429 || type === 'rate_limit_error' ? 'resource_exhausted' : 'internal';
  return new Refusal(code, message ?? `the model answered with status ${status}`);
}

async function* lines(body) {
  let rest = '';
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const whole = (rest + text).split('\n');
    rest = whole.pop();
    yield* whole;
  }
}

// ask yields what the model says to a conversation: {text}, {thinking}, or
// {call: {id, name, input}}.
export async function* ask(url, model, messages, tools, signal) {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({model, messages, tools, stream: true, max_tokens: 8192}),
    signal,
  });
  if (!response.ok) throw refused(response.status, (await response.json().catch(() => ({}))).error);
  let call = null;
  let over = false;
  for await (const line of lines(response.body)) {
    if (!line.startsWith('data: ')) continue;
    const event = JSON.parse(line.slice('data: '.length));
    const {delta, content_block: block} = event;
    switch (event.type) {
      case 'error':
        throw refused(0, event.error);
      case 'content_block_start':
        if (block.type === 'tool_use') call = {id: block.id, name: block.name, input: ''};
        break;
      case 'content_block_delta':
        if (delta.type === 'text_delta') yield {text: delta.text};
        if (delta.type === 'thinking_delta') yield {thinking: delta.thinking};
        if (delta.type === 'input_json_delta') call.input += delta.partial_json;
        break;
      case 'content_block_stop':
        if (call) yield {call: {...call, input: JSON.parse(call.input || '{}')}};
        call = null;
        break;
      case 'message_stop':
        over = true;
    }
  }
  if (!over) throw new Error('the model broke off');
}
