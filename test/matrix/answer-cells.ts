/** The matrix of answers: each place of an answer of each dialect, whole and streamed, as the clients of each endpoint get it. */
import { isRecord, parseJson, type JsonRecord } from '../../shared/wire/json.ts';
import { renderDataFrame, renderEventFrame } from '../../shared/stream/sse.ts';
import { CoreRig, demoKey } from '../support/core-rig.ts';
import { answerForms } from './answers.ts';
import { answers, dialects, endpoints, type Dialect } from './endpoints.ts';
import { listLeaves, type Outcome } from './observe.ts';
import { isInside, leastOf, listAllPlaces, typeOf, type Place } from './places.ts';
import { answerReasons, findReason, type Reason } from './reasons.ts';
import { types } from './requests.ts';

export const modes = ['whole', 'streamed'] as const;
export type Mode = (typeof modes)[number];

export interface AnswerCell {
  dialect: Dialect;
  endpoint: Dialect;
  mode: Mode;
  path: string;
  /** `moot`: it does not reach the client, and a rule gives the reason. */
  outcome: Outcome | 'moot';
  reason: Reason | undefined;
  seen: string;
}

const knownPlaces = new Map<Dialect, Place[]>();

export function answerPlaces(dialect: Dialect): Place[] {
  const form = answerForms[dialect];
  const places =
    knownPlaces.get(dialect) ??
    listAllPlaces(
      form.types.map(([file, name]) => types.shapeOf(file, name)),
      form,
    );
  knownPlaces.set(dialect, places);
  return places;
}

/** A request for everything that an answer can contain. */
const asked: Record<Dialect, JsonRecord> = {
  chat: { logprobs: true, top_logprobs: 2, service_tier: 'auto' },
  messages: { thinking: { type: 'adaptive', display: 'summarized' } },
  responses: {
    include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
    top_logprobs: 2,
    reasoning: { summary: 'auto' },
  },
};

interface Got {
  status: number;
  text: string;
  /** The client's answer: the number of occurrences, by field name and value. */
  leaves: ReadonlyMap<string, number>;
}

interface Asked {
  dialect: Dialect;
  endpoint: Dialect;
  mode: Mode;
  /** Default: those of the answer. */
  events?: readonly JsonRecord[];
}

/** One upstream of each dialect, because compiling its row takes a third of a call. */
const rigs = new Map(
  dialects.map((dialect) => [dialect, new CoreRig({ channels: [{ dialect, mapper: { m: 'up' } }] })]),
);

async function ask(at: Asked, answer: JsonRecord): Promise<Got> {
  const { dialect, endpoint, mode } = at;
  const isStreamed = mode === 'streamed';
  const rig = rigs.get(dialect) ?? new CoreRig();
  const events = (at.events ?? answerForms[dialect].stream(answer)).map((event) =>
    typeof event['type'] === 'string'
      ? renderEventFrame(event['type'], JSON.stringify(event))
      : renderDataFrame(JSON.stringify(event)),
  );
  rig.upstream({
    steps: isStreamed
      ? [...events, ...(dialect === 'chat' ? [renderDataFrame('[DONE]')] : [])]
      : [JSON.stringify(answer)],
    headers: { 'content-type': isStreamed ? 'text/event-stream' : 'application/json' },
  });
  const headers = endpoint === 'messages' ? { headers: { 'x-api-key': demoKey } } : {};
  const { status, text } = await rig.post(
    { ...endpoints[endpoint].fill('', undefined), ...asked[endpoint], stream: isStreamed },
    { path: endpoints[endpoint].path, ...headers },
  );
  const documents = isStreamed && status === 200 ? listFrames(text) : [parseJson(text)];
  const leaves = new Map<string, number>();
  for (const [place, leaf] of documents.flatMap((each) => listLeaves(each))) {
    const key = `${place.split('.').at(-1)}=${String(leaf)}`;
    leaves.set(key, (leaves.get(key) ?? 0) + 1);
  }
  return { status, text, leaves };
}

const listFrames = (text: string): unknown[] =>
  text.split('\n\n').flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    return data === undefined || data === '[DONE]' ? [] : [JSON.parse(data)];
  });

