import { afterEach, expect, test, vi } from 'vitest';
import { embeddedMetrics } from '../../../shared/adapters/stream-metrics.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('a count is one line that CloudWatch reads as a metric of the stack', () => {
  const lines: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0);
  const metrics = embeddedMetrics('relay-beta');
  metrics.count('ConservationBroken');
  metrics.count('ConservationBroken');
  vi.restoreAllMocks();
  expect(lines).toHaveLength(2);
  for (const line of lines) {
    expect(JSON.parse(line)).toMatchObject({
      service: 'relay-beta',
      ConservationBroken: 1,
      _aws: {
        CloudWatchMetrics: [
          {
            Namespace: 'relay',
            Dimensions: [['service']],
            Metrics: [{ Name: 'ConservationBroken', Unit: 'Count' }],
          },
        ],
      },
    });
  }
});
