import { vi } from 'vitest';

// Every answer in every form. `npm test` covers each bound in only one form.
vi.stubEnv('MEMORY_FORMS', 'every');
await import('../hardening/memory.test.ts');
