/** The part of the navigation that a path belongs to. */
import { sections, type Section } from '../layout/frame.ts';

export const sectionOf = (path: string): Section =>
  sections.map(([each]) => each).find((each) => each !== '' && path.startsWith(each)) ?? '';
