/** Words that this code does without, with the field's own beside them. */

export interface BannedWord {
  /** Over small letters, with the parts of a name set apart: `giveBack` is `give back`. */
  word: RegExp;
  instead: string;
  /** Files and folders where the word means what it says, with the reason. */
  except?: Record<string, string>;
}

export const bannedWords: BannedWord[] = [
  { word: /\b(im)?patien(ce|tly)\b/, instead: 'backoff, timeouts' },
  { word: /\boutbox\b/, instead: 'response queue' },
  { word: /\bkeepers?\b/, instead: 'publisher, projector, applier, recorder' },
  { word: /\bjournals?\b/, instead: 'close record' },
  { word: /\bafloat\b/, instead: 'in flight' },
  { word: /\blanded\b/, instead: 'applied' },
  { word: /\btold\b/, instead: 'reported' },
  { word: /\bsight\b/, instead: 'returned item' },
  { word: /\bverdicts?\b/, instead: 'validation result' },
  { word: /\b(judg(e|es|ed|ing|ement|ements|ment)|unjudged)\b/, instead: 'validate' },
  { word: /\bcooling\b/, instead: 'cooldown' },
  { word: /\bwatches\b/, instead: 'alarms' },
  { word: /\b(rings?|rang|ringing)\b/, instead: 'trigger' },
  {
    word: /\bcells?\b/,
    instead: 'attribute schema, attribute',
    except: {
      'infra/ops/cli/': 'cells of printed tables',
      'shared/operate/': 'cells of tables, price lists and views',
      'test/ops/csv.test.ts': 'cells of CSV',
      'test/infra/dashboard-docs.test.ts': 'cells of a table of a page',
    },
  },
  { word: /\bfront doors?\b/, instead: 'distribution, http-entry' },
  { word: /\bsurroundings?\b/, instead: 'process context' },
  { word: /\bfirst steps?\b/, instead: 'bootstrap' },
  {
    word: /\bgiv(e|es|ing|en) back\b/,
    instead: 'release',
    except: {
      'shared/billing/audit/loss-lines.ts': 'a field of a log line, which is public',
      'shared/relay/money/late-settle.ts': 'a field of a log line, which is public',
      'test/ops/audit.test.ts': 'a field of a log line',
      'test/access/seed.ts': 'a field of a log line',
      'test/ops/plans.test.ts': 'a field of a log line',
      'test/unit/relay/money/reservations-close.test.ts': 'a field of a log line',
    },
  },
  { word: /\bbook(s|ing|ings)?\b/, instead: 'reservations, reservation request, charge' },
];
