/** The local stack with one slow model, and accounts for tests of background responses. */
import assert from 'node:assert/strict';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { keyOf, MoneyReader, rowsOfAccount, until } from './money-reader.ts';

export class BackgroundRig {
  readonly upstream: ScriptedUpstream;
  readonly stack: WatchedStack;
  readonly money: MoneyReader;

  private constructor(upstream: ScriptedUpstream, stack: WatchedStack) {
    this.upstream = upstream;
    this.stack = stack;
    this.money = new MoneyReader(stack);
  }

  static async start(accounts: string[]): Promise<BackgroundRig> {
    const upstream = await startScriptedUpstream();
    const channel = { id: 'later', endpoint: upstream.endpoint, models: ['later'], state: true };
    const stack = await startWatchedStack({
      environmentsMax: 3,
      functionEnvironment: { RELAY_SWEEP_GRACE: '0' },
      rows: [
        ['channels', { ...channel, idle_seconds: 300 }],
        ['charges', { id: 20, type: 'token-billing', models: ['later'], input: 0.001, output: 0.001 }],
        ...accounts.flatMap((account) => rowsOfAccount(account, 1, { store: true })),
      ],
    });
    return new BackgroundRig(upstream, stack);
  }

  ask(account: string, more: object = {}): Promise<Response> {
    return this.stack.post(
      { model: 'later', input: 'Hello', max_output_tokens: 100, background: true, ...more },
      { path: '/v1/responses', headers: headersOf(account) },
    );
  }

  async accepted(account: string): Promise<string> {
    const response = await this.ask(account);
    const object = (await response.json()) as { id: string; status: string };
    assert.deepEqual([response.status, object.status], [200, 'queued']);
    return object.id;
  }

  call(account: string, path: string, method = 'GET'): Promise<Response> {
    return fetch(`${this.stack.origin}/v1/responses/${path}`, { method, headers: headersOf(account) });
  }

  async ended(account: string, id: string): Promise<Record<string, unknown>> {
    let object: Record<string, unknown> = {};
    await until(async () => {
      object = (await (await this.call(account, id)).json()) as Record<string, unknown>;
      return !['queued', 'in_progress'].includes(String(object['status']));
    });
    return object;
  }

  async stop(): Promise<void> {
    await this.stack.stop();
    await this.upstream.close();
  }
}

const headersOf = (account: string) => ({ authorization: `Bearer ${keyOf(account)}` });
