// The data of a report page, and tables that give the fields of a row. The types of the JSON are
// those of ../../data.go.

import type { Measure, Packed, PackedTable } from './generated';

export type * from './generated';

/** The name of a field of scores, or of another table, that charts show. */
export type Field = string;

/** The colours of a heat map: equally spaced values, with colours of tiles and of text on them. */
export type ColourScale = Packed['scales'][string];

/** How far a row summarises others, as report.Level does. */
export const Shown = { detail: 0, trials: 1, overview: 2 };

/** A table gives the fields of a row by its index: '' or null if it has no such column. */
export class Table {
  private sections?: Map<string, number[]>;

  constructor(readonly table: PackedTable) {}

  text(name: string, row: number): string {
    const column = this.table.texts[name];
    return column ? column.values[column.codes.length ? column.codes[row] : 0] : '';
  }

  number(name: string, row: number): number | null {
    const column = this.table.numbers[name];
    return column ? column[column.length === 1 ? 0 : row] : null;
  }

  /** The value of Shown of a row. */
  shown(_row: number): number {
    return Shown.overview;
  }

  has(name: string): boolean {
    return name in this.table.texts;
  }

  /** All texts of a column, in order of first appearance among all rows. */
  values(name: string): string[] {
    return this.table.texts[name]?.values ?? [];
  }

  /** The different texts of a column among some rows, in order of first appearance. */
  distinct(name: string, rows: number[]): string[] {
    return [...new Set(rows.map((row) => this.text(name, row)))];
  }

  /** Whether a column has several values among rows. */
  varies(name: string, rows: number[]): boolean {
    return rows.some((row) => this.text(name, row) !== this.text(name, rows[0]));
  }

  /** The indices of all rows, by the key of their section, or by measure without such a column. */
  bySection(): Map<string, number[]> {
    if (!this.sections) {
      this.sections = new Map();
      const of = this.has('section') ? 'section' : 'measure';
      for (let row = 0; row < this.table.rows; row++) {
        const key = this.text(of, row),
          rows = this.sections.get(key);
        if (rows) rows.push(row);
        else this.sections.set(key, [row]);
      }
    }
    return this.sections;
  }
}

/** The table of scores of a report, with all other data of the page. */
export class Scores extends Table {
  readonly tables: Record<string, Table>;
  private readonly tags: Map<string, Map<string, string>>;

  constructor(readonly packed: Packed) {
    super(packed);
    this.tables = { scores: this };
    for (const [name, table] of Object.entries(packed.tables)) this.tables[name] = new Table(table);
    this.tags = new Map(packed.models.map((m) => [m.name, new Map(Object.entries(m.tags))]));
    for (const s of packed.statements ?? [])
      for (let i = 1; i < s.rows.length; i++) s.rows[i] += s.rows[i - 1];
  }

  get measures(): Measure[] {
    return this.packed.measures;
  }

  shown(row: number): number {
    return this.packed.shown[row];
  }

  /** The names of all tags that models carry. */
  tagNames(): string[] {
    return [...new Set(this.packed.models.flatMap((m) => Object.keys(m.tags)))].sort();
  }

  /** A tag of a model, '' where it has none. */
  tagOf(name: string, model: string): string {
    return this.tags.get(model)?.get(name) ?? '';
  }

  /** A tag of the model of a table's row; reference is the first model in scores of two. */
  tag(name: string, row: number, table: Table = this): string {
    return this.tagOf(name, table.text(table.has('reference') ? 'reference' : 'model', row));
  }
}

/** Groups items by a key, in order of first appearance. */
export function grouped<T>(items: T[], key: (item: T) => string): [string, T[]][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const k = key(item),
      group = groups.get(k);
    if (group) group.push(item);
    else groups.set(k, [item]);
  }
  return [...groups];
}
