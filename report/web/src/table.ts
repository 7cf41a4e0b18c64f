// A table of scores that sorts by any column, filters by text and shows a page at a time, so that 100,000 rows are as
// quick as ten.

import { Scores, Shown, type NumberName, type TextName } from './data';
import { element } from './dom';
import { count, interval, number } from './format';

interface Column {
  title: string;
  numeric: boolean;
  prose?: boolean; // sentences, which want room
  cell: (row: number) => string;
  key: (row: number) => string | number | null; // what it sorts by
}

const pageSize = 12;

export function table(scores: Scores, measure: string, title: string): HTMLElement {
  return new ScoreTable(scores, measure, title).root;
}

class ScoreTable {
  readonly root: HTMLElement;
  private readonly all: number[]; // the measure's rows
  private columns: Column[] = [];
  private rows: number[] = []; // those shown, sorted
  private page = 0;
  private details = false;
  private sought = '';
  private sorted?: { column: string; descending: boolean };

  private readonly head = element('thead');
  private readonly body = element('tbody');
  private readonly position = element('span', { 'aria-live': 'polite' });
  private readonly previous = element('button', { type: 'button' }, 'Previous');
  private readonly next = element('button', { type: 'button' }, 'Next');

  constructor(private readonly scores: Scores, measure: string, title: string) {
    this.all = scores.where((row) => scores.text('measure', row) === measure);
    this.root = element(
      'div', { class: 'score-table' },
      this.tools(title),
      element('div', { class: 'scroll', role: 'region', 'aria-label': `Scores: ${title}`, tabindex: '0' },
        element('table', {}, element('caption', {}, `Scores: ${title}`), this.head, this.body)),
      element('div', { class: 'pager' }, this.position, this.previous, this.next),
    );
    this.previous.addEventListener('click', () => this.turn(-1));
    this.next.addEventListener('click', () => this.turn(1));
    this.select();
  }

  private tools(title: string): HTMLElement {
    const filter = element('input', { type: 'search', placeholder: 'Filter rows', 'aria-label': `Filter the scores: ${title}` });
    filter.addEventListener('input', () => {
      this.sought = filter.value.toLowerCase();
      this.select();
    });
    const tools = element('div', { class: 'tools' }, filter);
    if (this.all.some((row) => !this.inOverview(row))) {
      const every = element('input', { type: 'checkbox' });
      every.addEventListener('change', () => {
        this.details = every.checked;
        this.select();
      });
      tools.append(element('label', {}, every, `Every value, trial and class (${count(this.all.length)} rows)`));
    }
    return tools;
  }

  private inOverview(row: number): boolean {
    return this.scores.shown(row) === Shown.overview && this.scores.text('factor', row) === '';
  }

  // select takes the rows that are asked for and starts at the first page.
  private select(): void {
    const wanted = this.details ? this.all : this.all.filter((row) => this.inOverview(row));
    this.columns = columnsOf(this.scores, wanted);
    const words = this.sought.split(/\s+/).filter(Boolean);
    this.rows = wanted.filter((row) => {
      const text = words.length ? this.columns.map((c) => c.cell(row)).join(' ').toLowerCase() : '';
      return words.every((word) => text.includes(word));
    });
    this.sort();
    this.page = 0;
    this.show();
  }

  private sort(): void {
    const by = this.columns.find((c) => c.title === this.sorted?.column);
    if (!by) return;
    const sign = this.sorted!.descending ? -1 : 1;
    const keys = new Map(this.rows.map((row) => [row, by.key(row)]));
    this.rows.sort((a, b) => {
      const x = keys.get(a)!, y = keys.get(b)!;
      if (x === null || y === null) return Number(x === null) - Number(y === null) || a - b; // what has no number comes last
      return sign * (typeof x === 'number' ? x - (y as number) : order.compare(x, y as string)) || a - b;
    });
  }

  private show(): void {
    this.head.replaceChildren(element('tr', {}, ...this.columns.map((c) => this.header(c))));
    const start = this.page * pageSize;
    const rows = this.rows.slice(start, start + pageSize);
    this.body.replaceChildren(...rows.map((row) =>
      element('tr', {}, ...this.columns.map((c) => element('td', look(c), c.cell(row))))));
    this.position.textContent = rows.length
      ? `${count(start + 1)} to ${count(start + rows.length)} of ${count(this.rows.length)}`
      : 'No rows match.';
    this.previous.disabled = start === 0;
    this.next.disabled = start + pageSize >= this.rows.length;
    this.previous.hidden = this.next.hidden = this.rows.length <= pageSize;
  }

  private header(column: Column): HTMLElement {
    const active = this.sorted?.column === column.title;
    const button = element('button', { type: 'button' }, column.title);
    button.addEventListener('click', () => {
      this.sorted = { column: column.title, descending: active ? !this.sorted!.descending : false };
      this.sort();
      this.page = 0;
      this.show();
      const place = this.columns.indexOf(column);
      this.head.querySelectorAll('button')[place].focus();
    });
    const sort = !active ? 'none' : this.sorted!.descending ? 'descending' : 'ascending';
    return element('th', { scope: 'col', 'aria-sort': sort, ...look(column) }, button);
  }

  private turn(pages: number): void {
    this.page += pages;
    this.show();
  }
}

function look(column: Column): Record<string, string> {
  return column.numeric ? { class: 'n' } : column.prose ? { class: 'prose' } : {};
}

const order = new Intl.Collator('en', { numeric: true });

// columnsOf leaves out the columns that say the same in every row.
function columnsOf(scores: Scores, rows: number[]): Column[] {
  const text = (title: string, name: TextName): Column => ({
    title, numeric: false, cell: (row) => scores.text(name, row), key: (row) => scores.text(name, row),
  });
  const figure = (title: string, name: NumberName, format: (v: number | null) => string): Column => ({
    title, numeric: true, cell: (row) => format(scores.number(name, row)), key: (row) => scores.number(name, row),
  });
  const integer = (v: number | null) => (v === null || v < 0 ? '' : count(v));
  const varying = [
    text('model', 'model'), text('data', 'data'), text('transform', 'transform'), text('value of parameter', 'parameter'),
    figure('trial', 'trial', (v) => (v === -1 ? 'all' : integer(v))), text('variant', 'variant'), text('class', 'factor'),
    figure('depth', 'depth', integer), text('layer', 'layer'), text('other layer', 'other'), text('statistic', 'statistic'),
  ].filter((c) => rows.length > 0 && rows.some((row) => c.key(row) !== c.key(rows[0])));
  const filled = [
    {
      title: '95 % interval', numeric: true,
      cell: (row: number) => interval(scores.number('low', row), scores.number('high', row)),
      key: (row: number) => { const low = scores.number('low', row), high = scores.number('high', row); return low === null || high === null ? null : high - low; },
    },
    figure('null', 'null', (v) => (v === null ? '' : number(v))),
    figure('n', 'n', integer),
    { ...text('warning', 'warning'), prose: true },
  ].filter((c) => rows.some((row) => c.cell(row) !== ''));
  return [...varying, figure('value', 'value', number), ...filled];
}