export async function judgeAnswers(dialect: Dialect, endpoint: Dialect, mode: Mode): Promise<AnswerCell[]> {
  const at = { dialect, endpoint, mode };
  const known = new Map<string, Got>();
  const get = async (answer: JsonRecord): Promise<Got> => {
    const key = JSON.stringify(answer);
    const got = known.get(key) ?? (await ask(at, answer));
    known.set(key, got);
    return got;
  };
  const cells: AnswerCell[] = [];
  for (const place of answerPlaces(dialect)) {
    const holder = cells.findLast(({ outcome, path }) => outcome === 'moot' && isInside(place.path, path));
    if (holder) {
      cells.push({ ...holder, path: place.path });
      continue;
    }
    const empty = await get(place.empty[0] ?? {});
    let outcome: Outcome = 'carried';
    let seen = '';
    for (const { value, body } of place.filled) {
      const got = await get(body);
      const one = compare(place, { value, got, empty });
      if (order.indexOf(one) < order.indexOf(outcome)) continue;
      outcome = one;
      seen = `${JSON.stringify(value)} ${got.status === 200 ? '' : got.text}`;
    }
    const reason = findReason(answerReasons, { ...at, path: place.path });
    cells.push({
      ...at,
      path: place.path,
      outcome: outcome === 'lost' && reason ? 'moot' : outcome,
      reason,
      seen,
    });
  }
  return cells;
}

export async function judgeAllAnswers(): Promise<AnswerCell[]> {
  const cells: AnswerCell[] = [];
  for (const dialect of dialects)
    for (const endpoint of dialects)
      for (const mode of modes) cells.push(...(await judgeAnswers(dialect, endpoint, mode)));
  return cells;
}

const order: readonly Outcome[] = ['carried', 'mended', 'lost'];

function compare({ name }: Place, { value, got, empty }: { value: unknown; got: Got; empty: Got }): Outcome {
  const added = [...got.leaves].flatMap(([key, count]) =>
    count > (empty.leaves.get(key) ?? 0) ? [key] : [],
  );
  if (added.length === 0) return 'lost';
  const leaves = listLeaves(value);
  const texts = leaves.flatMap(([, leaf]) =>
    typeof leaf === 'string' && leaf.includes('probe7') ? [leaf] : [],
  );
  const isCarried =
    texts.length > 0
      ? texts.every((text) => added.some((key) => key.includes(text)))
      : leaves.every(([path, leaf]) => added.includes(`${path.split('.').at(-1) || name}=${String(leaf)}`));
  return isCarried ? 'carried' : 'mended';
}

// Events that come beside those of the answer.

/** The events of the vendor's types that no answer of the matrix has, with the shortest value of each. */
export function listOtherEvents(dialect: Dialect): JsonRecord[] {
  const form = answerForms[dialect];
  const streamed = answerPlaces(dialect).flatMap(({ filled }) =>
    filled.flatMap(({ body }) => form.stream(body)),
  );
  const seen = new Set(
    streamed.flatMap(({ type, delta }) => [type, isRecord(delta) ? delta['type'] : undefined]),
  );
  const shapes = form.events.flatMap(([file, name]) => {
    const shape = types.unionOf(file, name);
    const options = shape.kind === 'union' ? shape.options : [shape];
    return options.flatMap((each) => (each.kind === 'object' ? [each] : []));
  });
  const others = shapes.filter((shape) => typeOf(shape) !== undefined && !seen.has(typeOf(shape)));
  return [...new Map(others.map((shape) => [typeOf(shape), leastOf(shape, form)])).values()];
}

/** The result of an answer with an additional event after its first one. */
export async function askWithEvent(dialect: Dialect, endpoint: Dialect, event: JsonRecord): Promise<string> {
  const answer = { ...answers[dialect] };
  const [first = {}, ...others] = answerForms[dialect].stream(answer);
  const { text } = await ask(
    { dialect, endpoint, mode: 'streamed', events: [first, event, ...others] },
    answer,
  );
  return text;
}
