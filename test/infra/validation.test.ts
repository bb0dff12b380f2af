import { afterEach, expect, test, vi } from 'vitest';
import { synthesize } from './synthesize.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('the stack with everything in it has no finding by CloudFormation’s rules or cdk-nag, nor a warning', () => {
  const printed: string[] = [];
  const record = (text: string | Uint8Array): boolean => printed.push(String(text)) > 0;
  vi.spyOn(process.stderr, 'write').mockImplementation(record);
  vi.spyOn(console, 'error').mockImplementation(record);
  vi.spyOn(console, 'warn').mockImplementation(record);
  const context = {
    alarmEmail: 'ops@example.com',
    domain: 'api.example.com',
    certificateArn: 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012',
    originSecrets: [1, 2],
  };
  expect(() => synthesize(context, true)).not.toThrow();
  expect(() => synthesize({}, true)).not.toThrow();
  expect(printed).toEqual([]);
});
