/** The request format of one kind of search provider at `<endpoint>/search`. All replies have `results`. */
import type { SearchSettings } from '../../config/settings/settings.ts';

export interface SearchDialect {
  contentType: string;
  body(query: string, settings: SearchSettings): string;
}
