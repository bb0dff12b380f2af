/** Edits the configuration while calls run: valid edits, invalid ones, a channel that is deleted and restored. */
import { DeleteCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { PriceVersion } from '../checker/observations.ts';
import { channelRow, chargeRow, pairChannels, put, soloModels, steadyModels } from '../load/rows.ts';
import type { Disturbances } from './disturbances.ts';

const badForMs = 6_000;
const deletedForMs = 4_000;

export interface ConfigurationOptions {
  documents: DynamoDBDocumentClient;
  endpointFor: (this: void, channel: string) => string;
  /** Increases with each edit. */
  prices: PriceVersion[];
  around: Disturbances;
}

export class ConfigurationEdits {
  readonly #options: ConfigurationOptions;
  #edits = 0;
  #bad = 0;

  constructor(options: ConfigurationOptions) {
    this.#options = options;
  }

  /** All prices of a model differ, so a ledger row shows which one applied. */
  async price(): Promise<void> {
    const { documents, prices, around } = this.#options;
    const [model] = steadyModels;
    const before = prices.findLast((price) => price.model === model);
    if (!before) return;
    this.#edits += 1;
    const output = (2_000 + this.#edits) / 1e6;
    const edit = around.begin('price-edit');
    const next = { ...before, output, writtenMs: Date.now() };
    await put(documents, chargeRow(next));
    next.writtenMs = Date.now();
    prices.push(next);
    around.over(edit);
  }

  /** The relay uses the row's last valid version meanwhile. */
  async badRow(): Promise<void> {
    const { documents, prices, endpointFor, around } = this.#options;
    const charge = prices.findLast(({ model }) => model === steadyModels[1]);
    const [model] = soloModels;
    if (!charge) return;
    this.#bad += 1;
    const row = this.#bad % 2 === 0 ? chargeRow(charge) : channelRow(model, endpointFor(model), [model]);
    const wrong =
      row[0] === 'charges' ? { input: -1, output: 'much' } : { endpoint: 'ftp://example.com', weight: [] };
    const bad = around.begin('bad-row');
    await put(documents, [row[0], { ...row[1], ...wrong }]);
    await around.pause(badForMs);
    await put(documents, row);
    around.over(bad);
  }

  async deleteChannel(): Promise<void> {
    const { documents, endpointFor, around } = this.#options;
    const [, second] = pairChannels(endpointFor);
    const deletion = around.begin('channel-deleted');
    await documents.send(new DeleteCommand({ TableName: 'relay-channels', Key: { id: second[1]['id'] } }));
    await around.pause(deletedForMs);
    await put(documents, second);
    around.over(deletion);
  }
}
