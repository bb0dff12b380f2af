import { vi } from 'vitest';

// Every stage; `npm test` covers three.
vi.stubEnv('STAGES', 'every');
await import('../infra/validation.ts');
