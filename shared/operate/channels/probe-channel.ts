/**
 * Asks a channel's upstream what it can, by a dozen small calls at most, and writes that as `_can` on the row, with the rules
 * of the model that are known otherwise. The upstream
 * charges for the calls. Calls are built and read as by the relay; what came of one is decided by status and machine-readable
 * fields, never by a text. Writes nothing unless the upstream answers to the end.
 */
import { computeCost, findPrice } from '../../billing/price.ts';
import type { Capabilities } from '../../config/rows/capabilities.ts';
import { readChannel, type ChannelRow } from '../../config/rows/channel-row.ts';
import type { ChannelType } from '../../upstreams/channel-type.ts';
import { CannotCarry } from '../../upstreams/dialect.ts';
import { dialectNames, ownDialectNames } from '../../upstreams/dialects/dialects.ts';
import { listWithheldTexts } from '../../upstreams/error-text.ts';
import { CallerFault, ErrorInAnswer, type UpstreamFailure } from '../../upstreams/exchange.ts';
import { effortScale, type WrittenRules } from '../../upstreams/quirks.ts';
import { readErrorInAnswer, readFailure } from '../../upstreams/read-failure.ts';
import {
  canCarry,
  dialectOf,
  quirksOf,
  findRowRules,
  upstreamModelOf,
} from '../../upstreams/called-channel.ts';
import { channelTypes, type OwnAttributeName } from '../../upstreams/types/channel-types.ts';
import type { ChatContentPart, ChatMessage, ChatRequest } from '../../wire/canonical-call.ts';
import { asRecord, parseJson } from '../../wire/json.ts';
import { compileRows } from '../config/row-changes.ts';
import type { OperatorPorts, RawRow } from '../operator-ports.ts';
import { formatMoney, Failure } from '../plan.ts';
import { addModelRules } from './edit-channel.ts';
import { countDroppedFields } from '../requests/list-requests.ts';
import { carryOutWrites } from '../rows.ts';
import {
  prepareDirectChannel,
  cleanText,
  buildDirectCall,
  readReply,
  reasonOf,
  sendCall,
  type AskedDirectly,
  type CalledDirectly,
  type DirectCall,
  type TestInput,
} from './test-channel.ts';

/** A field that `can` lacks could not be decided. `unasked`: efforts that no call was left for. */
export type ProbeResult = Awaited<ReturnType<typeof carryOutProbe>>;

const callsMax = 12;
/** A model that thinks has room for it; a short answer never needs as much. */
const tokensMax = 2048;
const dependedOn = ['type', 'endpoint', 'dialect', 'models', 'mapper', 'params'];

/** `probed` holds the secret, so it must not be shown. */
export async function planProbe(ports: OperatorPorts, input: TestInput) {
  const { called: probed, raw } = await prepareDirectChannel(ports, input);
  const { channel, model } = probed;
  const { endpoint } = channel;
  return {
    changes: [{ endpoint }],
    effect: [
      `Send up to ${callsMax} calls to ${endpoint}, model ${upstreamModelOf(channel, model)}`,
      ...(await estimateProbeCost(ports, model)),
    ],
    questions: [`Send the calls and save the findings to channel ${input.id} (_can and params.model_rules)?`],
    probed,
    raw,
  };
}

/** A rough average: the longest call has a tool or a small picture, and reasoning models think for a line or two. */
const expected = { prompt_tokens: 150 * callsMax, completion_tokens: 150 * callsMax };

/** Sentences for operators. The upstream's own price is known to nobody here. */
async function estimateProbeCost(ports: OperatorPorts, model: string): Promise<string[]> {
  const { snapshot } = compileRows(ports, await ports.config.tables());
  const price = findPrice(snapshot.charges, model, ports.clock.now());
  const cost = computeCost(price, expected) * (price.type === 'times-billing' ? BigInt(callsMax) : 1n);
  const money =
    price.type === 'non-billing'
      ? `unknown, ${model} has no price`
      : `${formatMoney(cost)} at your price for customers (rule ${price.rule}); the provider's price may differ`;
  return [
    `Expected usage: ${expected.prompt_tokens} input and ${expected.completion_tokens} output tokens (at most ${tokensMax * callsMax} output tokens)`,
    `Expected cost: ${money}`,
  ];
}

/**
 * Sends a call unless the probe has used all of its calls. Throws a Failure when the answer says nothing about the
 * channel.
 */
type Ask = (dialect: string, request: AskedDirectly['request']) => Promise<ProbeOutcome | undefined>;

