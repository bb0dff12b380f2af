/** How one kind of search provider is asked, behind `<endpoint>/search`. All answer with `results`. */
import type { SearchSettings } from '../../config/rows/settings.ts';

export interface SearchDialect {
  contentType: string;
  body(query: string, settings: SearchSettings): string;
}
