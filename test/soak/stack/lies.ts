/**
 * Defects that a soak has to notice. Each is a layer that lies, before the store or before the client, so that the relay
 * behind it looks broken; the product has no switch for them.
 */
export const lies = {
  'lost-settle': 'the store confirms every third settle and does not write it',
  'double-refund': 'the store returns to the balance twice what a settle releases',
  'clean-end': 'an answer gets a proper end when its reader stalls, or when the relay breaks it off',
  'wrong-cause': 'a failing upstream reaches the client as a rate limit',
  'leaked-hold': 'the store confirms what the sweeper closes and does not write it',
  'stale-price': 'the store names the configuration of the start for ever',
} as const;

export type Lie = keyof typeof lies;
export const isLie = (name: string): name is Lie => name in lies;
