/**
 * AWS's JSON protocol as the bundles speak it: JSON as it is, with bytes as base64. The build puts it in the place of
 * the SDK's own, which reads and writes each value by its schema: 45 KB of code and tables, with the same result for the
 * operations of `infra/build/json-operations.ts`. test/bench/bundled-sdk-calls.test.ts compares both. Never decides
 * about repeats or time-outs: the SDK does.
 */

/** The little of an operation's schema that JSON does not say by itself. */
export interface JsonOperation {
  /** A member of the input that gets a new id when the caller gives none. */
  token?: string;
  /** Members of replies that are times, or bytes of other than an item: no function reads them, so they are left out. */
  unread?: string[];
}

/** What the build passes on from the SDK and from Node. */
interface ProtocolParts<Request> {
  HttpRequest: new (request: object) => Request;
  newId: () => string;
  contentType: string;
}

interface ServiceError extends Error {
  Message?: string;
}

/** The SDK's settings of a service; the registry of errors is what `plain-json-plugin.ts` made of it. */
interface ProtocolSettings {
  serviceTarget: string;
  errorTypeRegistries: {
    Base: new (options: { name: string; $fault: string; $metadata: object }) => ServiceError;
    classes: Record<string, new (options: object) => ServiceError>;
  };
}

/** What the SDK passes for each call: its configuration and the call's endpoint. */
interface CallContext {
  endpoint: () => Promise<{
    protocol: string;
    hostname: string;
    port?: number;
    path: string;
    query?: Record<string, string>;
  }>;
  streamCollector: (body: unknown) => Promise<Uint8Array>;
  utf8Encoder: (bytes: Uint8Array) => string;
  base64Encoder: (bytes: Uint8Array) => string;
  base64Decoder: (text: string) => Uint8Array;
}

interface HttpReply {
  statusCode: number;
  headers: Record<string, string>;
  body: unknown;
}

/** An operation as the SDK passes it on; undefined fields: it is not in `json-operations.ts`. */
interface SentOperation {
  name?: string;
  input?: JsonOperation;
}

export class PlainJsonProtocol<Request> {
  private readonly settings: ProtocolSettings;
  private readonly parts: ProtocolParts<Request>;

  constructor(settings: ProtocolSettings, parts: ProtocolParts<Request>) {
    this.settings = settings;
    this.parts = parts;
  }

  /** The SDK sets what `context` has, too. */
  setSerdeContext(): void {}

  async serializeRequest(
    { name, input: operation }: SentOperation,
    input: Record<string, unknown>,
    context: CallContext,
  ): Promise<Request> {
    if (operation === undefined)
      throw new Error('This operation is left out of the bundles: infra/build/json-operations.ts');
    const { protocol, hostname, port, path, query } = await context.endpoint();
    const { token } = operation;
    const { HttpRequest, newId, contentType } = this.parts;
    const sent = token === undefined ? input : { ...input, [token]: input[token] ?? newId() };
    return new HttpRequest({
      method: 'POST',
      protocol,
      hostname,
      ...(port !== undefined && { port }),
      path: path.endsWith('/') ? path : `${path}/`,
      query: { ...query },
      headers: { 'content-type': contentType, 'x-amz-target': `${this.settings.serviceTarget}.${name}` },
      body: JSON.stringify(wireForm(sent, context)),
    });
  }

  /** Throws the service's error, or a SyntaxError for a body that is not JSON. */
  async deserializeResponse(
    { input: operation }: SentOperation,
    context: CallContext,
    { statusCode, headers, body }: HttpReply,
  ): Promise<object> {
    const text = context.utf8Encoder(await context.streamCollector(body));
    const data = text === '' ? {} : fromWire(text, operation?.unread ?? [], context);
    const $metadata = {
      httpStatusCode: statusCode,
      requestId: headers['x-amzn-requestid'] ?? headers['x-amzn-request-id'] ?? headers['x-amz-request-id'],
      extendedRequestId: headers['x-amz-id-2'],
      cfId: headers['x-amz-cf-id'],
    };
    if (statusCode < 300) return { ...data, $metadata };
    throw this.errorOf(data, { statusCode, headers, $metadata });
  }

  private errorOf(
    data: Record<string, unknown>,
    {
      statusCode,
      headers,
      $metadata,
    }: { statusCode: number; headers: HttpReply['headers']; $metadata: object },
  ): Error {
    const { Base, classes } = this.settings.errorTypeRegistries;
    const name = errorName(data['__type'] ?? data['code'] ?? data['Code'] ?? headers['x-amzn-errortype']);
    const Class = Object.hasOwn(classes, name) ? classes[name] : undefined;
    const $fault = statusCode < 500 ? 'client' : 'server';
    const error = Class === undefined ? new Base({ name, $fault, $metadata }) : new Class({ $metadata });
    const { message, Message, ...rest } = data;
    const has = error as unknown as Record<string, unknown>;
    const added = Object.entries(rest).filter(([key]) => has[key] === undefined);
    return Object.assign(error, Object.fromEntries(added), {
      message: message ?? Message ?? 'UnknownError',
    });
  }
}

/** `com.amazonaws.dynamodb.v20120810#Name`, `Name:http://...` and `Name,other` are all the error `Name`. */
function errorName(code: unknown): string {
  const [first = ''] = (typeof code === 'string' ? code : 'Unknown').split(/[,:]/);
  return first.split('#').at(-1) ?? first;
}

/** A copy with base64 for bytes, and without what is null or undefined: the service refuses null. */
function wireForm(value: unknown, context: CallContext): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return context.base64Encoder(value);
  if (Array.isArray(value)) return value.map((each) => wireForm(each, context));
  // Without a prototype, an attribute can have any name, `__proto__` too.
  const copy = Object.create(null) as Record<string, unknown>;
  for (const [key, member] of Object.entries(value)) {
    if (member !== null && member !== undefined) copy[key] = wireForm(member, context);
  }
  return copy;
}

/** Bytes are strings under `B`, or lists of strings under `BS`; everything else under these names is an object. */
function fromWire(text: string, unread: string[], { base64Decoder }: CallContext): Record<string, unknown> {
  const read = (key: string, value: unknown): unknown => {
    if (unread.includes(key)) return undefined;
    if (key === 'B' && typeof value === 'string') return base64Decoder(value);
    if (key === 'BS' && Array.isArray(value))
      return value.map((each: unknown) => (typeof each === 'string' ? base64Decoder(each) : each));
    return value;
  };
  const isPlain = unread.length === 0 && !/"BS?"\s*:/.test(text);
  return (isPlain ? JSON.parse(text) : JSON.parse(text, read)) as Record<string, unknown>;
}
