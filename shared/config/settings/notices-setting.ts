import * as z from 'zod/mini';
import { modelName, text, time } from '../rows/attribute-schemas.ts';
import type { PublicNotice } from './settings.ts';

/** All of them are in every page and in every answer about an account. */
const noticesMax = 20;
const charactersMax = 500;
const modelsMax = 100;
const wantedNotices = `a list of at most ${noticesMax} maps {text, from, until, models}`;
const wantedText = `a text of at most ${charactersMax} characters`;
const wantedModels = `a list (or a string set) of 1 to ${modelsMax} model names`;

/** The setting `notices`: what customers are shown, on the page and with their account. */
export const NoticesValue = z
  .array(
    z.strictObject(
      {
        text: text.check(z.maxLength(charactersMax, wantedText)),
        /** Shown from then on. Absent: at once. */
        from: z.optional(time),
        /** Not shown from then on. Absent: until it is taken out. */
        until: z.optional(time),
        /** The models that it is about. Absent: all. */
        models: z.optional(
          z
            .array(modelName, wantedModels)
            .check(z.minLength(1, wantedModels), z.maxLength(modelsMax, wantedModels)),
        ),
      },
      'a map {text, from, until, models}',
    ),
    wantedNotices,
  )
  .check(z.maxLength(noticesMax, wantedNotices));

/** Checks the rules beyond the schema. */
export function readNotices(
  value: z.infer<typeof NoticesValue>,
): { problem: string } | { notices: PublicNotice[] } {
  const wrong = value.findIndex(
    ({ from, until }) => from !== undefined && until !== undefined && until <= from,
  );
  if (wrong >= 0)
    return { problem: `value[${wrong}].until: found a time that is not after from, wanted a later one` };
  return {
    notices: value.map(({ text: said, from, until, models }) => ({
      text: said,
      ...(from !== undefined && { fromMs: from }),
      ...(until !== undefined && { untilMs: until }),
      ...(models !== undefined && { models }),
    })),
  };
}
