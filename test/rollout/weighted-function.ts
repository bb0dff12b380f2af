/** An alias with two versions, as Lambda calls them: each call goes to one, by weight; Lambda counts calls and errors. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Answered, FunctionSettings } from '../../infra/local/lambda/environment.ts';
import { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import type { StackLog } from '../../infra/local/host/messages.ts';

/** Lambda's own metrics, of the version with this number. A run that ends well has 0 errors. */
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

  /** Publishes a bundle as the next version, which gets no calls yet. Returns its number. */
  async publish(folder: string, environment: Record<string, string> = {}): Promise<string> {
    if (this.#candidate !== this.#current) await this.#candidate.close();
    this.#published += 1;
    const version = String(this.#published);
    const { settings } = this.#current;
    const variables = { ...settings.environment, ...environment };
    this.#candidate = new LocalFunction({ ...settings, folder, version, environment: variables }, this.#log);
    return version;
  }

  /** Not by chance: a share of a tenth is each tenth call. */
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

/** An error is an invocation that the function or its process failed, also after the answer began. */
function countingErrors(body: IncomingMessage, failed: () => void): void {
  body.once('error', failed);
  body.once('end', () => {
    if (body.trailers['lambda-runtime-function-error-type'] !== undefined) failed();
  });
}
