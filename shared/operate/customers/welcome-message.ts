/** The text that a new customer is sent with the key. */
import type { CustomerPages } from './customer-pages.ts';

export interface Welcome {
  account: string;
  secretKey: string;
  /** Ends in `/v1`. Undefined: it is not known. */
  baseUrl: string | undefined;
  /** Yuan, as text. Undefined: nothing was granted. */
  amount: string | undefined;
  /** Put a link into it that opens the account page with the key. */
  isLinked: boolean;
  /** Default: all. */
  pages?: CustomerPages;
}

/** The key stands behind `#`: browsers never send that part to a server. Undefined: the address is not known. */
export const accountLink = ({
  baseUrl,
  secretKey,
}: Pick<Welcome, 'baseUrl' | 'secretKey'>): string | undefined =>
  baseUrl === undefined ? undefined : `${pageOf(baseUrl)}/account#${secretKey}`;

const pageOf = (baseUrl: string): string => baseUrl.replace(/\/v1\/?$/, '');

/** Lines, ready to send. */
export function welcomeMessage({
  account,
  secretKey,
  baseUrl,
  amount,
  isLinked,
  pages = { models: true, account: true },
}: Welcome): string[] {
  const address = baseUrl ?? '(the address of this relay)/v1';
  const link = isLinked ? accountLink({ baseUrl, secretKey }) : undefined;
  return [
    `Your account ${account} is ready${amount === undefined ? '' : `, with ${amount} yuan`}.`,
    '',
    `Base URL: ${address}`,
    `API key:  ${secretKey}`,
    '',
    `Use them in any OpenAI client: OPENAI_BASE_URL=${address} OPENAI_API_KEY=<the key>`,
    ...(baseUrl === undefined || !pages.models ? [] : [`Models and prices: ${pageOf(baseUrl)}/`]),
    ...(pages.account
      ? [`Balance, usage and limits: ${link ?? `${pageOf(address)}/account (it asks for the key)`}`]
      : []),
    'Whoever has the key spends your balance: keep it out of code and chats. If it gets lost, tell us at once.',
  ];
}
