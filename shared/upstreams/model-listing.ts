/** How an upstream lists its models. Pure: the operators' tools send the requests. */
import { asRecord, isRecord } from '../wire/json-record.ts';
import type { ChannelAttributes } from './channel-type.ts';

export interface ModelList {
  /** The address of a page; `after`: where the page before it ended. */
  address: (channel: ChannelAttributes, after: string | undefined) => string;
  /** Instead of the type's credentials. */
  headers?: (secret: string) => Record<string, string>;
  /** Undefined: the body is no list of models. */
  read: (body: unknown) => ModelPage | undefined;
}

export interface ModelPage {
  /** Names as a request takes them. */
  models: string[];
  /** Where this page ends; undefined: it is the last. */
  after?: string | undefined;
}

/** `GET /models`, as OpenAI and most others have it. */
export const plainModelList: ModelList = {
  address: ({ endpoint }) => `${endpoint}/models`,
  read: readModelPage,
};

/** OpenAI's list, a page of it as Anthropic sends, or the bare list that some others send. */
export function readModelPage(body: unknown): ModelPage | undefined {
  const { data, has_more: more, last_id: last } = asRecord(body);
  const entries = Array.isArray(body) ? body : data;
  if (!Array.isArray(entries) || !entries.every(isModel)) return undefined;
  const models = entries.map(({ id }) => id);
  return { models, after: more === true && typeof last === 'string' ? last : undefined };
}

const isModel = (entry: unknown): entry is { id: string } =>
  isRecord(entry) && typeof entry['id'] === 'string';

/** The names that were asked for, in the order of the list; `*` stands for anything. */
export function namesLike(wanted: string[], listed: string[]): string[] {
  const patterns = wanted.map((written) => new RegExp(`^${written.split('*').map(escaped).join('.*')}$`));
  return listed.filter((name) => patterns.some((pattern) => pattern.test(name)));
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
