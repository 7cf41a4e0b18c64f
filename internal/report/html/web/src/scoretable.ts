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
    return { title, rows, columns: columnsOf(t, rows), csv: (rows) => csvOf(t, rows, csvColumns) };
  return {
    title,
    rows,
    columns: shown.map(({ name, title }) => columnOf(t, title, name)),
    csv: (rows) => csvOf(t, rows, shown.map(({ name }) => [name, name])),
  };
}

const integer = (v: number | null) => (v === null || v < 0 ? '' : count(v));

// The formats of numbers other than values. A trial of -1 is the mean over trials.
const formats: Record<string, (v: number | null) => string> = {
  trial: (v) => (v === -1 ? 'all' : integer(v)),
  depth: integer,
  n: integer,
  null: (v) => (v === null ? '' : number(v)),
};

function textOf(t: Rows, name: string, row: number): string {
  return t.has(name) ? t.text(name, row) : (formats[name] ?? number)(t.number(name, row));
}

function valueOf(t: Rows, name: string, row: number): string | number | null {
  return t.has(name) ? t.text(name, row) : t.number(name, row);
}

const columnOf = (t: Rows, title: string, name: string): Column => ({
  title,
  numeric: !t.has(name),
  cell: (row) => textOf(t, name, row),
  key: (row) => valueOf(t, name, row),
});

/**
 * The table of a measure: the summarising rows, or every row if the reader ticks a box. detailed is
 * the number of all rows, or 0 if all of them summarise.
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
// then those that have values (filled).
function columnsOf(scores: Rows, rows: number[]): Column[] {
  const column = (title: string, name = title) => columnOf(scores, title, name);
  const varying = [
    column('model'),
    column('data'),
    column('transform'),
    column('value of parameter', 'parameter'),
    column('trial'),
    column('variant'),
    column(factorTitle(scores, rows), 'factor'),
    column('depth'),
    column('layer'),
    column('other layer', 'other'),
    column('statistic'),
  ].filter((c) => rows.length > 0 && rows.some((row) => c.key(row) !== c.key(rows[0])));
  const interval: Column = {
    title: '95 % interval',
    numeric: true,
    cell: (row) => intervalOf(scores, row),
    key: (row) => {
      const low = scores.number('low', row),
        high = scores.number('high', row);
      return low === null || high === null ? null : high - low;
    },
  };
  const filled = [interval, column('null'), column('n'), { ...column('warning'), prose: true }].filter((c) =>
    rows.some((row) => c.cell(row) !== ''),
  );
  return [...varying, column('value'), ...filled];
}

const intervalOf = (scores: Rows, row: number) =>
  interval(scores.number('low', row), scores.number('high', row));

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
  ...['data', 'transform', 'parameter', 'trial', 'measure', 'variant', 'factor', 'statistic', 'value']
    .concat('low', 'high', 'null', 'n', 'warning')
    .map((name): [string, string] => [name, name]),
];

// csvOf returns the columns of rows. Depths of no layer, and trials of means, are empty.
function csvOf(t: Rows, rows: number[], columns: [string, string][]): (string | number | null)[][] {
  const field = (name: string, row: number) => {
    const v = valueOf(t, name, row);
    return (name === 'depth' || name === 'trial') && typeof v === 'number' && v < 0 ? null : v;
  };
  return [
    columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([, name]) => field(name, row))),
  ];
}

/** The fields of a row, for a tooltip. */
export function describe(scores: Rows, row: number): [string, string][] {
  const { columns } = scores.table;
  if (columns) return columns.map(({ name, title }) => [title, textOf(scores, name, row)]);
  const text = (title: string, name = title): [string, string] => [title, textOf(scores, name, row)];
  const value = [textOf(scores, 'value', row), intervalOf(scores, row)];
  return [
    text('model'),
    text('layer'),
    text('depth'),
    text('with layer', 'other'),
    text('data'),
    text('transformation', 'transform'),
    text('parameter'),
    text('variant'),
    text('factor'),
    [scores.text('statistic', row), value.filter(Boolean).join(' ')],
    text('null'),
    text('n'),
    ...(scores.number('trial', row) ? [text('trial')] : []), // not 0, the first
    text('warning'),
  ];
}
