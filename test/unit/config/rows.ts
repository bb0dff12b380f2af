import { compileSnapshot, type CompileOptions } from '../../../shared/config/compile-snapshot.ts';
import { emptyRows, type ConfigRows } from '../../../shared/config/rows/read-table.ts';

/** The minimum of a served channel. */
export const channel = (attributes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: 'main',
  endpoint: 'https://api.example.com/v1',
  models: ['gpt-4o'],
  state: true,
  ...attributes,
});

export const compile = (rows: Partial<ConfigRows>, options: Partial<CompileOptions> = {}) =>
  compileSnapshot({ ...emptyRows, ...rows }, { local: false, publishedAt: 1_800_000_000, ...options });
