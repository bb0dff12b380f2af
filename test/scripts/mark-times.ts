/**
 * Measures the time from the edit of a row to its mark, on the running stack: `node test/scripts/mark-times.ts`, with
 * `--large` with 5,000 more accounts with keys and 300 models with prices. Needs `npm run build && npm run app`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { HandEditRig } from '../support/hand-edit-rig.ts';
import { handEdits } from '../support/hand-edits.ts';

const count = (length: number) => Array.from({ length }, (_, at) => at);
const rig = await HandEditRig.start();
while (!(await rig.offers('dear'))) await pause(50);
if (process.argv.includes('--large')) {
  const models = count(300).map((at) => `model-${at}`);
  const price = { type: 'token-billing', input: 0.001, output: 0.002 };
  await rig.putMany(
    'charges',
    models.map((model, at) => ({ id: 10_000 + at, ...price, models: [model] })),
  );
  for (const part of count(10))
    await rig.put('channels', {
      id: `large-${part}`,
      endpoint: 'https://api.vendor.example/v1',
      models: models.slice(part * 30, part * 30 + 30),
      state: true,
    });
  await rig.putMany(
    'accounts',
    count(5_000).map((at) => ({ account: `many-${at}` })),
  );
  const keys = count(5_000).map((at) => ({
    hash: String(1_000_000 + at).padStart(64, '0'),
    account: `many-${at}`,
    models: [`model-${at % 300}`],
  }));
  await rig.putMany('keys', keys);
  // The streams of these tables are in order, so their last mark is behind all of these.
  await rig.put('accounts', { account: 'last', rpm: -1 });
  await rig.put('keys', { hash: 'f'.repeat(64), account: 'nobody' });
  while ((await rig.mark('accounts', { account: 'last' })) === '') await pause(50);
  while ((await rig.mark('keys', { hash: 'f'.repeat(64) })) === '') await pause(50);
  while (!(await rig.offers('model-299'))) await pause(50);
}
const times: { ms: number; what: string }[] = [];
for (const edit of handEdits) {
  // The compile that the previous mark started ends in the meantime.
  await pause(500);
  const [table, row] = edit;
  const beganMs = performance.now();
  await rig.put(table, row);
  while (!(await rig.isMarked(edit))) {
    if (performance.now() - beganMs > 20_000) throw new Error(`no mark: ${JSON.stringify(row)}`);
    await pause(5);
  }
  times.push({
    ms: Math.round(performance.now() - beganMs),
    what: `${table} ${JSON.stringify(row).slice(0, 80)}`,
  });
}
times.sort((a, b) => a.ms - b.ms);
const at = (share: number): number => times[Math.ceil(times.length * share) - 1]?.ms ?? 0;
console.log(
  `${times.length} edits: p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`,
);
for (const { ms, what } of times.slice(-4)) console.log(`${ms} ms: ${what}`);
await rig.stop();