/** Throws a Failure, and writes nothing, if the upstream does not answer, or if the row was changed meanwhile. */
export async function carryOutProbe(
  ports: OperatorPorts,
  { probed, raw }: { probed: CalledDirectly; raw: RawRow },
) {
  const { channel, model } = probed;
  // Without what spares its upstream the very thing that a probe asks about.
  const asks = { efforts: [...effortScale], system: 'anywhere' as const };
  const model_rules = { [model]: { ...findRowRules(channel, model), ...asks } };
  const params = { ...channel.params, model_rules };
  const called = { ...probed, channel: { ...channel, params } };
  let sent = 0;
  const ask: Ask = async (dialect, request) => {
    if (sent >= callsMax) return undefined;
    const call = await buildQuestion(called, { dialect, request, tokensMax });
    if (!call) return { kind: 'unsent' };
    sent += 1;
    return outcomeOf(ports, call);
  };
  const own = dialectOf(channel, model);
  const spoken = await findDialects(ask, {
    wanted: [own, ...dialectNames.filter((name) => name !== own)],
    others: ownDialectNames.filter((name) => canCarry(channel, name)),
  });
  const tools = spoken.takesTools ? toolsQuestion.decide(spoken.answer) : false;
  const parallel = spoken.takesTools ? hasParallelTools(spoken.answer) : undefined;
  const found: Capabilities = {};
  for (const questions of otherQuestions)
    Object.assign(found, await askTogether(ask, spoken.dialects[0] ?? own, questions));
  const { efforts, unasked } = await findEfforts(ask, spoken.dialects[0] ?? own);
  const can: Capabilities = {
    model,
    ...(tools !== undefined && { tools }),
    ...(parallel !== undefined && { parallel_tools: parallel }),
    ...found,
    efforts,
    ...(asksForUsage(channel) && { usage_streaming: spoken.answer.hasUsage }),
    dialects: dialectNames.filter((name) => spoken.dialects.includes(name)),
  };
  const conflict = new Failure(
    'nothing was written: someone else changed the channel in the meantime; re-run the command',
  );
  const unchanged = Object.fromEntries(dependedOn.map((name) => [name, raw[name]]));
  const rules = deriveRules(channel, can, unasked);
  const isNew = Object.keys(rules).length > 0;
  const attributes = { _can: can, ...(isNew && { params: addModelRules(raw, { [model]: rules }) }) };
  const write = { table: 'channels', key: { id: raw['id'] }, attributes, unchanged } as const;
  const changes = [{ kind: 'update' as const, ...write, conflict }];
  await carryOutWrites(ports, { changes, effect: [], questions: [] });
  const reading = readChannel({ ...raw, ...attributes }, ports.target);
  const warnings = 'warning' in reading && reading.warning !== undefined ? [reading.warning] : [];
  const dropped = await countDroppedFields(ports, channel.id);
  return { can, rules, sent, unasked, warnings, dropped };
}

/** Rules that differ from what is known of the model. A model with token budgets reveals nothing about its efforts. */
function deriveRules(channel: ChannelRow, can: Capabilities, unasked: readonly string[]): WrittenRules {
  const { efforts: known = [], thinkingForm, systemPosition } = quirksOf(channel, can.model ?? '');
  const found = new Set([...(can.efforts ?? []), ...known.filter((each) => unasked.includes(each))]);
  const efforts = effortScale.filter((each) => found.has(each));
  const differs = effortScale.some((each) => known.includes(each) !== efforts.includes(each));
  return {
    ...(thinkingForm === 'adaptive' && can.efforts?.length && differs && { efforts }),
    ...(can.system_anywhere === false && systemPosition === 'anywhere' && { system: 'first' }),
  };
}

/** If the row's calls don't ask for usage, an answer without usage proves nothing. */
function asksForUsage(channel: ChannelRow): boolean {
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  return channel.params.stream && channel.params.include_usage && (type.reportsUsage?.(channel) ?? true);
}

interface ProbeAnswer {
  kind: 'answered';
  text: string;
  calls: number;
  /** true: the limit on output tokens ended the answer. */
  isCut: boolean;
  thinks: boolean;
  /** It is no conversation. */
  hasVectors: boolean;
  hasUsage: boolean;
}

type ProbeOutcome =
  | ProbeAnswer
  /** The dialect has no form for the request, so nothing was sent. */
  | { kind: 'unsent' }
  /**
   * The upstream refused this request, or the key; or the address does not speak the dialect, or failed in a way that may
   * not be the request's fault.
   */
  | { kind: 'refused' | 'denied' | 'unusable'; said: string };

/** Returns nothing when the dialect cannot express the request, or would send another effort. */
async function buildQuestion(called: CalledDirectly, asked: AskedDirectly): Promise<DirectCall | undefined> {
  try {
    const call = await buildDirectCall(called, asked);
    const { effort, dropped } = call.built.sent;
    const isChanged = effort !== undefined || dropped.includes('reasoning_effort');
    return asked.request.reasoning_effort !== undefined && isChanged ? undefined : call;
  } catch (error) {
    if (error instanceof CannotCarry) return undefined;
    throw error;
  }
}

