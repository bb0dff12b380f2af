/** Says before a probe what it will cost: tokens, and money by the rule of `charges`. */
import { formatYuan } from '../../../billing/amount.ts';
import { costOf } from '../../../billing/price.ts';
import { priceOf } from '../../../billing/price-rule.ts';
import { compileSnapshot } from '../../../config/compile/compile-snapshot.ts';
import type { OperatorPorts } from '../../operator-ports.ts';
import { outputTokensMax } from './probe-call.ts';
import { callsMax } from './probe-calls.ts';

/** Of a call, roughly: the longest has a tool or a small picture, and models that think do so for a line or two. */
const expected = { prompt_tokens: 150, completion_tokens: 150 };

/** Sentences for operators. The upstream's own price is known to nobody here. */
export async function expectedCost(
  { clock, config, target }: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
  model: string,
): Promise<string[]> {
  const { snapshot } = compileSnapshot(await config.tables(), { local: target.local, publishedAt: 0 });
  const price = priceOf(snapshot.charges, model, clock.now());
  const tokens = {
    prompt_tokens: expected.prompt_tokens * callsMax,
    completion_tokens: expected.completion_tokens * callsMax,
  };
  const cost =
    price.type === 'times-billing' ? costOf(price, tokens) * BigInt(callsMax) : costOf(price, tokens);
  const money =
    price.type === 'non-billing'
      ? `no rule of charges has a price for ${model}`
      : `${formatYuan(cost)} yuan by rule ${price.rule} of charges, by which clients pay; the upstream's price may be another`;
  return [
    `expected: ${tokens.prompt_tokens} input and ${tokens.completion_tokens} output tokens (at most ${outputTokensMax * callsMax} output tokens)`,
    `expected cost: ${money}`,
  ];
}
