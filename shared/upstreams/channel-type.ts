/**
 * The interface of a channel type: how its requests differ, and what configuration needs of its rows. Names no type;
 * the registry is types/channel-types.ts. docs/channels.md has the facts about each type and their sources.
 */
import type { AwsScope } from './exchange.ts';
import type { Quirks, WrittenRules } from './quirks.ts';
import { fitsPattern } from '../wire/ids.ts';
import { asRecord, isRecord, type JsonRecord } from '../wire/json.ts';

/** The attributes of a channel's row that types read. `Own` are those that only this type has. */
export type ChannelAttributes<Own extends string = never> = {
  /** The base address, checked and without a slash at its end; empty if the row has none. */
  endpoint: string;
  secret?: string | string[] | undefined;
} & { readonly [name in Own]?: string | undefined };

export interface ChannelType<Own extends string = never> {
  /** The dialect of an upstream's model, if the row names none. */
  dialect?(model: string): string;
  /**
   * Other dialects that endpoints of this type may speak. A refusal that names the path of one is retried in it. Calls
   * with a dialect of their own go only to types that list it.
   */
  alsoSpeaks?: readonly string[];
  /** The default is the base address and the dialect's path. */
  address?(channel: ChannelAttributes<Own>, call: AddressedCall): string;
  /**
   * Returns the headers that carry the secret, in lower case. `dialect` is undefined when models are listed; `sent`
   * has the dialect's headers.
   */
  credentials: (
    secret: string,
    channel: ChannelAttributes<Own>,
    dialect?: string,
    sent?: Readonly<Record<string, string>>,
  ) => Record<string, string>;
  /** Media types of answers, for upstreams with their own framing. */
  accept?: string;
  /** Replaces credentials: requests are signed with the function's own role for this service and region. */
  awsScope?(channel: ChannelAttributes<Own>): AwsScope;
  /** Quirks of this type, unless the row overrides them. Rules of models are in model-rules.ts. */
  quirks?(channel: ChannelAttributes<Own>): Partial<Quirks>;
  apiVersion?(channel: ChannelAttributes<Own>): string | undefined;
  /** The field for a token limit that the client did not set. */
  limitField(channel: ChannelAttributes<Own>): string;
  /**
   * The field by which the vendor tells end users apart, so that it blocks one of them and not the organisation.
   * Vendors that do not ask for it may refuse it.
   */
  endUserField?(channel: ChannelAttributes<Own>): 'user' | 'safety_identifier' | undefined;
  /** The vendor can store a conversation, so that its client sends only new messages. */
  holdsThreads?: true;
  /** Headers that name the operator's customer by the vendor's id. `sent`: the dialect's headers. */
  customerHeaders?(profile: string, sent: Readonly<Record<string, string>>): Record<string, string>;
  /** The default is true. */
  reportsUsage?(channel: ChannelAttributes<Own>): boolean;
}

interface AddressedCall {
  model: string;
  dialect: string;
  path: string;
}

// For configuration and operators: the attributes of rows and their rules, the list of models, the questions of
// `init`. Functions that answer requests do not import it, so the bundler leaves it out.

export interface ChannelSetup<Own extends string = never> {
  attributes: { readonly [name in Own]: OwnAttribute };
  /** The address of a row without `endpoint`. Without a default the row must have one. */
  defaultEndpoint?(channel: ChannelAttributes<Own>): string | undefined;
  /** The problems of a row of this type, each as `attribute: found ..., wanted ...`. */
  problems?(channel: ChannelAttributes<Own>, rules: { local: boolean }): string[];
  /** How its models are listed, or why they cannot be listed. */
  models: UpstreamModelList | { unlisted: string };
  /** Set if the vendor registers the operator's customers. */
  profiles?: CustomerProfiles;
  /** Undefined if the vendor reports no balance of a key, or reports it in an unknown form. */
  balance?(channel: ChannelAttributes<Own>): BalanceReport | undefined;
  questions: SetupQuestion<Own>[];
}

export interface OwnAttribute {
  /** The description in the CLI's help, such as `AWS region of the models`. */
  about: string;
  wanted: string;
  pattern: RegExp;
  /** The end of the message `only the type x has ...` for a row of another type. */
  named: string;
}

