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
  direction?: Direction;
}

/** Which end of a statistic is better, if one is. */
export type Direction = 'higher' | 'lower';

export interface Measure {
  name: string;
  layered: boolean;
  toward: Record<string, string>; // by statistic: what a higher or a lower value means
  chart?: string; // the kind of chart to show first, where the rows suit it
  probes?: boolean; // by probes, which its variants are; its factors stand side by side
  statistics: Statistic[];
}

export interface Model {
  name: string;
  tags: Record<string, string>;
}

/** How values are spread over samples or units: a histogram with bins of equal width. */
export interface Distribution {
  of: string;
  model: string;
  layer: string;
  depth: number;
  data: string;
  transform: string;
  parameter: string;
  measure: string;
  factor: string;
  statistic: string;
  ends: [number, number];
  counts: number[];
  mean: [number | null];
  text: string; // what it shows
  units: string; // what it shows with the other layers of its model
}

/** How a unit answers along the trajectory around the input that drives it most. */
export interface TuningCurve {
  model: string;
  layer: string;
  depth: number;
  data: string;
  transform: string;
  measure: string;
  factor: string;
  unit: number;
  threshold: [number | null];
  sign: number;
  amounts: (number | null)[];
  values: (number | null)[];
  text: string;
  firing: [number | null]; // the share of the trajectory on which the unit fires
}

/** Points of a score against accuracy, with the line through them. */
export interface Relation {
  x: { measure: string; statistic: string; transform: string; title: string };
  by: 'model' | 'data';
  of: string;
  points: { label: string; x: number; y: number; n: number }[];
  text: string;
  fit: {
    line: [number, number, number | null, number | null][]; // x, y, low, high
  } | null;
}

/** A sentence about some rows, for beneath a chart that shows them. */
export interface Statement {
  kind: 'curve' | 'gap' | 'extremes';
  text: string;
  weight: number; // how much happens in it
  rows: number[]; // the first, then the steps from each to the next, until unpacked
}

export interface ContactSheet {
  title: string;
  caption: string;
  alt: string;
  measure: string;
  model: string;
  width: number;
  height: number;
  png: string; // base64
}

export interface Packed {
  study: string;
  rows: number;
  texts: Record<TextName, TextColumn>;
  numbers: Record<NumberName, (number | null)[]>; // one number where all rows have the same
  shown: number[];
  measures: Measure[];
  models: Model[];
  statements: Statement[] | null;
  readings: Record<string, { text: string; when?: string }[]>;
  relations: Relation[] | null;
  distributions: Distribution[] | null;
  curves: TuningCurve[] | null;
  pictures: ContactSheet[] | null;
}

/**
 * A row's texts. `model` names the one model of the row or the pair that it compares; `from` and
 * `to` are the two of a pair.
 */
export type TextName =
  | 'model'
  | 'from'
  | 'to'
  | 'layer'
  | 'other'
  | 'data'
  | 'transform'
  | 'parameter'
  | 'measure'
  | 'variant'
  | 'factor'
  | 'statistic'
  | 'warning';
export type NumberName = 'depth' | 'otherDepth' | 'trial' | 'value' | 'low' | 'high' | 'null' | 'n';

/** How far a row stands for others. */
export const Shown = { detail: 0, trials: 1, overview: 2 };

/** Scores gives the fields of a row by its number. */
export class Scores {
  private deepest?: Map<string, number>;
  private tags?: Map<string, Map<string, string>>;

  constructor(readonly packed: Packed) {
    for (const s of packed.statements ?? [])
      for (let i = 1; i < s.rows.length; i++) s.rows[i] += s.rows[i - 1];
  }

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
    const column = this.packed.numbers[name];
    return column[column.length === 1 ? 0 : row];
  }

  shown(row: number): number {
    return this.packed.shown[row];
  }

  /** All texts of a column, in order of first appearance among all rows. */
  values(name: TextName): string[] {
    return this.packed.texts[name].values;
  }

  /** The different texts of a column among some rows, in order of first appearance. */
  distinct(name: TextName, rows: number[]): string[] {
    return [...new Set(rows.map((row) => this.text(name, row)))];
  }

  /** The rows of each measure, all of them. */
  byMeasure(): Map<string, number[]> {
    const all = new Map<string, number[]>(this.measures.map((m) => [m.name, []]));
    for (let row = 0; row < this.length; row++) all.get(this.text('measure', row))?.push(row);
    return all;
  }

  /** The depth of a row's layer as a share of that of the deepest layer measured of its model. */
  relativeDepth(row: number): number {
    if (!this.deepest) {
      this.deepest = new Map();
      for (let r = 0; r < this.length; r++) {
        const model = this.text('from', r);
        this.deepest.set(
          model,
          Math.max(this.deepest.get(model) ?? 0, this.number('depth', r) ?? 0),
        );
      }
    }
    return (
      (this.number('depth', row) ?? 0) / Math.max(1, this.deepest.get(this.text('from', row)) ?? 1)
    );
  }

  /** The names of all tags that models carry. */
  tagNames(): string[] {
    return [...new Set(this.packed.models.flatMap((m) => Object.keys(m.tags)))].sort();
  }

  /** A tag of a row's model, '' where it has none. */
  tag(name: string, row: number): string {
    return this.tagOf(name, this.text('from', row));
  }

  /** A tag of a model, '' where it has none. */
  tagOf(name: string, model: string): string {
    this.tags ??= new Map(this.packed.models.map((m) => [m.name, new Map(Object.entries(m.tags))]));
    return this.tags.get(model)?.get(name) ?? '';
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
