import * as z from 'zod/mini';
import { daysUpTo, flag, optionMap, positiveInteger } from '../rows/attribute-schemas.ts';
import { defaultSettings, type Settings } from './settings.ts';

const { days, eventMinutes } = defaultSettings.store;

/** The setting `store`: true or false for all keys, or a map that also says how long what is stored is kept. */
export const StoreValue = z.union(
  [
    flag,
    optionMap({
      all_keys: z._default(flag, true),
      days: z._default(daysUpTo(365), days),
      event_minutes: z._default(positiveInteger, eventMinutes),
    }),
  ],
  'true, false, or a map {all_keys, days, event_minutes}',
);

export const readStore = (value: z.infer<typeof StoreValue>): Partial<Settings> =>
  typeof value === 'boolean'
    ? { store: { ...defaultSettings.store, allKeys: value } }
    : { store: { allKeys: value.all_keys, days: value.days, eventMinutes: value.event_minutes } };
