/** An alias with two versions, as in Lambda: the weight decides which version answers a call; calls and errors are counted. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Answered, FunctionSettings } from '../../infra/local/lambda/environment.ts';
import { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import type { StackLog } from '../../infra/local/host/messages.ts';

/** Lambda's own metrics for this version number. A successful run has 0 errors. */
export type Count = (metric: 'Invocations' | 'Errors', version: string, value: number) => void;

export interface AliasParts {
  live: FunctionSettings;
  log: StackLog;
  count?: Count;
}

export class WeightedFunction extends LocalFunction {
  /** Share of the calls that the candidate gets, from 0 to 1. */
  weight = 0;
  readonly #log: StackLog;
  readonly #count: Count;
  readonly #current: LocalFunction;
  #candidate: LocalFunction;
  #published = 1;
  #due = 0;

  constructor({ live, log, count = () => {} }: AliasParts) {
    super(live, log);
    this.#log = log;
    this.#count = count;
    this.#current = new LocalFunction({ ...live, version: '1' }, log);
    this.#candidate = this.#current;
  }

  /** Publishes a bundle as the next version, without traffic. Returns its number. */
  async publish(folder: string, environment: Record<string, string> = {}): Promise<string> {
    if (this.#candidate !== this.#current) await this.#candidate.close();
    this.#published += 1;
    const version = String(this.#published);
    const { settings } = this.#current;
    const variables = { ...settings.environment, ...environment };
    this.#candidate = new LocalFunction({ ...settings, folder, version, environment: variables }, this.#log);
    return version;
  }

  /** Deterministic: a share of a tenth is every tenth call. */
  override async invoke(event: unknown, id: string = randomUUID()): Promise<Answered> {
    this.#due += this.weight;
    const isCandidate = this.#due >= 1 - 1e-9;
    if (isCandidate) this.#due -= 1;
    const target = isCandidate ? this.#candidate : this.#current;
    const { version = '' } = target.settings;
    this.#count('Invocations', version, 1);
    const failed = (): void => this.#count('Errors', version, 1);
    try {
      const answered = await target.invoke(event, id);
      if ('body' in answered) countingErrors(answered.body, failed);
      else this.#count('Errors', version, 0);
      return answered;
    } catch (error) {
      failed();
      throw error;
    }
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#current.close(), this.#candidate.close()]);
  }
}

/** Counts an invocation that the function or its process failed as an error, even after the answer started. */
function countingErrors(body: IncomingMessage, failed: () => void): void {
  body.once('error', failed);
  body.once('end', () => {
    if (body.trailers['lambda-runtime-function-error-type'] !== undefined) failed();
  });
}
