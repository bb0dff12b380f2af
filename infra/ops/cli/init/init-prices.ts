/** The part of `init` that asks what the models cost. Nothing is free but what is named so. Writes nothing. */
import { InvalidArgumentError } from 'commander';
import {
  planFirstPrices,
  type FirstPrices,
  type FirstPricesPlan,
  type TypedPrice,
} from '../../../../shared/operate/prices/first-prices.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import type { Run } from '../command/command-context.ts';
import type { Answer, InitOptions } from './init-questions.ts';
import { parseDecimalText, parsePricePair } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { readListFile } from '../terminal/text-files.ts';

export async function askPrices(
  { ports, terminal }: Run,
  answer: Answer,
  { models, options }: { models: string[]; options: InitOptions },
): Promise<FirstPricesPlan> {
  const { price: typed = {}, free = [] } = options;
  const wanted: FirstPrices = { models, free, typed };
  const known = await planFirstPrices(ports, wanted);
  if (known.unpriced.length === 0) return known;
  const list = await askList(terminal, answer, options);
  const plan = list ? await planFirstPrices(ports, { ...wanted, list }) : known;
  if (plan.unpriced.length === 0) return plan;
  if (!terminal.isAttended)
    throw usageFailure(
      `no price for ${plan.unpriced.join(', ')}, and nobody is here to answer: give --price ${plan.unpriced[0]}=INPUT/OUTPUT, --prices FILE or --free ${plan.unpriced[0]}`,
    );
  const asked = await askTyped(terminal, plan.unpriced);
  return planFirstPrices(ports, { ...wanted, typed: { ...typed, ...asked }, list });
}

async function askList(
  { ask, isAttended }: Terminal,
  answer: Answer,
  { prices, rate, markup }: InitOptions,
): Promise<FirstPrices['list']> {
  const file =
    prices ??
    (isAttended ? await ask('File of a public price list in US dollars (Enter: type prices):') : '');
  if (file === '') return undefined;
  const source = await readListFile(file);
  const perDollar = await answer(rate, { name: '--rate', question: 'Yuan for one US dollar' });
  const onTop = await answer(markup, { name: '--markup', question: 'Percent on top', usual: '0' });
  return { list: source, rate: parsed(parseDecimalText, perDollar), markup: parsed(parseDecimalText, onTop) };
}

/** A model whose price a person leaves out is refused, which the plan warns of. */
async function askTyped({ ask, remark }: Terminal, models: string[]): Promise<Record<string, TypedPrice>> {
  const typed: Record<string, TypedPrice> = {};
  for (const model of models) {
    for (;;) {
      const written = await ask(
        `Price of ${model}, yuan per million tokens: input/output (Enter: none, its calls are refused):`,
      );
      if (written === '') break;
      try {
        typed[model] = parsePricePair(written);
        break;
      } catch (error) {
        if (!(error instanceof InvalidArgumentError)) throw error;
        remark(error.message);
      }
    }
  }
  return typed;
}

function parsed<Value>(parse: (written: string) => Value, written: string): Value {
  try {
    return parse(written);
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw usageFailure(error.message);
    throw error;
  }
}
