import { describe, expect, test } from 'vitest';
import { createVendorDoubles } from '../../../infra/local/vendors/vendors.ts';
import { chatExamples } from './examples.ts';
import { anthropicExamples, bedrockExamples, shownElsewhere } from './messages-examples.ts';
import { doubleOf, send, textOf } from './rig.ts';

const examples = { ...chatExamples, anthropic: anthropicExamples, bedrock: bedrockExamples };
const cases = Object.entries(examples).flatMap(([vendor, rules]) =>
  Object.entries(rules).map(([rule, [breaks, says, keeps, status = 400]]) => ({
    vendor,
    rule,
    breaks,
    says,
    keeps,
    status,
  })),
);

describe('the rules of the doubles', () => {
  test.each(createVendorDoubles())('of $name are all tested', ({ name, rules }) => {
    const shown = Object.keys(examples[name as keyof typeof examples]);
    const expected = rules.filter((id) => !shownElsewhere.includes(id));
    expect(shown.toSorted()).toEqual(expected.toSorted());
  });

  test.each(cases)('$vendor: $rule', async ({ vendor, rule, breaks, says, keeps, status }) => {
    const refused = await send(doubleOf(vendor), breaks);
    expect({ rule: refused.rule, text: textOf(refused) }).toEqual({
      rule,
      text: expect.stringMatching(says),
    });
    expect(refused.status).toBe(status);
    const kept = await send(doubleOf(vendor), keeps);
    expect({ rule: kept.rule, status: kept.status }).toEqual({ rule: undefined, status: 200 });
  });
});
