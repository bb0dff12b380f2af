/** Numbers and times as customers read them. */

export const count = (value: number): string => value.toLocaleString('en-US');

/** Small amounts keep the digits that make them. */
export function yuan(amount: number): string {
  const size = Math.abs(amount);
  const digits = size === 0 || size >= 1 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(size)));
  const text = size.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: digits });
  return `${amount < 0 ? '-' : ''}¥${text}`;
}

export const perMillion = (perThousand: number): string => yuan(perThousand * 1000);

const shortTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
/** Of the relay's days, which are those of UTC. */
const dayAlone = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

export const timeOf = (seconds: number): string => shortTime.format(seconds * 1000);
export const dayOf = (seconds: number): string => dayAlone.format(seconds * 1000);

export const plural = (value: number, word: string): string =>
  `${count(value)} ${word}${value === 1 ? '' : 's'}`;
