import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { shareAmongWorkers } from './synthesize.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-claims-'));
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

it('a synthesis runs once, and no claim that later workers would wait for remains', () => {
  vi.stubEnv('RELAY_SYNTHESES', folder);
  const synthesis = vi.fn(() => ({}));
  for (let worker = 0; worker < 3; worker += 1) shareAmongWorkers('stage', synthesis);
  expect(synthesis).toHaveBeenCalledTimes(1);
  expect(readdirSync(folder).filter((file) => file.endsWith('-claim'))).toEqual([]);
});
