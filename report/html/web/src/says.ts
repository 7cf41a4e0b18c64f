// Sentences beneath charts: how to read them, and what they show, by fixed rules. The sentences at the top of the report are
// made likewise, in findings.go.

import { isJoined, type Context, type Point } from './charts/kind';
import { grouped, type Statistic } from './data';
import { capital, number, shorten } from './format';
import { dimensionTitle, labelOf } from './series';

const steady = 0.05; // of a statistic's range: a curve that stays within this much is called steady
const trend = 0.6; // of Spearman's correlation: from here on a curve is said to rise or to fall
const spoken = 3; // lines that are described one by one

/** How a chart with points, intervals and nulls is read. */
function reading(c: Context, drawn: Point[], bandsUpTo: number): string {
  if (!isJoined(drawn)) return `A point for each layer${drawn.some((p) => p.null !== null) ? ', a tick for what chance gives' : ''}.${towards(c)}`;
  const parts = [`A line for each ${dimensionTitle(c.series.dimension)}`];
  if (new Set(drawn.map((p) => p.line)).size <= bandsUpTo && drawn.some((p) => p.low !== null)) parts.push('with its 95 % interval');
  if (drawn.some((p) => p.null !== null)) parts.push('dotted: what chance gives');
  return `${parts.join(', ')}.${towards(c)}`;
}

function towards(c: Context): string {
  const better = c.rows.some((row) => c.scores.text('to', row) !== '') ? 'more alike' : 'more is kept';
  if (c.statistic.direction === 'higher') return ` Higher: ${better}.`;
  return c.statistic.direction === 'lower' ? ` Lower: ${better}.` : '';
}

export function saysOfCurves(c: Context, drawn: Point[], at: (p: Point) => string, over: string, bandsUpTo: number): string {
  const read = reading(c, drawn, bandsUpTo);
  const joined = isJoined(drawn);
  const lines = grouped(drawn, (p) => p.line).map(([, points]) => describe(c, sorted(points), at, over, joined));
  if (lines.length === 0) return `${read} There is no number to show.`;
  const title = capital(c.statistic.title);
  let said: string;
  if (lines.length === 1) said = `${title} ${lines[0].text}.`;
  else if (lines.length <= spoken) said = `${title} ${lines.map((l) => `of ${l.name} ${l.text}`).join('; ')}.`;
  else {
    const most = lines.reduce((a, b) => (b.span > a.span ? b : a)), least = lines.reduce((a, b) => (b.span < a.span ? b : a));
    said = `${title} changes most for ${most.name}, where it ${most.text}, and least for ${least.name}, where it ${least.text}.`;
  }
  return [read, said, lines.length === 2 ? apart(c, drawn, at) : '', chance(c, drawn)].filter(Boolean).join(' ');
}

interface Line {
  name: string;
  text: string;
  span: number;
}

function describe(c: Context, points: Point[], at: (p: Point) => string, over: string, joined: boolean): Line {
  const low = points.reduce((a, b) => (b.value < a.value ? b : a)), high = points.reduce((a, b) => (b.value > a.value ? b : a));
  const first = points[0], last = points[points.length - 1], span = high.value - low.value;
  const name = nameOf(c, first);
  const rho = points.length < 3 ? 0 : spearman(points.map((_, i) => i), points.map((p) => p.value));
  if (points.length === 1) return { name, span, text: `is ${number(first.value)} at ${at(first)}` };
  if (span <= steady * width(c.statistic, high.value)) return { name, span, text: `stays between ${number(low.value)} and ${number(high.value)}` };
  if (!joined) return { name, span, text: `is highest at ${at(high)} (${number(high.value)}) and lowest at ${at(low)} (${number(low.value)})` };
  const ends = `from ${number(first.value)} to ${number(last.value)} ${over}`;
  if (rho <= -trend && first.value > last.value) return { name, span, text: `falls ${ends}` };
  if (rho >= trend && first.value < last.value) return { name, span, text: `rises ${ends}` };
  return { name, span, text: `peaks at ${at(high)} (${number(high.value)}) and is lowest at ${at(low)} (${number(low.value)})` };
}

function nameOf(c: Context, p: Point): string {
  const series = shorten(labelOf(c.series.dimension, p.series), 40);
  return c.series.dimension.startsWith('tag:') ? `${c.scores.text('model', p.id)} (${series})` : series;
}

// apart says where two lines differ most, if they have enough places in common.
function apart(c: Context, drawn: Point[], at: (p: Point) => string): string {
  const [one, two] = grouped(drawn, (p) => p.line).map(([, points]) => points);
  const places = new Map(two.map((p) => [p.x, p]));
  if (2 * one.filter((p) => places.has(p.x)).length < Math.min(one.length, two.length)) return ''; // too few to speak for the lines
  let widest: [Point, Point] | undefined;
  for (const p of one) {
    const q = places.get(p.x);
    if (q && (!widest || Math.abs(p.value - q.value) > Math.abs(widest[0].value - widest[1].value))) widest = [p, q];
  }
  if (!widest) return '';
  const [p, q] = widest;
  const where = at(p) === at(q) ? at(p) : `${at(p)} and ${at(q)}`;
  return `They are furthest apart at ${where} (${nameOf(c, p)} ${number(p.value)}, ${nameOf(c, q)} ${number(q.value)})${beyond(p, q) === false ? ', which is within their intervals' : ''}.`;
}