async function outcomeOf(ports: OperatorPorts, call: DirectCall): Promise<ProbeOutcome> {
  const { called, built } = call;
  const { status, ok, body } = await sendCall(ports, call);
  // A web page says nothing that helps.
  const shown = /^\s*</.test(body) ? 'a web page' : cleanText(body, called.secret) || 'empty body';
  const said = `status ${status}: ${shown}`;
  const reading = {
    withheld: listWithheldTexts(built.known),
    words: called.channel.params.words,
    sentBody: built.request.body,
  };
  if (!ok) {
    const reply = { status, headers: {}, body: bytesOf(body) };
    return classifyFailure(await readFailure(reply, reading), said);
  }
  const { chunks, usage, failure } = readReply(body, call);
  if (failure instanceof ErrorInAnswer)
    return classifyFailure(readErrorInAnswer(failure.error, reading), said);
  if (failure !== undefined) return { kind: 'unusable', said: `${said} (${reasonOf(failure)})` };
  const choices = chunks.flatMap((chunk) => chunk.choices.filter(({ index }) => index === 0));
  const indexes = choices.flatMap(({ delta }) => delta.tool_calls?.map(({ index }) => index) ?? []);
  return {
    kind: 'answered',
    text: choices.map(({ delta }) => delta.content ?? '').join(''),
    calls: new Set(indexes).size,
    isCut: choices.some(({ finish_reason: reason }) => reason === 'length'),
    thinks: (usage?.reasoning ?? 0) > 0 || choices.some(({ delta }) => Boolean(delta.reasoning_content)),
    hasVectors: chunks.some(({ vectors = [] }) => vectors.length > 0),
    hasUsage: usage !== undefined,
  };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(text);
}

/** Throws for an empty account, too many requests and an upstream that fails for a time, whatever it is asked. */
function classifyFailure(failure: CallerFault | UpstreamFailure, said: string): ProbeOutcome {
  if (failure instanceof CallerFault) return { kind: 'refused', said };
  const { kind, status = 0 } = failure;
  if (status === 402 || (kind === 'secret' && status === 0))
    throw new Failure(`nothing was written: your account with the provider has no credit left (${said})`);
  if (status === 408 || status === 429 || (status >= 502 && status <= 599))
    throw new Failure(`nothing was written: the upstream is unavailable (${said})`);
  return { kind: kind === 'secret' || status === 401 || status === 403 ? 'denied' : 'unusable', said };
}

/**
 * Finds the dialects that an upstream speaks, and whether it takes tools. A dialect in which it refuses tools counts
 * only where it takes them in none, since agents cannot use it there. Throws a Failure if the upstream answers in none.
 * `dialects`: in the order in which they were asked; `answer`: in the first, to the call with tools, unless they are refused.
 * @param others those of calls that are no conversation
 */
async function findDialects(ask: Ask, { wanted, others }: Record<'wanted' | 'others', readonly string[]>) {
  const asked = new Map<string, ProbeOutcome>();
  for (const questions of [[toolsQuestion], []]) {
    const answers: [string, ProbeAnswer][] = [];
    for (const dialect of wanted) {
      const { kind = 'refused' } = asked.get(dialect) ?? {};
      const outcome =
        kind === 'refused' || kind === 'unsent' ? await ask(dialect, requestFor(questions)) : undefined;
      if (outcome) asked.set(dialect, outcome);
      if (outcome?.kind === 'answered') answers.push([dialect, outcome]);
    }
    const [first] = answers;
    if (first) {
      const dialects = answers.map(([dialect]) => dialect);
      return { dialects, takesTools: questions.length > 0, answer: first[1] };
    }
  }
  const said = [...asked].map(([dialect, outcome]) => {
    const text = `${dialect}: ${'said' in outcome ? outcome.said : 'nothing to send'}`;
    return { text, isDenied: outcome.kind === 'denied' };
  });
  const denied = said.find(({ isDenied }) => isDenied);
  for (const dialect of denied ? [] : others) {
    const outcome = await ask(dialect, requestFor([]));
    if (outcome?.kind === 'answered' && outcome.hasVectors)
      throw new Failure(
        'nothing was written: this is an embedding model, and a probe needs a chat model; use `channel test`',
      );
  }
  throw new Failure(
    denied
      ? `nothing was written: the upstream rejects the API key (${denied.text})`
      : `nothing was written: the upstream supports no known dialect. ${said.map(({ text }) => text).join('; ')}`,
  );
}

