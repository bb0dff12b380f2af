import { compileSnapshot } from '../../../shared/config/compile.ts';
import type { ConfigRows } from '../../../shared/config/compile.ts';

/** The least that a served channel needs. */
export const channel = (attributes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: 'main',
  endpoint: 'https://api.example.com/v1',
  models: ['gpt-4o'],
  state: true,
  ...attributes,
});

export const compile = (rows: Partial<ConfigRows>, local = false) =>
  compileSnapshot(
    { channels: [], charges: [], plans: [], settings: [], ...rows },
    { local, publishedAt: 1_800_000_000 },
  );
