/** Describes how an upstream lists its models. Sends nothing: the operators' tools send the requests. */
import { asRecord, isRecord } from '../wire/json-record.ts';
import type { ChannelAttributes } from './channel-type.ts';

export interface ModelList {
  /** The URL of a page. `after` is the end of the previous page. */
  address: (channel: ChannelAttributes, after: string | undefined) => string;
  /** Replaces the type's credentials. */
  headers?: (secret: string) => Record<string, string>;
  /** Returns undefined if the body is no list of models. */
  read: (body: unknown) => ModelPage | undefined;
}

export interface ModelPage {
  /** Model names as requests use them. */
  models: string[];
  /** The end of this page, for the next request. Undefined: this is the last page. */
  after?: string | undefined;
}

/** `GET /models`, as OpenAI and most others support it. */
export const plainModelList: ModelList = {
  address: ({ endpoint }) => `${endpoint}/models`,
  read: readModelPage,
};

/** Reads OpenAI's list, a page of it in Anthropic's form, or a bare array as some others send. */
export function readModelPage(body: unknown): ModelPage | undefined {
  const { data, has_more: more, last_id: last } = asRecord(body);
  const entries = Array.isArray(body) ? body : data;
  if (!Array.isArray(entries) || !entries.every(isModel)) return undefined;
  const models = entries.map(({ id }) => id);
  return { models, after: more === true && typeof last === 'string' ? last : undefined };
}

const isModel = (entry: unknown): entry is { id: string } =>
  isRecord(entry) && typeof entry['id'] === 'string';

/** The listed names that match a wanted one, in the order of the list. `*` matches any text. */
export function namesLike(wanted: string[], listed: string[]): string[] {
  const patterns = wanted.map((written) => new RegExp(`^${written.split('*').map(escaped).join('.*')}$`));
  return listed.filter((name) => patterns.some((pattern) => pattern.test(name)));
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