/** Whether two scores differ by more than their intervals allow, taken as independent; unknown where one has none. */
function beyond(p: Point, q: Point): boolean | undefined {
  if (p.low === null || p.high === null || q.low === null || q.high === null) return undefined;
  return Math.abs(p.value - q.value) > Math.hypot((p.high - p.low) / 2, (q.high - q.low) / 2);
}

function chance(c: Context, drawn: Point[]): string {
  if (!c.statistic.direction) return '';
  const with_ = drawn.filter((p) => p.null !== null);
  const at = with_.filter((p) => c.statistic.direction === 'higher' ? p.null! >= (p.low ?? p.value) : p.null! <= (p.high ?? p.value));
  if (at.length === 0) return '';
  return at.length === with_.length ? 'None of it is better than chance.' : `${at.length} of ${with_.length} points are no better than chance.`;
}

export function saysOfBars(c: Context, drawn: Point[]): string {
  const read = `A bar for each ${dimensionTitle(c.series.dimension)}${drawn.some((p) => p.low !== null) ? ', with its 95 % interval' : ''}${drawn.some((p) => p.null !== null) ? '; the tick alone is what chance gives' : ''}.${towards(c)}`;
  if (drawn.length === 0) return `${read} There is no number to show.`;
  const where = (p: Point) => [nameOf(c, p), String(p.x)].filter((t, i, all) => t !== '' && all.indexOf(t) === i).join(', ');
  const high = drawn.reduce((a, b) => (b.value > a.value ? b : a)), low = drawn.reduce((a, b) => (b.value < a.value ? b : a));
  const said = drawn.length === 1
    ? `It is ${number(high.value)} for ${where(high)}.`
    : `It is highest for ${where(high)} (${number(high.value)}) and lowest for ${where(low)} (${number(low.value)}).`;
  return [read, said, duel(c, drawn)].filter(Boolean).join(' ');
}

// duel counts where one of two series is above the other, and where by more than their intervals allow.
function duel(c: Context, drawn: Point[]): string {
  const series = [...new Set(drawn.map((p) => p.series))];
  if (series.length !== 2) return '';
  const groups = grouped(drawn, (p) => String(p.x)).map(([, points]) => [points.find((p) => p.series === series[0]), points.find((p) => p.series === series[1])]);
  const both = groups.filter((g): g is [Point, Point] => g[0] !== undefined && g[1] !== undefined);
  if (both.length === 0) return '';
  const ahead = both.filter(([p, q]) => p.value > q.value).length;
  const [name, wins] = 2 * ahead >= both.length ? [both[0][0], ahead] : [both[0][1], both.length - ahead];
  const sure = both.filter(([p, q]) => p.value > q.value === (name === both[0][0]) && beyond(p, q)).length;
  return `${nameOf(c, name)} is above the other in ${wins} of ${both.length}, in ${sure} by more than their intervals allow.`;
}

export function saysOfHeat(c: Context, drawn: { id: number; value: number }[], names: (row: number) => string[], signed: boolean): string {
  const read = `${signed ? 'Orange is above 0, blue below.' : 'The brighter, the higher.'}${towards(c)}`;
  const others = drawn.filter((t) => !itself(c, t.id)); // a layer compared with itself is 1 and says nothing
  const said = others.length > 0 ? others : drawn;
  if (said.length === 0) return `${read} There is no number to show.`;
  const high = said.reduce((a, b) => (b.value > a.value ? b : a)), low = said.reduce((a, b) => (b.value < a.value ? b : a));
  const where = (row: number) => names(row).join(' with ');
  return `${read} It is highest for ${where(high.id)} (${number(high.value)}) and lowest for ${where(low.id)} (${number(low.value)}).`;
}

function itself(c: Context, row: number): boolean {
  const s = c.scores;
  return s.text('to', row) !== '' && s.text('from', row) === s.text('to', row) && s.text('layer', row) === s.text('other', row);
}

// width is the length of a statistic's range, or the size of a typical value where it has none.
function width(statistic: Statistic, typical: number): number {
  const [low, high] = statistic.range;
  return low !== null && high !== null ? high - low : Math.abs(typical);
}

function sorted(points: Point[]): Point[] {
  return points.every((p) => typeof p.x === 'number') ? [...points].sort((a, b) => (a.x as number) - (b.x as number)) : points;
}

/** Spearman's rank correlation, ties sharing their mean rank; 0 where one does not vary. */
export function spearman(a: number[], b: number[]): number {
  const x = ranks(a), y = ranks(b), mean = (a.length - 1) / 2;
  let xy = 0, xx = 0, yy = 0;
  for (let i = 0; i < x.length; i++) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) ** 2;
    yy += (y[i] - mean) ** 2;
  }
  return xx === 0 || yy === 0 ? 0 : xy / Math.sqrt(xx * yy);
}

function ranks(values: number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const out = new Array<number>(values.length);
  for (let start = 0; start < order.length;) {
    let end = start;
    while (end < order.length && values[order[end]] === values[order[start]]) end++;
    for (let i = start; i < end; i++) out[order[i]] = (start + end - 1) / 2;
    start = end;
  }
  return out;
}
