import type { Mutants } from './mutant.ts';
import { adapters } from './adapters.ts';
import { calls } from './calls.ts';
import { core } from './core.ts';
import { faces } from './faces.ts';
import { messages } from './messages.ts';
import { money } from './money.ts';
import { operate } from './operate.ts';
import { stack } from './stack.ts';
import { upstreams } from './upstreams.ts';

export const mutants: Mutants = {
  ...adapters,
  ...operate,
  ...calls,
  ...messages,
  ...money,
  ...upstreams,
  ...core,
  ...faces,
  ...stack,
};
