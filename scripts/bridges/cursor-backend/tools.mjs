// The tools that the model is offered, and how a call of each looks to the
// SDK. Fields are those of the SDK's own messages.
import {Refusal} from './wire.mjs';

const string = {type: 'string'};
const schema = (required, properties) => ({type: 'object', required, properties});
const todo = schema(['id', 'content', 'status'], {id: string, content: string, status: string});

// offered is what the model hears of the tools.
export const offered = [
  {name: 'shell', description: 'Run a command', input_schema: schema(['command'], {command: string, timeout: {type: 'integer'}, description: string})},
  {name: 'update_todos', description: 'Keep a list', input_schema: schema(['todos'], {todos: {type: 'array', items: todo}, merge: {type: 'boolean'}})},
  {name: 'create_plan', description: 'Propose a plan', input_schema: schema(['plan'], {plan: string, name: string, overview: string})},
  {name: 'task', description: 'Ask a subagent', input_schema: schema(['description', 'prompt'], {description: string, prompt: string, model: string})},
];

// Numbers of the tools in the message ToolCall, whose fields are 1 for the
// arguments and 2 for the result.
const numbers = {shell: 1, update_todos: 9, create_plan: 17, task: 19};

const statuses = ['', 'pending', 'in_progress', 'completed', 'cancelled'];
const commandTimeout = 30_000; // ms, for a command that names none

// todoFields is the message of one todo.
export function todoFields({id, content, status}) {
  return [[1, id], [2, content], [3, Math.max(statuses.indexOf(status), 1)]];
}

// args are a call's arguments as the SDK has them.
const args = {
  shell: ({command, timeout = commandTimeout, description}, id) => [[1, command], [3, timeout], [4, id], [15, description]],
  update_todos: ({todos, merge = false}) => [...todos.map((t) => [1, todoFields(t)]), [2, merge]],
  create_plan: ({plan, overview = '', name = ''}) => [[1, plan], [3, overview], [4, name]],
  task: ({description, prompt, model}) => [[1, description], [2, prompt], [3, [[1, []]]], [4, model]],
};

export function argumentsOf({name, input, id}) {
  const make = args[name];
  if (!make) throw new Refusal('unimplemented', `the model calls ${JSON.stringify(name)}: want ${Object.keys(args).join(', ')}`);
  return make(input, id);
}

// shellCommand is what the SDK is asked to run. It wants to hear which programs
// the command starts; here that is the command as a whole.
export function shellCommand(call) {
  const {command} = call.input;
  return [...argumentsOf(call), [8, [[2, [[1, command.split(' ')[0]], [3, command]]]]]];
}

// toolCall is a call with its result, or without one while it runs.
export function toolCall(call, result) {
  return [[numbers[call.name], [[1, argumentsOf(call)], [2, result]]]];
}
