import { prefixHashes, promptTokens } from '../../infra/local/vendors/script.ts';
import type { UpstreamReply, UpstreamRequest } from '../../shared/upstreams/exchange.ts';
import { data, delta, done, finish } from './core-rig.ts';

/** A line of the invoice: one call, in tokens of its prompt. */
export interface InvoiceLine {
  /** Host and secret: an organisation of the vendor. */
  organisation: string;
  cached: number;
  uncached: number;
}

/** The vendor's documentation of prompt caching, November 2026: from 1,024 tokens on, in steps of 128. */
const cachedFrom = 1_024;
const cachedStep = 128;

/**
 * Upstreams that cache prompts as vendors do: the longest prefix of tools and messages that the same organisation sent
 * before. Nothing expires.
 */
export class PrefixCacheUpstream {
  readonly invoice: InvoiceLine[] = [];
  readonly #seen = new Map<string, Set<string>>();

  readonly send = async (request: UpstreamRequest): Promise<UpstreamReply> => {
    const organisation = `${new URL(request.url).host} ${request.headers['authorization']}`;
    const {
      model,
      tools = [],
      messages,
    } = JSON.parse(request.body) as {
      model: string;
      tools?: unknown[];
      messages: unknown[];
    };
    const parts = [tools, ...messages].map((part) => JSON.stringify(part));
    const line = this.#line(organisation, model, parts);
    this.invoice.push(line);
    const usage = {
      prompt_tokens: line.cached + line.uncached,
      completion_tokens: 2,
      prompt_tokens_details: { cached_tokens: line.cached },
    };
    const steps = [delta('done'), finish(), data({ choices: [], usage }), done];
    return { status: 200, headers: {}, body: bytesOf(steps) };
  };

  /** The share of all prompt tokens that was read from caches. */
  get cachedShare(): number {
    const cached = this.invoice.reduce((sum, line) => sum + line.cached, 0);
    return cached / this.invoice.reduce((sum, line) => sum + line.cached + line.uncached, 0);
  }

  #line(organisation: string, model: string, parts: string[]): InvoiceLine {
    const seen = this.#seen.get(organisation) ?? new Set();
    this.#seen.set(organisation, seen);
    const hashes = prefixHashes(model, parts);
    const known = hashes.findLastIndex((hash) => seen.has(hash)) + 1;
    for (const hash of hashes) seen.add(hash);
    const prefix = promptTokens(parts.slice(0, known).join(''));
    const cached = prefix < cachedFrom ? 0 : prefix - (prefix % cachedStep);
    return { organisation, cached, uncached: promptTokens(parts.join('')) - cached };
  }
}

async function* bytesOf(steps: string[]): AsyncGenerator<Uint8Array> {
  for (const step of steps) yield new TextEncoder().encode(step);
}