/** Asks all in one call, and one by one if that is refused. */
async function askTogether(
  ask: Ask,
  dialect: string,
  questions: readonly ProbeQuestion[],
): Promise<Capabilities> {
  const outcome = await ask(dialect, requestFor(questions));
  const found: Capabilities = {};
  if (questions.length > 1 && outcome?.kind !== 'answered') {
    for (const question of questions) Object.assign(found, await askTogether(ask, dialect, [question]));
    return found;
  }
  for (const { capability, decide } of questions) {
    const isAble = outcome && applyDecision(outcome, decide);
    if (isAble !== undefined) found[capability] = isAble;
  }
  return found;
}

/** Two efforts that every model with efforts knows, then the others, those first that are worth most. */
const efforts = [
  ['low', 'high'],
  ['medium', 'none', 'xhigh', 'max', 'minimal'],
] as const;

async function findEfforts(ask: Ask, dialect: string) {
  const known = new Set<string>();
  const unasked: string[] = [];
  for (const some of efforts) {
    for (const effort of some) {
      const outcome = await ask(dialect, requestFor([], { reasoning_effort: effort }));
      if (outcome === undefined) unasked.push(effort);
      // A model that thinks at effort "none" ignores the field, or the channel sent none.
      else if (applyDecision(outcome, ({ thinks }) => effort !== 'none' || !thinks)) known.add(effort);
    }
    if (known.size === 0 && unasked.length === 0) break;
  }
  return { efforts: effortScale.filter((effort) => known.has(effort)), unasked };
}

/** Throws a Failure when the upstream rejects the key. */
function applyDecision(outcome: ProbeOutcome, decide: ProbeQuestion['decide']): boolean | undefined {
  if (outcome.kind === 'answered') return decide(outcome);
  if (outcome.kind === 'denied')
    throw new Failure(
      `nothing was written: the upstream has started to reject the API key (${outcome.said})`,
    );
  return outcome.kind === 'unusable' ? undefined : false;
}

/** A request and how to read its answer. An upstream that rejects the request lacks the feature. */
interface ProbeQuestion {
  capability: 'tools' | 'json_schema' | 'images' | 'system_anywhere';
  fields?: Partial<ChatRequest>;
  before?: ChatMessage[];
  parts?: ChatContentPart[];
  text?: string;
  /** Returns undefined when the answer proves neither. */
  decide: (answer: ProbeAnswer) => boolean | undefined;
}

/** One request that asks all the questions; none: a plain request. */
function requestFor(
  questions: readonly ProbeQuestion[],
  fields: Partial<ChatRequest> = {},
): AskedDirectly['request'] {
  const text = questions.find((each) => each.text !== undefined)?.text ?? 'Answer with the one word: ready';
  const parts = questions.flatMap((question) => question.parts ?? []);
  const content = parts.length > 0 ? [...parts, { type: 'text', text }] : text;
  return {
    ...Object.assign({}, ...questions.map((question) => question.fields), fields),
    messages: [...questions.flatMap(({ before = [] }) => before), { role: 'user', content }],
  };
}

const buildObjectSchema = (name: string) => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  required: [name],
  additionalProperties: false,
});

const toolsQuestion: ProbeQuestion = {
  capability: 'tools',
  fields: {
    tools: [
      {
        type: 'function',
        function: {
          name: 'population_of',
          description: 'The number of people who live in a city.',
          parameters: buildObjectSchema('city'),
        },
      },
    ],
  },
  text: 'Call the tool population_of for Paris, for Rome and for Oslo: three calls in parallel, all at once.',
  // A server that does not know tools leaves them out, and its model answers with a text.
  decide: ({ calls, isCut }) => (calls > 0 ? true : isCut ? undefined : false),
};

const hasParallelTools = ({ calls, isCut }: ProbeAnswer): boolean | undefined =>
  calls > 1 ? true : calls === 1 && !isCut ? false : undefined;

/** A square of 32 x 32 grey points. Some vendors refuse smaller pictures. */
const picture =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAFklEQVR42mNoIAAYRhWMKhhVMFIVAABCAAAfN5c2AAAAAABJRU5ErkJggg==';

/** The calls of each list are sent as one. */
const otherQuestions: readonly (readonly ProbeQuestion[])[] = [
  [
    {
      capability: 'json_schema',
      fields: {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'status', strict: true, schema: buildObjectSchema('status') },
        },
      },
      decide: ({ text, isCut }) =>
        typeof asRecord(parseJson(text))['status'] === 'string' ? true : isCut ? undefined : false,
    },
  ],
  [
    {
      capability: 'images',
      parts: [{ type: 'image_url', image_url: { url: picture } }],
      decide: () => true,
    },
    {
      capability: 'system_anywhere',
      before: [
        { role: 'system', content: 'You answer with one word.' },
        { role: 'user', content: 'Good morning.' },
        { role: 'assistant', content: 'Hello.' },
        { role: 'system', content: 'From now on you answer in small letters.' },
      ],
      decide: () => true,
    },
  ],
];
