import { vi } from 'vitest';

// Every door; `npm test` has the one that differs most from CloudFront's.
vi.stubEnv('DOORS', 'every');
await import('../local/front-doors.test.ts');
