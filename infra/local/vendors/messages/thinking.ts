import { createHash, createHmac } from 'node:crypto';
import { objectIn } from '../script/vendor.ts';
import { prefixHashes } from '../script/prefix-memory.ts';
import { blocksOf, type MessagesCall } from './call.ts';
import type { Block, MessagesBody } from './schema.ts';

/**
 * Signatures of thinking blocks: each names the text, the account and everything before the block, so that an
 * altered text, another account and another conversation are seen without remembering anything.
 */
interface Signed {
  text: string;
  account: string;
  prefix: string;
}

const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 20);
const mac = (payload: string): string => createHmac('sha256', 'claude').update(payload).digest('base64url');

function signed(facts: Signed): string {
  const payload = Buffer.from(JSON.stringify({ ...facts, text: short(facts.text) })).toString('base64url');
  return `${payload}.${mac(payload)}`;
}

export type SignedBlock = Extract<Block, { type: 'thinking' | 'redacted_thinking' }>;

/** What a model thinks, as a block: the signature covers what is shown. */
export const thinkingBlock = (facts: Signed): SignedBlock => ({
  type: 'thinking',
  thinking: facts.text,
  signature: signed(facts),
});

export const redactedBlock = (facts: Signed): SignedBlock => ({
  type: 'redacted_thinking',
  data: signed({ ...facts, text: '' }),
});

/** What is wrong with a block that came back; undefined where nothing is. */
export function thinkingProblem(
  block: SignedBlock,
  { account, prefix }: Pick<Signed, 'account' | 'prefix'>,
): 'forged' | 'changed' | 'bound' | undefined {
  const [payload = '', signature] = (block.type === 'thinking' ? block.signature : block.data).split('.');
  if (signature !== mac(payload)) return 'forged';
  const facts = objectIn(Buffer.from(payload, 'base64url').toString()) ?? {};
  if (facts['text'] !== short(block.type === 'thinking' ? block.thinking : '')) return 'changed';
  return facts['account'] === account && facts['prefix'] === prefix ? undefined : 'bound';
}

const withoutMarks = (value: unknown): string =>
  JSON.stringify(value, (key: string, inner: unknown) => (key === 'cache_control' ? undefined : inner));

/** A result's text and its only text block are one thing. */
const plain = (block: Block): unknown =>
  block.type === 'tool_result' && typeof block.content === 'string'
    ? { ...block, content: [{ type: 'text', text: block.content }] }
    : block;

/** Tools, system, then each block with its role: less `cache_control`, texts as blocks. */
export function promptParts({ tools = [], system = [], messages }: MessagesBody): string[] {
  return [
    ...tools.map((tool) => `tool ${withoutMarks(tool)}`),
    ...blocksOf(system).map((block) => `system ${withoutMarks(block)}`),
    ...messages.flatMap(({ role, content }) =>
      blocksOf(content).map((block) => `${role} ${withoutMarks(plain(block))}`),
    ),
  ];
}

/** The hash of everything before the part at `index`. */
export const prefixBefore = (body: MessagesBody, more: Block[] = []): string[] => [
  'start',
  ...prefixHashes('claude', [
    ...promptParts(body),
    ...more.map((block) => `assistant ${withoutMarks(plain(block))}`),
  ]),
];

/** How many parts stand before the messages. */
export const headLength = ({ tools = [], system = [] }: MessagesBody): number =>
  tools.length + blocksOf(system).length;

/** Thinking belongs to an account and a model. */
export const ownerOf = ({ account, body }: MessagesCall): string => `${account} ${body.model}`;

/** Each thinking block that came back, with its problem. */
export function returnedThinking(call: MessagesCall) {
  const { body } = call;
  const account = ownerOf(call);
  const prefixes = prefixBefore(body);
  let part = headLength(body);
  return body.messages.flatMap(({ content }, message) =>
    blocksOf(content).flatMap((block, index) => {
      const prefix = prefixes[part] ?? '';
      part += 1;
      if (block.type !== 'thinking' && block.type !== 'redacted_thinking') return [];
      return [{ message, index, problem: thinkingProblem(block, { account, prefix }) }];
    }),
  );
}
