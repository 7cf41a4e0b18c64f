// Tables of scores: which columns they have, and their rows as scores.csv has them.

import { Shown, type Scores, type Table as Rows } from './data';
import { element } from './dom';
import { count, interval, number } from './format';
import { Table, type Column, type Source } from './table';
import type { State } from './state';

/** What a table of rows shows. Columns of scores with the same value in every row are left out. */
export function sourceOf(t: Rows, rows: number[], title: string): Source {
  const shown = t.table.columns;
  if (!shown)
    return { title, rows, columns: columnsOf(t, rows), csv: (rows) => csvOf(t, rows) };
  const value = (name: string, row: number) =>
    t.has(name) ? t.text(name, row) : t.number(name, row);
  return {
    title,
    rows,
    columns: shown.map(({ name, title }) => ({
      title,
      numeric: !t.has(name),
      cell: (row) => textOf(t, name, row),
      key: (row) => value(name, row),
    })),
    csv: (rows) => [
      shown.map(({ name }) => name),
      ...rows.map((row) => shown.map(({ name }) => value(name, row))),
    ],
  };
}

// textOf returns a field of a row as text.
function textOf(t: Rows, name: string, row: number): string {
  return t.has(name) ? t.text(name, row) : number(t.number(name, row));
}

/**
 * The table of a measure: the summarising rows, or every row if the reader ticks a box. detailed is
 * the number of all rows, or 0 if all of them summarise. The choices are kept in the state under
 * key.
 */
export class ScoreTable {
  readonly root: HTMLElement;
  private readonly table: Table;
  private rows: number[] = [];
  private readonly every = element('input', { type: 'checkbox' });

  constructor(
    private readonly scores: Scores,
    private readonly title: string,
    private readonly state: State,
    private readonly key: string,
    detailed: number,
  ) {
    this.table = new Table(this.source, this.choice, (c) => {
      state.set(`${key}.find`, c.sought);
      state.set(`${key}.sort`, c.sort);
    });
    this.root = this.table.root;
    if (detailed > 0) {
      this.every.addEventListener('change', () => {
        state.set(`${key}.every`, this.every.checked ? '1' : '');
        this.update(this.rows);
      });
      this.table.tools.append(
        element('label', {}, this.every, `Every value, trial and class (${count(detailed)} rows)`),
      );
    }
  }

  /** Shows the rows that pass the report's filters. */
  update(rows: number[]): void {
    this.rows = rows;
    this.every.checked = this.state.get(`${this.key}.every`) === '1';
    this.table.update(this.source, this.choice);
  }

  private get source(): Source {
    const rows = this.every.checked ? this.rows : overview(this.scores, this.rows);
    return sourceOf(this.scores, rows, this.title);
  }

  private get choice() {
    return { sought: this.state.get(`${this.key}.find`), sort: this.state.get(`${this.key}.sort`) };
  }
}

/**
 * The rows that summarise those of single parameter values, trials and classes. Rows of a factor
 * (such as a class) are left out if the same subject has a row without a factor.
 */
export function overview(scores: Scores, rows: number[]): number[] {
  const shown = rows.filter((row) => scores.shown(row) === Shown.overview);
  const of = (row: number) => subject.map((name) => scores.text(name, row)).join('\0');
  const whole = new Set(shown.filter((row) => scores.text('factor', row) === '').map(of));
  return shown.filter((row) => scores.text('factor', row) === '' || !whole.has(of(row)));
}

// The fields that form a subject; reference and compared are the model and the other model.
const subject = ['statistic', 'reference', 'compared', 'data', 'transform', 'variant'];

