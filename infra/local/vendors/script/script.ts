import { createHash } from 'node:crypto';
import { argumentsFor } from '../../demo/arguments.ts';
import type { JsonSchema } from '../../demo/request.ts';
import { asks, callingTurnsIn, callsPerTurnIn, wantedCallsIn, type WantedCall } from './words.ts';

/** What the scripted model looks at, whatever the vendor's language. */
export interface Transcript {
  /** The last user text. Texts beside tool results are not one. */
  said: string;
  /** Turns with calls after it. */
  turns: number;
  /** Their results, in order. */
  results: { name: string; text: string }[];
  tools: ScriptTool[];
  choice: 'auto' | 'none' | 'required' | { name: string };
  /** At most one call a turn. */
  single?: boolean;
  /** Texts that end the answer before them. */
  stops?: string[];
  /** The schema of the answer, if the request sets one. */
  schema?: JsonSchema;
}

export interface ScriptTool {
  name: string;
  parameters?: JsonSchema;
  /** Takes free text instead of JSON. */
  custom?: boolean;
  namespace?: string;
}

/** One turn of the model. */
export interface Turn {
  thinking: string;
  text: string;
  calls: ScriptCall[];
  finish: 'stop' | 'calls' | 'length' | 'refusal' | 'pause';
  /** Number of calling turns before this one. */
  step: number;
  /** The text that ended it. */
  stoppedBy?: string;
  /** Tells this question's calls from those of others: eight digits of [0-9a-f]. */
  question: string;
}

export interface ScriptCall {
  name: string;
  /** JSON text, or free text of a custom tool. */
  input: string;
  custom: boolean;
  namespace?: string;
}

/**
 * Equal transcripts get equal turns. While tools are declared and fewer than the wanted turns have called them
 * (`words.ts`), the model calls the tool that the text names, else the first one; then it answers with a text
 * that names the results. A forced or required tool is called whatever was called before, as models do.
 */
export function scriptedTurn(transcript: Transcript): Turn {
  const { said, turns: step, schema } = transcript;
  const question = createHash('sha256').update(said).digest('hex').slice(0, 8);
  const wanted = wantedCallsIn(said)[step];
  const tool = toolToCall(transcript, wanted);
  if (asks(said, 'refuse'))
    return turnOf({ step, question, text: "I'm sorry, I can't help with that.", finish: 'refusal' });
  if (asks(said, 'pause') && step === 0)
    return turnOf({ step, question, text: 'I go on in a moment.', finish: 'pause' });
  if (tool === undefined) {
    const answer = schema ? argumentsFor(schema, said) : answerTo(transcript);
    return turnOf({ step, question, ...beforeStop(answer, transcript.stops ?? []), finish: 'stop' });
  }
  const count = transcript.single ? 1 : callsPerTurnIn(said);
  const text = asks(said, 'explain') ? `I ask ${tool.name}.` : '';
  return turnOf({
    step,
    question,
    text,
    calls: Array.from({ length: count }, () => callOf(tool, said, wanted)),
    finish: 'calls',
  });
}

function toolToCall(
  { tools, choice, said, turns }: Transcript,
  wanted: WantedCall | undefined,
): ScriptTool | undefined {
  if (choice === 'none') return undefined;
  if (typeof choice === 'object') return tools.find(({ name }) => name === choice.name);
  if (choice === 'auto' && turns >= callingTurnsIn(said)) return undefined;
  const text = wanted?.name ?? said;
  return tools.find(({ name }) => name === text) ?? tools.find(({ name }) => text.includes(name)) ?? tools[0];
}

function callOf(
  { name, parameters, custom = false, namespace }: ScriptTool,
  said: string,
  wanted: WantedCall | undefined,
): ScriptCall {
  const free = `free text of ${name}\nsecond line`;
  const input = wanted ? wantedInput(wanted, custom) : custom ? free : argumentsFor(parameters, said);
  return { name, ...(namespace !== undefined && { namespace }), input, custom };
}

/** A text for a tool that takes JSON is its property `input`, as relays declare tools that take text. */
function wantedInput({ input }: WantedCall, custom: boolean): string {
  if (!input.startsWith('"')) return input;
  return custom ? (JSON.parse(input) as string) : `{"input":${input}}`;
}

/** Bytes that a careless copy loses: doubled spaces, a line separator, a pair of surrogates, a last line end. */
export const thoughtOf = (step: number, calls: ScriptCall[]): string =>
  `Step ${step + 1}:  ${calls.length === 0 ? 'I answer' : `I call ${calls[0]?.name} ×${calls.length}`}\u2028 “\\n” 🧭\n`;

const turnOf = ({
  calls = [],
  ...turn
}: Omit<Turn, 'thinking' | 'calls'> & { calls?: ScriptCall[] }): Turn => ({
  ...turn,
  calls,
  thinking: thoughtOf(turn.step, calls),
});

function beforeStop(text: string, stops: string[]): { text: string; stoppedBy?: string } {
  const [first] = stops
    .filter((stop) => stop !== '' && text.includes(stop))
    .toSorted((one, other) => text.indexOf(one) - text.indexOf(other));
  return first === undefined ? { text } : { text: text.slice(0, text.indexOf(first)), stoppedBy: first };
}

function answerTo({ said, results }: Transcript): string {
  if (asks(said, 'long')) return Array.from({ length: 400 }, (_, index) => `word${index + 1}`).join(' ');
  if (results.length === 0) return `You said: "${said}".`;
  return `The tools answered: ${results.map(({ name, text }) => `${name}: ${text}`).join('; ')}.`;
}
