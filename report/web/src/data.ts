// The scores of a page: columns in, rows out. It mirrors pack.go.

interface TextColumn {
  values: string[];
  codes: number[]; // empty where all rows have the first value
}

export interface Statistic {
  name: string;
  title: string;
  about: string;
  range: [number | null, number | null];
  direction: number;
}

/** Which end of a statistic is more invariant. */
export const Direction = { neutral: 0, higher: 1, lower: 2 };

export interface Measure {
  name: string;
  layered: boolean;
  statistics: Statistic[];
}

export interface Packed {
  rows: number;
  texts: Record<TextName, TextColumn>;
  numbers: Record<NumberName, (number | null)[]>;
  shown: number[];
  measures: Measure[];
}

export type TextName =
  | 'model' | 'layer' | 'other' | 'data' | 'transform' | 'parameter' | 'measure' | 'variant' | 'factor' | 'statistic' | 'warning';
export type NumberName = 'depth' | 'otherDepth' | 'trial' | 'value' | 'low' | 'high' | 'null' | 'n';

/** How far a row stands for others. */
export const Shown = { detail: 0, trials: 1, overview: 2 };

/** Scores gives the fields of a row by its number. */
export class Scores {
  constructor(private readonly packed: Packed) {}

  get length(): number {
    return this.packed.rows;
  }

  get measures(): Measure[] {
    return this.packed.measures;
  }

  text(name: TextName, row: number): string {
    const column = this.packed.texts[name];
    return column.values[column.codes.length ? column.codes[row] : 0];
  }

  number(name: NumberName, row: number): number | null {
    return this.packed.numbers[name][row];
  }

  shown(row: number): number {
    return this.packed.shown[row];
  }

  /** All texts of a column, in order of first appearance among all rows. */
  values(name: TextName): string[] {
    return this.packed.texts[name].values;
  }

  /** The rows that satisfy a condition. */
  where(condition: (row: number) => boolean): number[] {
    const rows: number[] = [];
    for (let row = 0; row < this.length; row++) if (condition(row)) rows.push(row);
    return rows;
  }

  /** The different texts of a column among some rows, in order of first appearance. */
  distinct(name: TextName, rows: number[]): string[] {
    return [...new Set(rows.map((row) => this.text(name, row)))];
  }
}
