/** Prints what follows from a leak. The successor is shown once, here alone. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { MadeKey } from '../../../../shared/operate/keys/create-key.ts';
import type { LeakedKeyMade, LeakedKeyPlan } from '../../../../shared/operate/keys/leaked-key.ts';
import {
  leakedMessage,
  leakedRefund,
  refundCommand,
} from '../../../../shared/operate/keys/leaked-message.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { figuresJson, hoursJson, printKeyUse } from './print-key-use.ts';

/** At once: what is read afterwards may take long, or fail. */
export function printSuccessor({ print, reveal }: Terminal, { secretKey }: MadeKey): void {
  reveal(secretKey);
  print(`The successor is made: ${secretKey}`);
}

export function printLeaked(
  terminal: Terminal,
  plan: LeakedKeyPlan,
  { successor, use, problem }: LeakedKeyMade,
): void {
  const { print, remark } = terminal;
  const refused = plan.earlier ? 'was refused before' : 'is refused within 30 seconds';
  print(`${plan.name} ${refused}. Its use since ${isoTime(plan.use.sinceMs)}:`);
  if (use) printKeyUse(terminal, use);
  else remark(`it could not be read: ${problem}. Ask again: key leaked ${plan.use.hash.slice(0, 12)}`);
  if (!plan.earlier)
    remark(
      `Calls that still run, and those of the next 30 seconds, are not in it: look again before you refund (key use ${plan.use.hash.slice(0, 12)}).`,
    );
  print('');
  const once = successor ? '; the new key is stored nowhere and is not shown again' : '';
  print(`Send this to the customer${once}:`);
  print('');
  for (const line of leakedMessage({ plan, secretKey: successor?.secretKey, use }))
    print(line === '' ? '' : `  ${line}`);
  print('');
  const refund = leakedRefund({ plan, use });
  if (use && use.refunded > 0n) print(`${formatYuan(use.refunded)} yuan of it were refunded already.`);
  if (refund !== undefined) print(`To give back what it spent (choose the amount): ${refundCommand(refund)}`);
}

/** @param made undefined: nothing was done */
export function leakedFacts(
  { reveal }: Terminal,
  plan: LeakedKeyPlan,
  made: LeakedKeyMade | undefined,
): object {
  const facts = { account: plan.account, leaked: plan.name };
  if (!made) return facts;
  const { successor, use, problem } = made;
  if (successor) reveal(successor.secretKey);
  const refund = leakedRefund({ plan, use });
  return {
    ...facts,
    since: isoTime(plan.use.sinceMs),
    ...(use && {
      sum: figuresJson(use.sum),
      refunded: formatYuan(use.refunded),
      hours: hoursJson(use),
    }),
    ...(problem !== undefined && { problem }),
    ...(plan.earlier && { leaked_at: plan.earlier.at, successor: plan.earlier.successor ?? null }),
    ...(successor && { key: successor.secretKey, hash: successor.hash, hint: successor.hint }),
    message: leakedMessage({ plan, secretKey: successor?.secretKey, use }).join('\n'),
    refund: refund ? refundCommand(refund) : null,
  };
}
