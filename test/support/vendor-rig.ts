import { createBedrockDouble } from '../../infra/local/vendors/bedrock.ts';
import { createVendorDoubles } from '../../infra/local/vendors/vendors.ts';
import type { Vendor } from '../../infra/local/vendors/vendor.ts';
import { createRequestSigner } from '../../shared/adapters/aws/aws-signature.ts';
import { TransportError, type UpstreamReply, type UpstreamRequest } from '../../shared/upstreams/exchange.ts';
import { CoreRig, type RigOptions } from './core-rig.ts';
import { lying } from './lying-vendor.ts';

/** A model of a double, and its channel row without id, models, endpoint, mapper and state. */
export interface VendorModel {
  vendor: string;
  model: string;
  row: Record<string, unknown>;
}

const picky = { system: 'first', null_content: 'empty', call_ids: 'alnum9' };
const bedrock = { type: 'bedrock', region: 'us-east-1' };

/** One model for each double, dialect and set of quirks. */
export const vendorModels: VendorModel[] = [
  { vendor: 'openai', model: 'gpt-5.6', row: { type: 'openai', dialect: 'responses' } },
  { vendor: 'openai', model: 'gpt-6.2-astra', row: { type: 'openai', dialect: 'responses' } },
  { vendor: 'openai', model: 'gpt-4.1', row: { type: 'openai' } },
  { vendor: 'gemini', model: 'gemini-3-pro-preview', row: { type: 'gemini' } },
  { vendor: 'deepseek', model: 'deepseek-v4-pro', row: { type: 'openai' } },
  { vendor: 'deepseek', model: 'kimi-k2.6', row: { type: 'openai' } },
  { vendor: 'anthropic', model: 'claude-opus-5-5', row: { type: 'anthropic' } },
  { vendor: 'bedrock', model: 'us.anthropic.claude-opus-5-5-v1:0', row: bedrock },
  { vendor: 'bedrock', model: 'openai.gpt-5.6', row: bedrock },
  { vendor: 'picky', model: 'picky', row: { type: 'openai', params: picky } },
  { vendor: 'picky', model: 'picky-repeat', row: { type: 'openai', params: picky } },
  { vendor: 'picky', model: 'picky-think', row: { type: 'openai', params: { ...picky, think_tags: true } } },
];

/** A call of a double. */
export interface VendorCall {
  vendor: string;
  status: number;
  rule: string | undefined;
  notes: string[];
  /** The request body. */
  body: Record<string, unknown>;
  /** The answer as it was written. */
  text: string;
}

/**
 * The core in virtual time in front of fresh doubles: one channel a model, named by the model, all of them for the
 * public models `m` and `n`, in the order given.
 */
export class VendorRig {
  core: CoreRig;
  readonly calls: VendorCall[] = [];
  /** Models whose upstream refuses connections. */
  readonly down = new Set<string>();
  readonly #doubles: Map<string, Vendor>;
  readonly #options: RigOptions;

  constructor(models: readonly VendorModel[], options: RigOptions = {}) {
    const now = (): number => this.core.clock.now();
    const doubles = [
      ...createVendorDoubles().filter(({ name }) => name !== 'bedrock'),
      createBedrockDouble(now),
    ].map(lying);
    this.#doubles = new Map(doubles.map((double) => [double.name, double]));
    const channels = models.map(({ vendor, model, row }, index) => ({
      id: channelOf(model),
      endpoint: `https://${vendor}.test${this.#doubles.get(vendor)?.base ?? ''}`,
      models: ['m', 'n'],
      mapper: { m: model, n: model },
      priority: 100 - index,
      ...row,
    }));
    this.#options = { channels, send: (request) => this.#send(request), ...options };
    this.core = new CoreRig(this.#options);
  }

  /** Replaces the environment by a fresh one with the same doubles and stores. */
  renew(options: RigOptions = {}): void {
    this.core = new CoreRig({ ...this.#options, ...options, beside: this.core });
  }

  /** Requests that doubles rejected, or accepted although a faithful relay would not send them. */
  get objections(): object[] {
    return this.calls
      .filter(({ status, rule, notes }) => status >= 400 || rule !== undefined || notes.length > 0)
      .map(({ vendor, status, rule, notes, text }) => ({ vendor, status, rule, notes, text }));
  }

  async #send(request: UpstreamRequest): Promise<UpstreamReply> {
    const { hostname, host, pathname } = new URL(request.url);
    const [name = ''] = hostname.split('.');
    const body = JSON.parse(request.body) as Record<string, unknown>;
    if (this.down.has(String(body['model']))) throw new TransportError('connect', 'refused');
    const double = this.#doubles.get(name);
    if (!double) throw new Error(`no double of ${name}`);
    const headers = {
      ...request.headers,
      ...(request.awsScope && (await this.#sign(request, request.awsScope))),
      host,
    };
    const small = Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]);
    const reply = await double.serve({
      method: 'POST',
      path: pathname,
      signedPath: pathname,
      headers: Object.fromEntries(small) as Record<string, string>,
      text: request.body,
    });
    this.calls.push({
      vendor: name,
      status: reply.status,
      rule: reply.rule,
      notes: reply.notes ?? [],
      body,
      text: reply.frames
        .map((each) => (typeof each === 'string' ? each : Buffer.from(each).toString()))
        .join(''),
    });
    return { status: reply.status, headers: reply.headers, body: bytesOf(reply.frames) };
  }

  #sign(
    request: UpstreamRequest,
    scope: NonNullable<UpstreamRequest['awsScope']>,
  ): Promise<Record<string, string>> {
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
    return createRequestSigner({ aws: { region: 'us-east-1', credentials }, clock: this.core.clock })(
      request,
      scope,
    );
  }
}

/** The id of a model's channel. */
export const channelOf = (model: string): string => model.replaceAll(/[^a-z0-9-]/g, '-');

async function* bytesOf(frames: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const frame of frames) yield typeof frame === 'string' ? new TextEncoder().encode(frame) : frame;
}

/** Tools, system and messages as sent upstream, without breakpoints and closing brackets. */
export function sentPrefix({ tools, system, messages, input }: Record<string, unknown>): string {
  const text = JSON.stringify({ tools, system, messages, input }, (name, value: unknown) =>
    name === 'cache_control' ? undefined : value,
  );
  return text.replace(/[\]}"]+$/, '');
}
