/** A relay with customers, on the running local stack, and its operator's shell. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb';
import { vi } from 'vitest';
import { readOptions } from '../../../infra/local/host/local-options.ts';
import { startStack, type RunningStack } from '../../../infra/local/start-stack.ts';
import { runProgram } from '../../../infra/ops/cli/program.ts';
import { serveConsole, type ServedConsole } from '../../../infra/ops/console/serve.ts';
import { openSession } from '../../../infra/ops/session/session.ts';
import {
  startScriptedUpstream,
  type Script,
  type ScriptedUpstream,
} from '../../support/scripted-upstream.ts';
import type { TableName } from '../../../shared/tables/table-names.ts';
import { put } from '../../console/large-relay.ts';
import { runOps } from '../../ops/run-ops.ts';
import { chunk, usageChunk } from '../../support/upstream-frames.ts';
import { frames } from '../../support/upstream-scripts.ts';
import { KeptOutput } from '../../support/kept-output.ts';

export interface Done {
  code: number;
  /** The terminal's text: standard output and standard error, interleaved. */
  screen: string;
}

const vendorKeys = {
  VENDOR_KEY: 'vendor-secret-1',
  VENDOR_KEY_2: 'vendor-secret-2',
  RELAY_ENV_SECRETS: 'VENDOR_KEY*',
};
const usage = { prompt_tokens: 1000, completion_tokens: 1000, total_tokens: 2000 };
/** 1,000 input tokens, 1,000 output tokens. */
export const answers: Script = frames(
  chunk({ role: 'assistant', content: 'ready' }),
  chunk({}, 'stop'),
  usageChunk(usage),
);

