/** The process of `npm run first-deployment -- --stage S [--from N|last] [--yes]`. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readDeployed } from './deployed-options.ts';
import { runProtocol } from './protocol.ts';

const string = { type: 'string' } as const;
const boolean = { type: 'boolean' } as const;
try {
  const { values } = parseArgs({ options: { stage: string, from: string, yes: boolean } });
  process.exitCode = await runProtocol(values, {
    folder: join(import.meta.dirname, '..', '..'),
    environment: process.env,
    print: (line) => {
      console.error(line);
    },
    isDeployed: async (place) =>
      (await readDeployed({ ...place, profile: undefined }, process.env)).state === 'published',
  });
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
