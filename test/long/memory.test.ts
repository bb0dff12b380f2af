import { vi } from 'vitest';

// Every answer in every form; `npm test` has each in one.
vi.stubEnv('MEMORY_FORMS', 'every');
await import('../hardening/memory.test.ts');
