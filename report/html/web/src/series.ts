// What the series of a chart are: models, transformations, the values of a tag, and so on; and how
// each looks, which is the same in every chart of a report.

import { Scores, type TextName } from './data';
import { look, type Look } from './palette';

/** A column that can tell series apart, or `tag:NAME` for a tag of the models. */
export type Dimension =
  | 'model'
  | 'transform'
  | 'parameter'
  | 'data'
  | 'variant'
  | 'factor'
  | `tag:${string}`;

export const dimensionTitles: Record<string, string> = {
  model: 'model',
  transform: 'transformation',
  parameter: 'value of the parameter',
  data: 'data',
  variant: 'variant',
  factor: 'factor',
  layer: 'layer',
};

export function dimensionTitle(dimension: Dimension): string {
  return dimension.startsWith('tag:') ? dimension.slice(4) : dimensionTitles[dimension];
}

export class Series {
  readonly values: string[];
  private readonly tag?: string;

  constructor(
    private readonly scores: Scores,
    readonly dimension: Dimension,
  ) {
    if (dimension.startsWith('tag:')) {
      this.tag = dimension.slice(4);
      this.values = [
        ...new Set(
          scores.packed.models.map((m) =>
            Object.hasOwn(m.tags, this.tag!) ? m.tags[this.tag!] : '',
          ),
        ),
      ];
    } else {
      this.values = [...scores.values(dimension as TextName)];
    }
    if (dimension === 'parameter') this.values.sort(byNumber);
  }

  /** The series that a row belongs to. */
  of(row: number): string {
    return this.tag === undefined
      ? this.scores.text(this.dimension as TextName, row)
      : this.scores.tag(this.tag, row);
  }

  look(value: string): Look {
    return look(Math.max(0, this.values.indexOf(value)));
  }

  label(value: string): string {
    return labelOf(this.dimension, value);
  }
}

/** What a reader is told that a value is called. */
export function labelOf(dimension: Dimension, value: string): string {
  if (dimension === 'factor') return value.replace(/^class=/, '') || 'all samples';
  if (value !== '') return value;
  return dimension === 'parameter'
    ? 'mean'
    : dimension === 'variant'
      ? 'default'
      : dimension === 'transform'
        ? 'untransformed'
        : 'none';
}

/** Numbers by size, before what is no number. */
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
