/**
 * Defects that a soak has to notice. Each is a layer that lies, before the store or before the client, so that the relay
 * behind it looks broken; the product has no switch for them.
 */
export const lies = {
  'lost-settle': 'the store confirms every third settlement without writing it',
  'double-refund': 'the store credits twice the amount that a settlement releases',
  'clean-end': 'an answer ends normally if its reader stalls, or if the relay cuts it',
  'wrong-cause': 'a failing upstream is reported to the client as a rate limit',
  'leaked-hold': 'the store confirms the sweeper’s closes without writing them',
  'stale-price': 'the store returns the first configuration forever',
} as const;

export type Lie = keyof typeof lies;
export const isLie = (name: string): name is Lie => name in lies;
