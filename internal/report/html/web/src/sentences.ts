// The sentences beneath a chart: how to read it (its reading), and what it shows (statements). This
// module selects those that hold for the rows that a chart draws.

import { grouped, type Statement } from './data';
import { fill, type Context } from './chart';

/** How to read a chart, and what it shows. */
export interface Text {
  reading: string;
  text: string;
}

const maxCurves = 3; // the largest number of curves that are described one by one

/**
 * The sentences of a chart of some rows. Of a part of the reading, all words of its condition must
 * be in has; see report.ReadingPart.
 */
export function textOf(c: Context, rows: number[], has: string[]): Text {
  const parts = c.chart.reading.filter((part) =>
    (part.when ?? '')
      .split(' ')
      .filter(Boolean)
      .every((word) => has.includes(word)),
  );
  const read = fill(c, parts.map((part) => part.text).join(''), rows);
  if (c.chart.statements === 'text') return { reading: read, text: joined(...textsOf(c, rows)) };
  const sentences = c.chart.statements === 'curve' ? ofCurves : ofExtremes;
  return {
    reading: joined(read, c.measure.toward[c.statistic.name]), // what higher or lower values mean
    text: rows.length > 0 ? sentences(c, rows) : c.scores.packed.notices.empty,
  };
}

// textsOf returns the texts of the rows themselves, those of the greatest weight first.
function textsOf(c: Context, rows: number[]): string[] {
  if (rows.length === 0) return [c.scores.packed.notices.empty];
  const weights = new Map(
    rows.map((row) => [c.table.text('text', row), c.table.number('weight', row) ?? 0]),
  );
  return [...weights]
    .sort((a, b) => b[1] - a[1])
    .slice(0, c.chart.texts)
    .map(([text]) => text);
}

/**
 * What a chart of curves shows: how each changes, or if there are many, the one that changes most
 * and the one that changes least; for two curves also where they differ most (the statement gap).
 */
function ofCurves(c: Context, rows: number[]): string {
  const all = holding(c, rows, 'curve').sort((a, b) => b.weight - a.weight);
  const selected =
    all.length > maxCurves
      ? [all[0], all[all.length - 1]]
      : [...all].sort((a, b) => a.rows[0] - b.rows[0]);
  const gap = holding(c, rows, 'gap').find((s) => s.rows.length === rows.length);
  return joined(...selected.map((s) => s.text), gap?.text ?? '');
}

/** What a chart of bars or tiles shows: which is highest, which lowest. */
function ofExtremes(c: Context, rows: number[]): string {
  return holding(c, rows, 'extremes').find((s) => s.rows.length === rows.length)?.text ?? '';
}

function joined(...texts: string[]): string {
  return texts.filter(Boolean).join(' ');
}

// holding returns the statements of a kind whose rows are all drawn, so that they hold for the
// chart.
function holding(c: Context, rows: number[], kind: string): Statement[] {
  const drawn = new Set(rows);
  return rows
    .flatMap((row) => byFirstRow(c).get(row) ?? [])
    .filter((s) => s.kind === kind && s.rows.every((row) => drawn.has(row)));
}

let index: Map<number, Statement[]> | undefined;

// byFirstRow returns all statements by their first row. It groups them once, for the whole page.
function byFirstRow(c: Context): Map<number, Statement[]> {
  index ??= new Map(
    grouped(c.scores.packed.statements ?? [], (s) => String(s.rows[0])).map(([row, all]) => [
      Number(row),
      all,
    ]),
  );
  return index;
}
