/**
 * Asks a channel's upstream what it can, by a dozen small calls at most, and writes that as `_can` on the row. The
 * upstream charges for the calls. Writes nothing unless the upstream answers to the end.
 */
import { readChannel, type ChannelRow } from '../../config/rows/channel-row.ts';
import type { Capabilities } from '../../config/rows/capabilities.ts';
import { dialectNames, loadDialect } from '../../upstreams/dialects/dialects.ts';
import { effortScale } from '../../upstreams/quirks.ts';
import { dialectOf, upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import { channelTypes, type OwnAttributeName } from '../../upstreams/types/channel-types.ts';
import type { ChannelType } from '../../upstreams/channel-type.ts';
import { Failure, type Plan } from '../plan.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { carryOutWrites } from '../rows.ts';
import { channelSecret, findChannel, refuseRoleSigned, servedModel } from './list-channels.ts';
import type { ChatContentPart, ChatMessage, ChatRequest } from '../../wire/canonical-call.ts';
import { asRecord, parseJson } from '../../wire/json.ts';
import { withheldTexts } from '../../upstreams/error-text.ts';
import { CallIds } from '../../upstreams/call-ids.ts';
import { CannotCarry, type Dialect } from '../../upstreams/dialect.ts';
import { failureInAnswer, readFailure } from '../../upstreams/read-failure.ts';
import { channelRequest, type BuiltRequest } from '../../upstreams/types/channel-request.ts';
import { CallerFault, ErrorInAnswer, UpstreamFailure } from '../../upstreams/exchange.ts';
import { readReply, reasonOf, callUpstream, cleanText, type UpstreamAnswer } from './test-channel.ts';
import { formatYuan } from '../../billing/amount.ts';
import { costOf, priceOf } from '../../billing/price.ts';
import { compileSnapshot } from '../../config/compile-snapshot.ts';

export interface ProbeInput {
  id: string;
  /** Public name; absent: the channel's first model. */
  model?: string;
  /** See `channelSecret`. */
  secretEnv?: string;
}

interface ProbePlan extends Plan<{ endpoint: string }> {
  /** Holds the secret, so it must not be shown. */
  probed: ProbedChannel;
  /** The row as read. */
  raw: RawRow;
}

export interface ProbeResult {
  /** As written. An absent field could not be decided. */
  can: Capabilities;
  /** Calls that were sent. */
  sent: number;
  /** Efforts that no call was left for. */
  unasked: string[];
  /** The relay's warnings about the row as it is now. */
  warnings: string[];
}

/** Attributes on which the findings depend. */
const dependedOn = ['type', 'endpoint', 'dialect', 'models', 'mapper', 'params'];

export async function planProbe(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'secrets' | 'tables' | 'target'>,
  { id, model: wanted, secretEnv }: ProbeInput,
): Promise<ProbePlan> {
  const { raw, channel } = await findChannel(ports, id);
  const model = servedModel(channel, wanted);
  refuseRoleSigned(channel);
  const secret = await channelSecret(ports, channel, secretEnv);
  const { endpoint } = channel;
  return {
    changes: [{ endpoint }],
    effect: [
      `at most ${callsMax} calls to ${endpoint}, model ${upstreamModel(channel, model)}`,
      ...(await expectedCost(ports, model)),
    ],
    questions: [`Send them, and write what they show as _can on the channel ${id}?`],
    probed: { channel, model, secret },
    raw,
  };
}

/** Throws a Failure, and writes nothing, if the upstream does not answer, or if the row was changed meanwhile. */
export async function carryOutProbe(
  ports: Pick<OperatorPorts, 'clock' | 'tables' | 'target' | 'upstreams'>,
  { probed, raw }: Pick<ProbePlan, 'probed' | 'raw'>,
): Promise<ProbeResult> {
  const { channel, model } = probed;
  const own = dialectOf(channel, model);
  const calls = new ProbeCalls(ports, { ...probed, channel: asUpstreamsSee(channel) });
  const wanted = [own, ...dialectNames.filter((name) => name !== own)];
  const { dialects, toolsAnswer, answer } = await findDialects(calls, wanted);
  const [first = own] = dialects;
  const tools = toolsAnswer ? toolsQuestion.decide(toolsAnswer) : false;
  const parallel = toolsAnswer && parallelTools(toolsAnswer);
  const found = await findCapabilities(calls, first);
  const can: Capabilities = {
    model,
    ...(tools !== undefined && { tools }),
    ...(parallel !== undefined && { parallel_tools: parallel }),
    ...found.can,
    ...(asksForUsage(channel) && { usage_streaming: answer.hasUsage }),
    dialects: dialectNames.filter((name) => dialects.includes(name)),
  };
  const write: RowWrite = {
    kind: 'update',
    table: 'channels',
    key: { id: raw['id'] },
    attributes: { _can: can },
    unchanged: Object.fromEntries(dependedOn.map((name) => [name, raw[name]])),
    conflict: new Failure('nothing was written: somebody changed the row meanwhile; repeat the command'),
  };
  await carryOutWrites(ports, { changes: [write], effect: [], questions: [] });
  const reading = readChannel({ ...raw, _can: can }, ports.target);
  const warnings = 'warning' in reading && reading.warning !== undefined ? [reading.warning] : [];
  return { can, sent: calls.sent, unasked: found.unasked, warnings };
}

/** The row without what spares its upstream the very thing that a probe asks about. */
const asUpstreamsSee = (channel: ProbedChannel['channel']): ProbedChannel['channel'] => ({
  ...channel,
  params: { ...channel.params, efforts: [...effortScale], system: 'anywhere' },
});

/** Whether the row's calls ask for the usage of a stream. Else an answer without usage shows nothing. */
function asksForUsage(channel: ProbedChannel['channel']): boolean {
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  return channel.params.stream && channel.params.include_usage && (type.reportsUsage?.(channel) ?? true);
}

// Finds the dialects that an upstream speaks, and whether it takes tools. A dialect in which it refuses tools counts
// only where it takes them in none, since agents cannot use it there.

interface SpokenDialects {
  /** In the order of `wanted`; at least one. */
  dialects: string[];
  /** The answer to the call with tools in the first of them. Undefined: tools are refused. */
  toolsAnswer: ProbeAnswer | undefined;
  /** An answer in the first of them. */
  answer: ProbeAnswer;
}

/**
 * Throws a Failure if the upstream answers in none, or not at all.
 * @param wanted the dialects to ask in; the row's own first
 */
async function findDialects(calls: ProbeCalls, wanted: readonly string[]): Promise<SpokenDialects> {
  const withTools = await askIn(calls, wanted, [toolsQuestion]);
  const [first] = answersIn(withTools);
  if (first) {
    const dialects = answersIn(withTools).map(({ dialect }) => dialect);
    return { dialects, toolsAnswer: first.answer, answer: first.answer };
  }
  const refused = withTools.filter(({ outcome: { kind } }) => kind === 'refused' || kind === 'unsent');
  const plain = await askIn(
    calls,
    refused.map(({ dialect }) => dialect),
    [],
  );
  const [spoken] = answersIn(plain);
  if (!spoken) throw noDialect([...withTools.filter((asked) => !refused.includes(asked)), ...plain]);
  const dialects = answersIn(plain).map(({ dialect }) => dialect);
  return { dialects, toolsAnswer: undefined, answer: spoken.answer };
}

interface AskedDialect {
  dialect: string;
  outcome: ProbeOutcome;
}

async function askIn(
  calls: ProbeCalls,
  dialects: readonly string[],
  questions: ProbeQuestion[],
): Promise<AskedDialect[]> {
  const asked: AskedDialect[] = [];
  for (const dialect of dialects) {
    const outcome = await calls.ask({ dialect, request: requestFor(questions) });
    if (outcome) asked.push({ dialect, outcome });
  }
  return asked;
}

const answersIn = (asked: AskedDialect[]): { dialect: string; answer: ProbeAnswer }[] =>
  asked.flatMap(({ dialect, outcome }) =>
    outcome.kind === 'answered' ? [{ dialect, answer: outcome }] : [],
  );

function noDialect(asked: AskedDialect[]): Failure {
  const saidIn = ({ dialect, outcome }: AskedDialect): string =>
    `${dialect}: ${'said' in outcome ? outcome.said : 'nothing to send'}`;
  const denied = asked.find(({ outcome }) => outcome.kind === 'denied');
  return new Failure(
    denied
      ? `nothing was written: the upstream refuses the key (${saidIn(denied)})`
      : `nothing was written: the upstream answers in no dialect. ${asked.map(saidIn).join('; ')}`,
  );
}

// Finds what a model can beside tools: the other questions, and the efforts that it knows.

/** Two efforts that every model with efforts knows, then the others, those first that are worth most. */
const common = ['low', 'high'] as const;
const others = ['medium', 'none', 'xhigh', 'max', 'minimal'] as const;

interface FoundCapabilities {
  can: Capabilities;
  /** Efforts that no call was left for. */
  unasked: string[];
}

/** Throws a Failure if the upstream stops answering. */
async function findCapabilities(calls: ProbeCalls, dialect: string): Promise<FoundCapabilities> {
  const can: Capabilities = {};
  for (const questions of otherQuestions) Object.assign(can, await askTogether(calls, dialect, questions));
  const { efforts, unasked } = await findEfforts(calls, dialect);
  return { can: { ...can, efforts }, unasked };
}

async function askTogether(
  calls: ProbeCalls,
  dialect: string,
  questions: readonly ProbeQuestion[],
): Promise<Capabilities> {
  const outcome = await calls.ask({ dialect, request: requestFor(questions) });
  const found: Capabilities = {};
  if (questions.length > 1 && outcome?.kind !== 'answered') {
    for (const question of questions) Object.assign(found, await askTogether(calls, dialect, [question]));
    return found;
  }
  for (const { capability, decide } of questions) {
    const isAble = outcome && decided(outcome, decide);
    if (isAble !== undefined) found[capability] = isAble;
  }
  return found;
}

async function findEfforts(
  calls: ProbeCalls,
  dialect: string,
): Promise<{ efforts: string[]; unasked: string[] }> {
  const known = new Set<string>();
  const unasked: string[] = [];
  const ask = async (effort: string): Promise<void> => {
    const outcome = await calls.ask({ dialect, request: requestFor([], { reasoning_effort: effort }) });
    if (outcome === undefined) unasked.push(effort);
    else if (decided(outcome, () => true)) known.add(effort);
  };
  for (const effort of common) await ask(effort);
  if (known.size > 0 || unasked.length > 0) for (const effort of others) await ask(effort);
  return { efforts: effortScale.filter((effort) => known.has(effort)), unasked };
}

/** Throws a Failure for a key that is refused by now. Undefined: the outcome does not show it. */
function decided(outcome: ProbeOutcome, decide: ProbeQuestion['decide']): boolean | undefined {
  if (outcome.kind === 'answered') return decide(outcome);
  if (outcome.kind === 'denied')
    throw new Failure(`nothing was written: the upstream refuses the key by now (${outcome.said})`);
  return outcome.kind === 'unusable' ? undefined : false;
}

// The questions of a probe, as data: what a call asks for, and what its answer shows. An upstream that refuses the
// call cannot do it.

interface ProbeQuestion {
  capability: 'tools' | 'json_schema' | 'images' | 'system_anywhere';
  /** Fields of the request. */
  fields?: Partial<ChatRequest>;
  /** Messages before the last one. */
  before?: ChatMessage[];
  /** Parts of the last message, before its text. */
  parts?: ChatContentPart[];
  /** The text of the last message. */
  text?: string;
  /** Undefined: the answer does not show it. */
  decide: (answer: ProbeAnswer) => boolean | undefined;
}

const plainText = 'Answer with the one word: ready';

/** A square of 32 x 32 grey points. Some vendors refuse smaller pictures. */
const picture =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAFklEQVR42mNoIAAYRhWMKhhVMFIVAABCAAAfN5c2AAAAAABJRU5ErkJggg==';

const isAnswered = (): true => true;

const toolsQuestion: ProbeQuestion = {
  capability: 'tools',
  fields: {
    tools: [
      {
        type: 'function',
        function: {
          name: 'population_of',
          description: 'The number of people who live in a city.',
          parameters: {
            type: 'object',
            properties: { city: { type: 'string' } },
            required: ['city'],
            additionalProperties: false,
          },
        },
      },
    ],
  },
  text: 'Call the tool population_of for Paris, for Rome and for Oslo: three calls in parallel, all at once.',
  // A server that does not know tools leaves them out, and its model answers with a text.
  decide: ({ calls, isCut }) => (calls > 0 ? true : isCut ? undefined : false),
};

/** What else the answer to the question about tools shows. */
const parallelTools = ({ calls, isCut }: ProbeAnswer): boolean | undefined =>
  calls > 1 ? true : calls === 1 && !isCut ? false : undefined;

/** The calls of each list are sent as one; if that is refused, one by one. */
const otherQuestions: readonly (readonly ProbeQuestion[])[] = [
  [
    {
      capability: 'json_schema',
      fields: {
        response_format: {
          type: 'json_schema',
          json_schema: {
            name: 'status',
            strict: true,
            schema: {
              type: 'object',
              properties: { status: { type: 'string' } },
              required: ['status'],
              additionalProperties: false,
            },
          },
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
      decide: isAnswered,
    },
    {
      capability: 'system_anywhere',
      before: [
        { role: 'system', content: 'You answer with one word.' },
        { role: 'user', content: 'Good morning.' },
        { role: 'assistant', content: 'Hello.' },
        { role: 'system', content: 'From now on you answer in small letters.' },
      ],
      decide: isAnswered,
    },
  ],
];

/** One request that asks all the questions; none: a plain request. */
function requestFor(
  questions: readonly ProbeQuestion[],
  fields: Partial<ChatRequest> = {},
): ModellessRequest {
  const text = questions.find((question) => question.text !== undefined)?.text ?? plainText;
  const parts = questions.flatMap((question) => question.parts ?? []);
  const content = parts.length > 0 ? [...parts, { type: 'text', text }] : text;
  return {
    ...Object.assign({}, ...questions.map((question) => question.fields), fields),
    messages: [...questions.flatMap(({ before = [] }) => before), { role: 'user', content }],
  };
}

// Sends one call of a probe to a channel, built and read as by the relay, and says what came of it. Decides by status
// and machine-readable fields, never by a text.

/** A model that thinks has room for it; a short answer never needs as much. */
const outputTokensMax = 2048;

interface ProbedChannel {
  channel: ChannelRow;
  /** The public name. */
  model: string;
  secret: string | undefined;
}

/** A request without the model's name. */
type ModellessRequest = Partial<ChatRequest> & { messages: ChatMessage[] };

interface ProbeRequest {
  dialect: string;
  request: ModellessRequest;
}

interface ProbeAnswer {
  kind: 'answered';
  text: string;
  /** The number of tool calls. */
  calls: number;
  /** true: the limit on output tokens ended the answer. */
  isCut: boolean;
  hasUsage: boolean;
}

type ProbeOutcome =
  | ProbeAnswer
  /** The upstream refused this request. `unsent`: the dialect has no form for it, so nothing was sent. */
  | { kind: 'refused' | 'unsent' }
  /** The upstream refused the key. */
  | { kind: 'denied'; said: string }
  /** The address does not speak the dialect, or failed in a way that may not be the request's fault. */
  | { kind: 'unusable' | 'refused'; said: string };

type ProbePorts = Pick<OperatorPorts, 'clock' | 'upstreams'>;

/**
 * Throws a Failure for what says nothing about the channel: no answer, an empty account, too many requests, an
 * upstream that is down. `onSend` is called before the request is sent.
 */
async function probeCall(
  ports: ProbePorts,
  { channel, model, secret }: ProbedChannel,
  { asked, onSend }: { asked: ProbeRequest; onSend: () => void },
): Promise<ProbeOutcome> {
  const dialect = await loadDialect(asked.dialect);
  const callIds = new CallIds({ channel: channel.id, requestId: '' });
  const call = { form: '', request: { ...asked.request, model }, unknown: {} };
  const limits = { outputTokensLimit: outputTokensMax, outputTokensDefault: outputTokensMax };
  const states = new Map();
  const without = new Set<never>();
  let built: BuiltRequest;
  try {
    built = channelRequest(channel, { dialect, call, model, secret, ...limits, states, callIds, without });
  } catch (error) {
    if (error instanceof CannotCarry) return { kind: 'unsent' };
    throw error;
  }
  if (isChanged(call.request, built)) return { kind: 'unsent' };
  onSend();
  const timeoutMs = channel.total_seconds * 1000;
  const answer = await callUpstream(ports, built.request, { secret, timeoutMs });
  const said = `status ${answer.status}: ${shown(answer.body, secret)}`;
  if (!answer.ok) return await refusedOutcome(answer, { dialect, channel, built, said });
  const { sent, quirks } = built;
  const context = { identity: { requestId: '', created: 0, model }, sent, callIds, quirks };
  const { chunks, hasUsage, failure } = readReply(answer.body, dialect, context);
  if (failure instanceof ErrorInAnswer)
    return outcomeOf(
      failureInAnswer(failure.error, withheldTexts(built.known), channelTypes[channel.type]),
      said,
    );
  if (failure !== undefined) return { kind: 'unusable', said: `${said} (${reasonOf(failure)})` };
  const choices = chunks.flatMap((chunk) => chunk.choices.filter(({ index }) => index === 0));
  const indexes = choices.flatMap(({ delta }) => delta.tool_calls?.map(({ index }) => index) ?? []);
  return {
    kind: 'answered',
    text: choices.map(({ delta }) => delta.content ?? '').join(''),
    calls: new Set(indexes).size,
    isCut: choices.some(({ finish_reason: reason }) => reason === 'length'),
    hasUsage,
  };
}

/** Whether the dialect sent another effort than the asked one, or none. */
const isChanged = ({ reasoning_effort: effort }: ChatRequest, { sent }: BuiltRequest): boolean =>
  effort !== undefined && (sent.effort !== undefined || sent.dropped.includes('reasoning_effort'));

interface Refused {
  dialect: Dialect;
  channel: ChannelRow;
  built: BuiltRequest;
  said: string;
}

async function refusedOutcome(
  { status, body }: UpstreamAnswer,
  { dialect, channel, built, said }: Refused,
): Promise<ProbeOutcome> {
  const reply = { status, headers: {}, body: bytesOf(body) };
  const type = channelTypes[channel.type];
  return outcomeOf(await readFailure(reply, { dialect, type, withheld: withheldTexts(built.known) }), said);
}

/** Statuses of an upstream that fails whatever it is asked, for a time. */
const isPassing = (status: number): boolean =>
  status === 408 || status === 429 || (status >= 502 && status <= 599);

function outcomeOf(failure: CallerFault | UpstreamFailure, said: string): ProbeOutcome {
  if (failure instanceof CallerFault) return { kind: 'refused', said };
  const { kind, status = 0 } = failure;
  if (status === 402 || (kind === 'secret' && status === 0))
    throw new Failure(`nothing was written: the account at the upstream has no credit left (${said})`);
  if (isPassing(status))
    throw new Failure(`nothing was written: the upstream does not answer at the moment (${said})`);
  if (kind === 'secret' || status === 401 || status === 403) return { kind: 'denied', said };
  return { kind: 'unusable', said };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(text);
}

/** The beginning of a body, for operators. A web page says nothing that helps. */
const shown = (body: string, secret: string | undefined): string =>
  /^\s*</.test(body) ? 'a web page' : cleanText(body, secret) || 'an empty body';

// Counts the calls of a probe. Never sends more than it said beforehand.

const callsMax = 12;

class ProbeCalls {
  readonly #ports: ProbePorts;
  readonly #probed: ProbedChannel;
  #sent = 0;

  constructor(ports: ProbePorts, probed: ProbedChannel) {
    this.#ports = ports;
    this.#probed = probed;
  }

  get sent(): number {
    return this.#sent;
  }

  /** Undefined: no call is left. Throws a Failure, see probeCall. */
  async ask(asked: ProbeRequest): Promise<ProbeOutcome | undefined> {
    if (this.#sent >= callsMax) return undefined;
    return await probeCall(this.#ports, this.#probed, { asked, onSend: () => (this.#sent += 1) });
  }
}

// Says before a probe what it will cost: tokens, and money by the rule of `charges`.

/** Of a call, roughly: the longest has a tool or a small picture, and models that think do so for a line or two. */
const expected = { prompt_tokens: 150, completion_tokens: 150 };

/** Sentences for operators. The upstream's own price is known to nobody here. */
async function expectedCost(
  { clock, config, target }: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
  model: string,
): Promise<string[]> {
  const { snapshot } = compileSnapshot(await config.tables(), { local: target.local, publishedAt: 0 });
  const price = priceOf(snapshot.charges, model, clock.now());
  const tokens = {
    prompt_tokens: expected.prompt_tokens * callsMax,
    completion_tokens: expected.completion_tokens * callsMax,
  };
  const cost =
    price.type === 'times-billing' ? costOf(price, tokens) * BigInt(callsMax) : costOf(price, tokens);
  const money =
    price.type === 'non-billing'
      ? `no rule of charges has a price for ${model}`
      : `${formatYuan(cost)} yuan by rule ${price.rule} of charges, by which clients pay; the upstream's price may be another`;
  return [
    `expected: ${tokens.prompt_tokens} input and ${tokens.completion_tokens} output tokens (at most ${outputTokensMax * callsMax} output tokens)`,
    `expected cost: ${money}`,
  ];
}