export class DailyRelay {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'relay-daily-'));
  /** Values of the page's `$NAME` in this run. */
  readonly named: Record<string, string> = {
    MONTH: new Date().toISOString().slice(0, 7),
    MONDAY: nextMonday(),
  };
  /** Unexpected errors of console pages. */
  readonly faults: unknown[] = [];
  readonly main: ScriptedUpstream;
  readonly reserve: ScriptedUpstream;
  readonly #stack: RunningStack;
  readonly #client: DynamoDBClient;
  #served: ServedConsole | undefined;

  private constructor(stack: RunningStack, [main, reserve]: [ScriptedUpstream, ScriptedUpstream]) {
    [this.#stack, this.main, this.reserve] = [stack, main, reserve];
    this.#client = new DynamoDBClient({
      endpoint: stack.dynamodbEndpoint,
      region: 'local',
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    });
  }

  /** @param port 0: a free one */
  static async start(port = 0): Promise<DailyRelay> {
    const upstreams = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
    for (const upstream of upstreams) upstream.script(answers);
    const local = { PORT: String(port), DYNAMODB_PORT: '0', RELAY_DATA: 'memory', RELAY_SEED: 'none' };
    const options = { ...readOptions({ ...local, ...vendorKeys }), environmentsMax: 1 };
    const relay = new DailyRelay(await startStack(options, () => undefined), upstreams);
    await relay.#fill();
    return relay;
  }

  async stop(): Promise<void> {
    this.#served?.stop();
    rmSync(this.folder, { recursive: true });
    this.#client.destroy();
    await Promise.all([this.#stack.close(), this.main.close(), this.reserve.close()]);
  }

  async #fill(): Promise<void> {
    const cost = (input: number, output: number) => ({ '*': { input, output } });
    const channel = (id: string, endpoint: string, more: object) => ({ id, endpoint, state: true, ...more });
    const rows = {
      settings: [{ name: 'unpriced_models', value: 'refuse' }],
      charges: [
        { id: 1, type: 'token-billing', models: ['gpt-4o'], input: 0.018, output: 0.072 },
        { id: 2, type: 'token-billing', models: ['gpt-4o-mini'], input: 0.001, output: 0.004 },
      ],
      channels: [
        channel('main', this.main.endpoint, {
          models: ['gpt-4o', 'gpt-4o-mini'],
          secret: 'env:VENDOR_KEY',
          priority: 10,
          cost: cost(0.01, 0.04),
        }),
        channel('reserve', this.reserve.endpoint, { models: ['gpt-4o'], cost: cost(0.02, 0.08) }),
      ],
    };
    this.write('rows.json', JSON.stringify(rows));
    await this.quietly('config apply rows.json --yes');
    for (const [name, yuan] of [
      ['globex', 100],
      ['initech', 1],
    ]) {
      const made = await this.quietly(`customer new ${name} --grant ${yuan} --yes --json`);
      this.named[`${name}Key`] = (JSON.parse(made) as { key: string }).key;
    }
    await this.answered('globex');
  }

  get origin(): string {
    return this.#stack.origin;
  }

  /** Secrets that no page may show. */
  get secrets(): string[] {
    return Object.values(vendorKeys);
  }

  /** Opens the console as `relay-ops console` does. Returns its one-time address. */
  async console(): Promise<string> {
    const target = { stack: 'relay', endpoint: this.#stack.dynamodbEndpoint, local: true };
    const { ports } = await openSession(target, this.#environment());
    const where = 'relay, local tables';
    const onFault = (error: unknown): void => void this.faults.push(error);
    this.#served = await serveConsole(ports, { readOnly: false, port: 0, where, name: 'local', onFault });
    return this.#served.address;
  }

  #environment(): Record<string, string> {
    return { ...vendorKeys, AWS_ENDPOINT_URL_DYNAMODB: this.#stack.dynamodbEndpoint };
  }

  /** Writes a file for commands. */
  write(name: string, text: string): void {
    writeFileSync(path.join(this.folder, name), text);
  }

  /** Writes rows as an editor of tables does. */
  async keep(table: TableName, rows: Record<string, unknown>[]): Promise<void> {
    await put(this.#client, table, rows);
  }

  /** The current row. */
  async row(table: string, id: string | number): Promise<Record<string, unknown> | undefined> {
    const reading = new GetCommand({ TableName: `relay-${table}`, Key: { id } });
    return (await DynamoDBDocumentClient.from(this.#client).send(reading)).Item;
  }

  /** A complete call of a customer. */
  async call(account: string, model = 'gpt-4o', content = 'Hello!'): Promise<{ id: string; status: number }> {
    const response = await fetch(`${this.#stack.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.named[`${account}Key`]}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model,
        stream: true,
        max_tokens: 2000,
        messages: [{ role: 'user', content }],
      }),
    });
    await response.text();
    return { id: response.headers.get('x-request-id') ?? '', status: response.status };
  }

  /** Waits until a customer's call is answered, because new rows take some seconds. */
  async answered(account: string, model?: string): Promise<void> {
    const ask = async () => {
      const { status } = await this.call(account, model);
      if (status !== 200) throw new Error(`a call of ${account} is answered with ${status}`);
    };
    await vi.waitFor(ask, { timeout: 20_000, interval: 200 });
  }

  /** Waits until customers see a text on their account page. */
  async announced(text: string): Promise<void> {
    const headers = { authorization: `Bearer ${this.named['globexKey']}` };
    const look = async () => {
      const response = await fetch(`${this.#stack.origin}/v1/account`, { headers });
      if (!(await response.text()).includes(text)) throw new Error(`no customer sees: ${text}`);
    };
    await vi.waitFor(look, { timeout: 20_000, interval: 500 });
  }

  /** Runs a command that is not a step of a task. Returns its standard output. */
  async quietly(words: string): Promise<string> {
    const { code, output, errors } = await runOps(this.#wordsOf(words), this.#environment());
    if (code !== 0) throw new Error(`${words} ended with ${code}: ${errors}`);
    return output;
  }

  /** The relay's verdict on a customer's key. */
  async check(account: string): Promise<Done> {
    const key = this.named[`${account}Key`];
    const { code, output, errors } = await runOps(['key', 'check'], this.#environment(), key);
    return { code, screen: output + errors };
  }

  /** Runs a line of the page, and answers each question with yes. */
  async shell(line: string): Promise<Done> {
    const words = /^npx --no relay-ops (.*)$/.exec(line)?.[1];
    if (words === undefined) throw new Error(`not a command of the tool: ${line}`);
    const input = Object.assign(new PassThrough(), { isTTY: true });
    let answered = 0;
    const screen = new KeptOutput((text) => {
      const asked = text.split('[y/N]').length - 1;
      if (asked <= answered) return;
      answered = asked;
      input.write('y\r');
    });
    const streams = { input, output: screen, errors: screen, environment: this.#environment() };
    const code = await runProgram(this.#wordsOf(words), streams);
    const account = /^customer new (\w+)/.exec(words)?.[1];
    if (account !== undefined) this.named[`${account}Key`] = String(/sk-[\w-]{48}/.exec(screen.text)?.[0]);
    return { code, screen: stripVTControlCharacters(screen.text) };
  }

  /** Splits a line like a shell: quotes, variables, files of this folder. */
  #wordsOf(line: string): string[] {
    const parts = line.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
    return parts
      .map((word) =>
        word.replaceAll(
          /'([^']*)'|"([^"]*)"|[^"']+/g,
          (bare, single?: string, double?: string) => single ?? filledIn(double ?? bare, this.named),
        ),
      )
      .map((word) => (/^[\w-]+\.(csv|html|jsonl?)$/.test(word) ? path.join(this.folder, word) : word));
  }
}

/** Never today, because Monday starts some hours earlier there. In the page's time format. */
function nextMonday(): string {
  const now = new Date();
  const days = ((8 - now.getUTCDay()) % 7) + 7;
  const day = new Date(now.getTime() + days * 86_400_000);
  return `${day.toISOString().slice(0, 10)}T00:00:00+08:00`;
}

/** Throws for a name without a value. */
export const filledIn = (text: string, named: Record<string, string>): string =>
  text.replaceAll(/\$([A-Z_]+)/g, (_, name: string) => {
    const value = named[name];
    if (value === undefined) throw new Error(`nothing is named $${name}`);
    return value;
  });
