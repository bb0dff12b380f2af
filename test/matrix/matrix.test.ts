import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { askWithEvent, judgeAnswers, listOtherEvents, modes, type AnswerCell } from './answer-cells.ts';
import { dialects } from './endpoints.ts';
import { pagePath, renderPage } from './page.ts';
import { answerReasons, reasons, type Reason } from './reasons.ts';
import { judgeRequests, type Cell } from './requests.ts';

const decide =
  'carry it, name it as dropped, refuse it by its name, or add a rule with its reason to reasons.ts';

/** A body in the client's own form is sent unchanged, so its client gets the vendor's own errors about these. */
const left = new Map([['messages messages', ['temperature', 'top_p']]]);

const requests: Cell[] = [];
const answers: AnswerCell[] = [];
const pairs = dialects.flatMap((one) => dialects.map((other) => [one, other] as const));

describe.each(pairs)('a request of %s to an upstream that speaks %s', (endpoint, dialect) => {
  let own: Cell[] = [];
  beforeAll(async () => {
    own = await judgeRequests(endpoint, dialect);
    requests.push(...own);
  });

  it('loses no field, block or item without naming it', () => {
    expect(own.length).toBeGreaterThan(100);
    const lost = own.filter(({ outcome }) => outcome === 'lost');
    expect(lost.map(({ path, seen }) => `${path} has no effect (${seen}): ${decide}`)).toEqual([]);
  });

  it('continues if the upstream rejects unknown fields', () => {
    const known = left.get(`${endpoint} ${dialect}`) ?? [];
    const ended = own.filter(
      ({ outcome, strict }) => strict !== outcome && (strict === 'lost' || strict === 'refused'),
    );
    expect(ended.map(({ path }) => path).toSorted()).toEqual(known.toSorted());
  });
});

describe.each(pairs)('an answer of %s to a client of %s', (dialect, endpoint) => {
  it.each(modes)('loses nothing without a reason: %s', async (mode) => {
    const own = await judgeAnswers(dialect, endpoint, mode);
    answers.push(...own);
    expect(own.length).toBeGreaterThan(40);
    const lost = own.filter(({ outcome }) => outcome === 'lost');
    expect(lost.map(({ path, seen }) => `${path} does not reach the client (${seen}): ${decide}`)).toEqual(
      [],
    );
  });

  it('keeps its text next to events of tools that run at the vendor, and fails at an error event', async () => {
    for (const event of listOtherEvents(dialect)) {
      const text = await askWithEvent(dialect, endpoint, event);
      expect([event['type'], text.includes('whole')]).toEqual([event['type'], event['type'] !== 'error']);
    }
  });
});

it('every reason for a loss is needed', () => {
  const used = new Set<Reason | undefined>(
    [...requests, ...answers].flatMap(({ outcome, reason }) => (outcome === 'moot' ? [reason] : [])),
  );
  expect([...reasons, ...answerReasons].filter((reason) => !used.has(reason))).toEqual([]);
});

it('the page matches the types of the vendors’ clients: if not, read what is new, decide, and rewrite the page', () => {
  expect(readFileSync(pagePath, 'utf8')).toBe(renderPage(requests, answers));
});
