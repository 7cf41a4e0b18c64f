// The series of a chart: the values of one dimension, such as the models or the values of a tag.
// The look of a series is the same in every chart of a report.

import type { Field, Look, Scores, Table } from './data';
import { grey } from './palette';

/** A field of a table, or `tag:NAME` for a tag of the models. */
export type Dimension = Field;

/** The title of a dimension for readers. */
export function dimensionTitle(scores: Scores, dimension: Dimension): string {
  return dimension.startsWith('tag:')
    ? dimension.slice(4)
    : (scores.packed.fields[dimension]?.title ?? dimension);
}

/** The largest number of series that have a colour each. */
export const coloursUpTo = 8;

export class Series {
  /** The values of the dimension, one for each series. */
  readonly values: string[];
  /** More series than there are colours: one is highlighted, and the others are grey. */
  readonly crowded: boolean;
  /** The value of the series that is highlighted in that case. */
  readonly highlight: string;
  private readonly tag?: string;

  constructor(
    private readonly scores: Scores, // of the report
    readonly dimension: Dimension,
    private readonly table: Table = scores, // that of the chart
    highlighted = '',
  ) {
    if (dimension.startsWith('tag:')) {
      this.tag = dimension.slice(4);
      this.values = [
        ...new Set(scores.packed.models.map((m) => scores.tagOf(this.tag!, m.name))),
      ];
    } else {
      this.values = [...(scores.has(dimension) ? scores : table).values(dimension)];
    }
    if (dimension === 'parameter') this.values.sort(byNumber);
    this.crowded = this.values.length > coloursUpTo;
    this.highlight = this.values.includes(highlighted) ? highlighted : (this.values[0] ?? '');
  }

  /** The series that a row of its table belongs to. */
  of(row: number): string {
    return this.tag === undefined
      ? this.table.text(this.dimension, row)
      : this.scores.tag(this.tag, row, this.table);
  }

  /** How the series of a value is drawn. */
  look(value: string): Look {
    return this.lookAt(Math.max(0, this.values.indexOf(value)));
  }

  lookAt(index: number): Look {
    const { looks } = this.scores.packed;
    if (!this.crowded) return looks[index];
    const chosen = this.values[index] === this.highlight;
    return { ...looks[0], colour: chosen ? looks[0].colour : grey };
  }

  label(value: string): string {
    return labelOf(this.scores, this.dimension, value);
  }
}

/** The label of a value for readers: without _output_0, of PyTorch's export, and without class=. */
export function labelOf(scores: Scores, field: Field, value: string): string {
  const text =
    field === 'layer' || field === 'other'
      ? value.replace(/_output_0$/, '')
      : field === 'factor'
        ? value.replace(/^class=/, '')
        : value;
  return text || (scores.packed.fields[field]?.empty ?? 'none');
}

/** Compares texts for sorting: numbers by size, before texts that are not numbers. */
export function byNumber(a: string, b: string): number {
  const x = parameter(a),
    y = parameter(b);
  if (typeof x === 'number' && typeof y === 'number') return x - y;
  return Number(typeof x === 'string') - Number(typeof y === 'string');
}

/** A parameter as a number where its text is one. */
export function parameter(text: string): number | string {
  const v = Number(text);
  return text.trim() === '' || Number.isNaN(v) ? text : v;
}
