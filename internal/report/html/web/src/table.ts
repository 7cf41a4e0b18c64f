// A table that sorts by any column, filters by text and copies as CSV, a page of rows at a time.

import { csv } from './csv';
import { button, element } from './dom';
import { count, number } from './format';
import { copy, fileName, saveText } from './save';

export interface Column {
  title: string;
  numeric: boolean;
  prose?: boolean; // sentences, which need a wide column
  cell: (row: number) => string;
  key: (row: number) => string | number | null; // the value that rows are sorted by
}

/** What a table shows: rows by number, and the columns that format them. */
export interface Source {
  title: string;
  rows: number[];
  columns: Column[];
  csv: (rows: number[]) => (string | number | null)[][]; // with a line of headers
}

/** A column of a table of items: its title and value. whole: the number is shown with all digits. */
export type Field<T> = [title: string, value: (item: T) => string | number | null, whole?: boolean];

/** The fields of an item as text. */
export function textsOf<T>(fields: Field<T>[], item: T): [string, string][] {
  return fields.map(([title, value, whole]) => {
    const v = value(item);
    return [title, typeof v === 'number' && !whole ? number(v) : String(v ?? '')];
  });
}

export function tableOf<T>(title: string, items: T[], fields: Field<T>[]): Source {
  return {
    title,
    rows: items.map((_, i) => i),
    columns: fields.map((field) => ({
      title: field[0],
      numeric: items.some((item) => typeof field[1](item) === 'number'),
      cell: (i) => textsOf([field], items[i])[0][1],
      key: (i) => field[1](items[i]),
    })),
    csv: (rows) => [
      fields.map(([name]) => name),
      ...rows.map((i) => fields.map(([, value]) => value(items[i]))),
    ],
  };
}

/** The filter and the order that a reader has chosen for a table. */
export interface TableChoice {
  sought: string; // words that a row must contain
  // title of a column, with "-" before it for descending; "" for the order of the rows
  sort: string;
}

const pageSize = 12;
const order = new Intl.Collator('en', { numeric: true });

export class Table {
  readonly root: HTMLElement;
  readonly tools: HTMLElement;
  private rows: number[] = []; // those shown, sorted
  private page = 0;

  private readonly head = element('thead');
  private readonly body = element('tbody');
  private readonly position = element('span', { 'aria-live': 'polite' });
  private readonly previous = button(() => this.turn(-1), {}, 'Previous');
  private readonly next = button(() => this.turn(1), {}, 'Next');
  private readonly filter: HTMLInputElement;

  // chosen is called when the reader chooses another filter or order.
  constructor(
    private source: Source,
    private choice: TableChoice = { sought: '', sort: '' },
    private readonly chosen: (c: TableChoice) => void = () => {},
  ) {
    this.filter = element('input', {
      type: 'search',
      placeholder: 'Filter rows',
      'aria-label': `Filter: ${source.title}`,
    });
    this.filter.value = choice.sought;
    this.filter.addEventListener('input', () =>
      this.choose({ ...this.choice, sought: this.filter.value }),
    );
    this.tools = element('div', { class: 'tools' }, this.filter, ...this.exports());
    this.root = element(
      'div',
      { class: 'score-table' },
      this.tools,
      element(
        'div',
        { class: 'scroll', role: 'region', 'aria-label': source.title, tabindex: '0' },
        element('table', {}, element('caption', {}, source.title), this.head, this.body),
      ),
      element('div', { class: 'pager' }, this.position, this.previous, this.next),
    );
    this.select();
  }

  /** Replaces the rows and columns. */
  update(source: Source, choice: TableChoice = this.choice): void {
    this.source = source;
    this.choice = choice;
    if (this.filter.value !== choice.sought) this.filter.value = choice.sought;
    this.select();
  }

  private exports(): HTMLElement[] {
    const copyText = async () => {
      await copy(this.text());
      copyButton.textContent = `Copied ${count(this.rows.length)} rows`;
      setTimeout(() => {
        copyButton.textContent = 'Copy as CSV';
      }, 2500);
    };
    const copyButton = button(() => void copyText(), { class: 'quiet' }, 'Copy as CSV');
    const save = () => saveText(this.text(), `${fileName(this.source.title)}.csv`);
    return [copyButton, button(save, { class: 'quiet' }, 'Save CSV')];
  }

  private text(): string {
    return csv(this.source.csv(this.rows));
  }

  private choose(choice: TableChoice): void {
    this.choice = choice;
    this.chosen(choice);
    this.select();
  }

  // select takes the rows that contain all words of the filter, and shows the first page.
  private select(): void {
    const words = this.choice.sought.toLowerCase().split(/\s+/).filter(Boolean);
    const columns = this.source.columns;
    this.rows = this.source.rows.filter((row) => {
      const text = words.length
        ? columns
            .map((c) => c.cell(row))
            .join(' ')
            .toLowerCase()
        : '';
      return words.every((word) => text.includes(word));
    });
    this.sort();
    this.page = 0;
    this.show();
  }

  private sort(): void {
    const { title, descending } = this.sorted;
    const by = this.source.columns.find((c) => c.title === title);
    if (!by) return;
    const sign = descending ? -1 : 1;
    const keys = new Map(this.rows.map((row) => [row, by.key(row)]));
    this.rows.sort((a, b) => {
      const x = keys.get(a)!,
        y = keys.get(b)!;
      // rows without a value come last
      if (x === null || y === null) return Number(x === null) - Number(y === null) || a - b;
      return (
        sign * (typeof x === 'number' ? x - (y as number) : order.compare(x, y as string)) || a - b
      );
    });
  }

  private get sorted(): { title: string; descending: boolean } {
    const { sort } = this.choice;
    return { title: sort.replace(/^-/, ''), descending: sort.startsWith('-') };
  }

  private show(): void {
    this.head.replaceChildren(element('tr', {}, ...this.source.columns.map((c) => this.header(c))));
    const start = this.page * pageSize;
    const rows = this.rows.slice(start, start + pageSize);
    this.body.replaceChildren(
      ...rows.map((row) =>
        element(
          'tr',
          {},
          ...this.source.columns.map((c) => element('td', classOf(c), c.cell(row))),
        ),
      ),
    );
    this.position.textContent = rows.length
      ? `${count(start + 1)} to ${count(start + rows.length)} of ${count(this.rows.length)}`
      : 'No rows match.';
    this.previous.disabled = start === 0;
    this.next.disabled = start + pageSize >= this.rows.length;
    this.previous.hidden = this.next.hidden = this.rows.length <= pageSize;
  }

  private header(column: Column): HTMLElement {
    const { title, descending } = this.sorted;
    const active = title === column.title;
    const choose = () => {
      this.choose({ ...this.choice, sort: active && !descending ? `-${column.title}` : column.title });
      this.head.querySelectorAll('button')[this.source.columns.indexOf(column)].focus();
    };
    const sort = !active ? 'none' : descending ? 'descending' : 'ascending';
    const attributes = { scope: 'col', 'aria-sort': sort, ...classOf(column) };
    return element('th', attributes, button(choose, {}, column.title));
  }

  // turn goes forward by a number of pages, or back if it is negative.
  private turn(pages: number): void {
    this.page += pages;
    this.show();
  }
}

// classOf returns the CSS class of the cells of a column, as an attribute.
function classOf(column: Column): Record<string, string> {
  return column.numeric ? { class: 'n' } : column.prose ? { class: 'prose' } : {};
}
