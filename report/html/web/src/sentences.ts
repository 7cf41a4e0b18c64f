// The sentences beneath a chart: how to read it, and what it shows. All are made by the program
// that writes the report; the page chooses those that hold for what a chart draws.

import { grouped, type Statement } from './data';
import { dimensionTitle } from './series';
import type { Context } from './charts/kind';

/** Beneath a chart without a point. */
export const nothing = 'There is no number to show.';

const most = 3; // curves that are spoken of one by one

/**
 * How to read a chart of a kind that has some things: lines, points, interval, null, signed,
 * unsigned.
 */
export function reading(c: Context, kind: string, has: string[] = [], item = ''): string {
  const parts = (c.scores.packed.readings[kind] ?? []).filter((part) =>
    (part.when ?? '')
      .split(' ')
      .filter(Boolean)
      .every((word) => has.includes(word)),
  );
  const text = parts
    .map((part) => part.text)
    .join('')
    .replaceAll('{series}', dimensionTitle(c.series.dimension))
    .replaceAll('{item}', item)
    .replaceAll('{statistic}', c.statistic.title);
  return joined(
    text,
    ['distribution', 'units', 'tuning'].includes(kind) ? '' : c.measure.toward[c.statistic.name],
  );
}

/**
 * What a chart of curves shows: how each runs, or of many the one that changes most and the one
 * that changes least.
 */
export function ofCurves(c: Context, rows: number[]): string {
  const all = holding(c, rows, 'curve').sort((a, b) => b.weight - a.weight);
  const said =
    all.length > most
      ? [all[0], all[all.length - 1]]
      : [...all].sort((a, b) => a.rows[0] - b.rows[0]);
  const gap = holding(c, rows, 'gap').find((s) => s.rows.length === rows.length);
  return joined(...said.map((s) => s.text), gap?.text ?? '');
}

/** What a chart of bars or tiles shows: which is highest, which lowest. */
export function ofExtremes(c: Context, rows: number[]): string {
  return holding(c, rows, 'extremes').find((s) => s.rows.length === rows.length)?.text ?? '';
}

export function joined(...texts: string[]): string {
  return texts.filter(Boolean).join(' ');
}

// holding returns the statements of a kind all of whose rows are drawn.
function holding(c: Context, rows: number[], kind: string): Statement[] {
  const drawn = new Set(rows);
  return rows
    .flatMap((row) => byFirstRow(c).get(row) ?? [])
    .filter((s) => s.kind === kind && s.rows.every((row) => drawn.has(row)));
}

let index: Map<number, Statement[]> | undefined;

function byFirstRow(c: Context): Map<number, Statement[]> {
  index ??= new Map(
    grouped(c.scores.packed.statements ?? [], (s) => String(s.rows[0])).map(([row, all]) => [
      Number(row),
      all,
    ]),
  );
  return index;
}
