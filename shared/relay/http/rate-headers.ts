/** The headers of a key's limit a minute, under OpenAI's names. */
export const rateHeaders = (rpm: number, remaining: number, nowMs: number): Record<string, string> => ({
  'x-ratelimit-limit-requests': String(rpm),
  'x-ratelimit-remaining-requests': String(remaining),
  'x-ratelimit-reset-requests': `${secondsOfMinuteLeft(nowMs)}s`,
});

export const secondsOfMinuteLeft = (nowMs: number): number => Math.ceil((60_000 - (nowMs % 60_000)) / 1000);
