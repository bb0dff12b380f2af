import { vi } from 'vitest';

// Every front door; `npm test` covers the one that differs most from CloudFront.
vi.stubEnv('DOORS', 'every');
await import('../local/front-doors.test.ts');
