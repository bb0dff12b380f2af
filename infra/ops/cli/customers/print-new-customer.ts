/** Prints a customer that was made, and the message for it. Only this file shows its key: once. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { CustomerMade, NewCustomerPlan } from '../../../../shared/operate/customers/new-customer.ts';
import { accountLink, welcomeMessage } from '../../../../shared/operate/customers/welcome-message.ts';
import type { Terminal } from '../terminal/terminal.ts';

interface Shown extends CustomerMade {
  isLinked: boolean;
}

const messageOf = (
  { account, grant, baseUrl, pages }: NewCustomerPlan,
  { secretKey, isLinked }: Shown,
): string[] =>
  welcomeMessage({
    account,
    secretKey,
    baseUrl,
    pages,
    isLinked,
    amount: grant && formatYuan(grant.amount),
  });

const noAccountPage = 'There is no link: the setting account_page is false.';

const linkOf = ({ baseUrl, pages }: NewCustomerPlan, { secretKey }: Shown): string | null =>
  (pages.account ? accountLink({ baseUrl, secretKey }) : undefined) ?? null;

export function printNewCustomer(terminal: Terminal, plan: NewCustomerPlan, made: Shown): void {
  const { print, remark, reveal } = terminal;
  reveal(made.secretKey);
  const sent = plan.contact === undefined ? '' : ` to ${plan.contact}`;
  print(
    `customer ${plan.account} is made. Send this${sent}; the key is stored nowhere and is not shown again:`,
  );
  print('');
  for (const line of messageOf(plan, made)) print(line === '' ? '' : `  ${line}`);
  print('');
  if (plan.baseUrl === undefined) remark('The address of the relay is not known here: put it in.');
  if (made.isLinked && !plan.pages.account) remark(noAccountPage);
  if (made.grant?.problem !== undefined) remark(made.grant.problem);
  else if (made.grant?.isApplied === false)
    remark('The grant is not applied yet. It will be within minutes: see `customer show`.');
}

/** @param made undefined: it was not made */
export function newCustomerFacts(
  { reveal }: Terminal,
  plan: NewCustomerPlan,
  made: Shown | undefined,
): object {
  const { account, grant, contact } = plan;
  const facts = { account, contact: contact ?? null, granted: grant ? formatYuan(grant.amount) : null };
  if (!made) return facts;
  reveal(made.secretKey);
  return {
    ...facts,
    applied: made.grant?.isApplied ?? null,
    key: made.secretKey,
    hash: made.hash,
    hint: made.hint,
    message: messageOf(plan, made).join('\n'),
    ...(made.isLinked && { link: linkOf(plan, made) }),
  };
}