export const apiVersionAttribute: OwnAttribute = {
  about: 'version of the API',
  wanted: 'a version such as "2024-10-21"',
  pattern: /^[a-z0-9][a-z0-9-]{0,39}$/,
  named: 'versions',
};

interface SetupQuestion<Own extends string = never> {
  attribute: Own | 'endpoint';
  question: string;
  /** The default answer, used if the operator only presses Enter. */
  defaultAnswer?: string;
  /** Returns true if the earlier answers make this question unnecessary. */
  isNeedless?: (channel: ChannelAttributes<Own>) => boolean;
}

// Describes how an upstream registers customers. Sends nothing: the operators' tools send the requests.

export interface CustomerProfiles {
  /** The attribute of an account's row that holds the id. */
  attribute: string;
  /** The address of the customer `id`, or without `id` the address for registering one. */
  address(channel: ChannelAttributes, id?: string): string;
  headers(secret: string): Record<string, string>;
  body(name: string | undefined): JsonRecord;
  /** Returns undefined if the body is not a profile. */
  read(body: unknown): CustomerProfile | undefined;
}

export interface CustomerProfile {
  id: string;
  name: string | undefined;
  /** As the vendor words it. */
  status: string;
  /** The vendor's measures against the customer, with reason and end: one line each. */
  actions: string[];
}

// Describes how an upstream reports the balance of a key. Sends nothing: operators' tools and alerts send the requests.

export interface BalanceReport {
  /** Each is a GET to the channel's own host, because the secret must not be sent elsewhere. */
  addresses: string[];
  /** Gets the bodies in the order of the addresses. Returns undefined if they report no balance. */
  read(bodies: readonly unknown[]): UpstreamBalance | undefined;
  /** Asked if this report fails. */
  otherwise?: BalanceReport;
}

/** The vendor's figures, one per unit; empty for a key without a limit. For display and comparison only, never for billing. */
export type UpstreamBalance = { unit: string; amount: string }[];

// Describes how an upstream lists its models. Sends nothing: the operators' tools send the requests.

export interface UpstreamModelList {
  /** The URL of a page. `after` is the end of the previous page. */
  address: (channel: ChannelAttributes, after: string | undefined) => string;
  headers?: (secret: string) => Record<string, string>;
  /** Returns undefined if the body is no list of models. */
  read: (body: unknown) => ModelPage | undefined;
}

export interface ModelPage {
  /** Model names as requests use them. */
  models: string[];
  rules?: ReadonlyMap<string, WrittenRules>;
  /** The day on which the vendor shuts a model down, as the vendor writes it. */
  ends?: ReadonlyMap<string, string>;
  /** A cursor for the next request. Undefined on the last page. */
  after?: string | undefined;
}

/** `GET /models`, as OpenAI and most others support it. */
export const plainModelList: UpstreamModelList = {
  address: ({ endpoint }) => `${endpoint}/models`,
  read: readModelPage,
};

/** Reads OpenAI's list, a page of it in Anthropic's form, or a bare array as some others send. */
export function readModelPage(body: unknown): ModelPage | undefined {
  const { data, has_more: more, last_id: last } = asRecord(body);
  const entries = Array.isArray(body) ? body : data;
  if (!Array.isArray(entries) || !entries.every(isModel)) return undefined;
  const models = entries.map(({ id }) => id);
  const ends = entries.flatMap(({ id, shutdown_date: day }) =>
    typeof day === 'string' && /^\d{4}-\d\d-\d\d/.test(day) ? [[id, day.slice(0, 10)] as const] : [],
  );
  return {
    models,
    ...(ends.length > 0 && { ends: new Map(ends) }),
    after: more === true && typeof last === 'string' ? last : undefined,
  };
}

const isModel = (entry: unknown): entry is JsonRecord & { id: string } =>
  isRecord(entry) && typeof entry['id'] === 'string';

/** Keeps the order of the list. `*` matches any text. */
export const matchNames = (wanted: string[], listed: string[]): string[] =>
  listed.filter((name) => wanted.some((pattern) => fitsPattern(pattern, name)));

export const matchesAny = (pattern: string, names: string[]): boolean =>
  names.some((name) => fitsPattern(pattern, name));