// columnsOf returns the columns of scores: first those whose values vary (varying), then the value,
// then those that have values (filled). A trial of -1 is the mean over trials.
function columnsOf(scores: Rows, rows: number[]): Column[] {
  const text = (title: string, name: string): Column => ({
    title,
    numeric: false,
    cell: (row) => scores.text(name, row),
    key: (row) => scores.text(name, row),
  });
  const numbers = (
    title: string,
    name: string,
    format: (v: number | null) => string,
  ): Column => ({
    title,
    numeric: true,
    cell: (row) => format(scores.number(name, row)),
    key: (row) => scores.number(name, row),
  });
  const integer = (v: number | null) => (v === null || v < 0 ? '' : count(v));
  const varying = [
    text('model', 'model'),
    text('data', 'data'),
    text('transform', 'transform'),
    text('value of parameter', 'parameter'),
    numbers('trial', 'trial', (v) => (v === -1 ? 'all' : integer(v))),
    text('variant', 'variant'),
    text(factorTitle(scores, rows), 'factor'),
    numbers('depth', 'depth', integer),
    text('layer', 'layer'),
    text('other layer', 'other'),
    text('statistic', 'statistic'),
  ].filter((c) => rows.length > 0 && rows.some((row) => c.key(row) !== c.key(rows[0])));
  const filled = [
    {
      title: '95 % interval',
      numeric: true,
      cell: (row: number) => interval(scores.number('low', row), scores.number('high', row)),
      key: (row: number) => {
        const low = scores.number('low', row),
          high = scores.number('high', row);
        return low === null || high === null ? null : high - low;
      },
    },
    numbers('null', 'null', (v) => (v === null ? '' : number(v))),
    numbers('n', 'n', integer),
    { ...text('warning', 'warning'), prose: true },
  ].filter((c) => rows.some((row) => c.cell(row) !== ''));
  return [...varying, numbers('value', 'value', number), ...filled];
}

// factorTitle returns the title of the column of factors: "class" if all of them are classes.
function factorTitle(scores: Rows, rows: number[]): string {
  return scores.distinct('factor', rows).every((f) => f === '' || f.startsWith('class='))
    ? 'class'
    : 'factor';
}

// The columns of scores.csv except the study, each with the name of the column in the page's data.
const csvColumns: [string, string][] = [
  ['model', 'reference'],
  ['layer', 'layer'],
  ['depth', 'depth'],
  ['other_model', 'compared'],
  ['other_layer', 'other'],
  ['data', 'data'],
  ['transform', 'transform'],
  ['parameter', 'parameter'],
  ['trial', 'trial'],
  ['measure', 'measure'],
  ['variant', 'variant'],
  ['factor', 'factor'],
  ['statistic', 'statistic'],
  ['value', 'value'],
  ['low', 'low'],
  ['high', 'high'],
  ['null', 'null'],
  ['n', 'n'],
  ['warning', 'warning'],
];
const numeric = new Set(['depth', 'trial', 'value', 'low', 'high', 'null', 'n']);
const emptyIfNegative = new Set(['depth', 'trial']); // no layer; a mean over trials

function csvOf(scores: Rows, rows: number[]): (string | number | null)[][] {
  const field = (name: string, row: number) => {
    if (!numeric.has(name)) return scores.text(name, row);
    const v = scores.number(name, row);
    return v !== null && v < 0 && emptyIfNegative.has(name) ? null : v;
  };
  return [
    csvColumns.map(([title]) => title),
    ...rows.map((row) => csvColumns.map(([, name]) => field(name, row))),
  ];
}

/** The fields of a row, for a tooltip. */
export function describe(scores: Rows, row: number): [string, string][] {
  const text = (title: string, name: string): [string, string] => [title, scores.text(name, row)];
  const { columns } = scores.table;
  if (columns) return columns.map(({ name, title }) => [title, textOf(scores, name, row)]);
  const whole = (v: number | null) => (v === null || v < 0 ? '' : count(v));
  const trial = scores.number('trial', row);
  const value = [
    number(scores.number('value', row)),
    interval(scores.number('low', row), scores.number('high', row)),
  ];
  const nullScore = scores.number('null', row); // the score by chance alone
  return [
    text('model', 'model'),
    text('layer', 'layer'),
    ['depth', whole(scores.number('depth', row))],
    text('with layer', 'other'),
    text('data', 'data'),
    text('transformation', 'transform'),
    text('parameter', 'parameter'),
    text('variant', 'variant'),
    text('factor', 'factor'),
    [scores.text('statistic', row), value.filter(Boolean).join(' ')],
    ['null', nullScore === null ? '' : number(nullScore)],
    ['n', whole(scores.number('n', row))],
    ['trial', trial === -1 ? 'all' : trial ? String(trial) : ''],
    text('warning', 'warning'),
  ];
}
