// The data of a report page: the types of its JSON, which ../../data.go writes, and tables that
// give the fields of a row.

import type { TileSheet } from './tiles';

interface TextColumn {
  values: string[]; // the distinct texts
  codes: number[]; // of each row, an index into values; empty if all rows have the first
}

export interface Statistic {
  name: string;
  title: string;
  about: string; // what it is, in a few sentences
  range: [number | null, number | null]; // null where there is no bound
  direction?: Direction;
  unit?: string;
  untransformed?: boolean; // the same under every transformation
}

/** Which end of a statistic is better, if one is. */
export type Direction = 'higher' | 'lower';

export interface Measure {
  name: string;
  key: string; // of its section of the page: the name, or NAME-between for pairs of models
  layered: boolean; // its scores are of layers that a reader may compare
  toward: Record<string, string>; // by statistic: what a higher or a lower value means
  colours: Record<string, Record<string, ColourScale>>; // by table (see Chart) and statistic
  charts: Chart[] | null; // the first is shown first
  probes?: boolean; // variants are kinds of probes, and factors stand side by side
  statistics: Statistic[];
}

export interface Model {
  name: string;
  tags: Record<string, string>; // of the study file, such as family: resnet
}

/** A sample of a sheet. */
export interface SheetSample {
  index: number;
  name: string;
  label: number; // a class, -1 if unknown
}

/** Samples that a transformation changes most and least. See scores/samplesheet.go. */
export interface SampleSheet extends TileSheet {
  data: string;
  transform: string;
  parameters: string[];
  of: number; // number of samples among which these were chosen
  measure: string;
  statistic: string;
  lower: boolean; // a lower value means a larger change
  title: string; // of the statistic
  classes: string[] | null;
  samples: SheetSample[];
  models: SheetModel[];
  // The transformed samples that models[a] classifies correctly and models[b] does not: their
  // number under each value of the parameter, and the indices of those on the sheet.
  partings?: { a: number; b: number; counts: number[]; samples: number[] }[];
  projected?: SheetSample[]; // the samples of projections
  // Positions in the plane of the first two principal components of a layer: of each sample x
  // (clean) and of T(x) (moved).
  projections?: {
    model: string;
    layer: string;
    depth: number;
    views: { clean: [number, number][]; moved: [number, number][] }[];
  }[];
}

/** Counts of predictions over all samples. */
interface Counts {
  by_class: ByClass[] | null;
  confusion?: [number, number, number][]; // label, predicted class, number of samples
}

/** The predictions of a model for the samples of a sheet. */
export interface SheetModel extends Counts {
  model: string;
  clean?: number[]; // predicted class of each sample as it is
  confidence?: number[]; // probability of that class
  views: SheetView[]; // under each value of the parameter
  most: number[]; // indices of the samples that change most
  least: number[];
  fails?: number[]; // indices of the samples that are classified correctly only as they are
  right: number; // number of samples that are classified correctly as they are
  labelled: number; // number of samples with a label
}

/** The predictions under one value of the parameter. */
export interface SheetView extends Counts {
  moved?: number[]; // predicted class of each transformed sample
  confidence?: number[];
  value: number[]; // of the sheet's statistic, for each sample
  mean: number; // of the values of all samples
  changed: number; // number of samples whose prediction changes
  failed: number; // number of samples that are classified correctly only as they are
}

/** The samples of a class. */
export interface ByClass {
  class: number;
  n: number;
  right: number; // number of correct predictions
  mean: number; // of the values of the sheet's statistic
}

/** Feature maps of one sample. See scores/mapsheet.go. */
export interface MapSheet extends TileSheet {
  model: string;
  data: string;
  transform: string;
  parameter: string;
  measure: string;
  sample: number; // index in the data set
  name: string; // of the sample
  has_input: boolean; // the first row of tiles shows x and T(x)
  layers:
    | {
        layer: string;
        depth: number;
        height: number;
        width: number;
        // low, high: the values drawn black and white; error: the norm of f(T(x)) - T f(x), divided
        // by that of T f(x), where f(x) is the feature map of x
        channels: { channel: number; low: number; high: number; error: number }[];
      }[]
    | null;
}

/** The operations of a model between input and output, by column. See report.Network. */
export interface NetworkGraph {
  model: string;
  names: string[]; // of groups of operations, each drawn as one node
  tensors: string[]; // names of the outputs of operations
  ops: TextColumn; // ONNX operators
  groups: number[]; // of each operation, the index of its group
  reads: number[][]; // of each operation, the indices of those whose output it reads
}

/** The name of a field of scores, or of another table, that charts show. */
export type Field = string;

/** A kind of chart: its mark, its fields and all its texts. See internal/report/chart.go. */
export interface Chart {
  name: string;
  title: string;
  mark: 'line' | 'bar' | 'tile' | 'step'; // tile: heat map; step: histogram
  // bins: of histograms; ranks: of the units of a layer; steps: of tuning curves
  table: 'scores' | 'bins' | 'ranks' | 'steps';
  x: Axis;
  y: Axis;
  relative?: Axis; // horizontal axis of relative depth, 0 to 1
  relativeFirst?: boolean; // depth is relative unless the reader chooses otherwise
  colour: Field[] | null; // fields for colours, in order of preference
  spread: Field[] | null; // fields that the axes show, which neither colour nor divide panels
  sides?: Sides[]; // fields for the axes, in order of preference
  titled: string; // title of a panel, if fields divide the chart into panels
  untitled: string; // title of the only panel
  wide?: boolean; // a panel has the full width of the page
  common?: boolean; // panels share the range of values
  legend?: 'page' | 'chart'; // one for the page, or one in each panel
  null?: string; // the legend's note on the null
  reading: { text: string; when?: string }[]; // how to read the chart; see internal/report/readings.go
  statements: 'curve' | 'extremes' | 'text'; // kind of those below the chart; text: of the table
  texts?: number; // maximum number of sentences of the table
}

/** An axis of a chart. See internal/report/chart.go. */
export interface Axis {
  field: Field;
  end?: Field; // if a mark spans an interval, its end
  title: string;
  percent?: boolean; // labels are percentages
  free?: boolean; // the range need not include 0
}

/** The fields of the vertical and of the horizontal axis of bars and tiles. */
export interface Sides {
  down: Field;
  across?: Field;
}

/** The colours of a heat map: equally spaced values, with colours of tiles and of text on them. */
export interface ColourScale {
  unit: boolean; // the statistic's range is 0 to 1
  signed: boolean; // there are values of both signs, and colours diverge from 0
  stops: number[]; // the values
  colours: string[]; // of tiles
  inks: string[]; // of text on tiles
}

/** How a series is drawn: the index of its colour, a marker, and dashes. See internal/report/palette.go. */
export interface Look {
  colour: number;
  marker: string;
  dashes: number[]; // lengths of line and gap in turn, in pixels
}

/** The relation of a score to accuracy, with its chart. */
export interface Relation {
  score: string; // MEASURE.STATISTIC@TRANSFORM
  name: string; // of the score, for readers
  by: 'model' | 'data'; // what a point is
  of: string; // the data set that all models share, or the model that all data sets share
  chart: Scatter;
  text: string; // how to read the chart, and how well the score predicts accuracy
}

/** A chart of points with a fitted line. See internal/report/scatter.go. */
export interface Scatter {
  title: string;
  x: string;
  y: string;
  left: number; // range of the horizontal axis
  right: number;
  low: number; // range of the vertical axis
  high: number;
  ticks: { at: number; label: string }[];
  points: ScatterPoint[];
  line?: { x: number; at: number; low: number; high: number }[]; // low, high: confidence band
}

/** A point with the ends of its error bars, which equal its position where there are none. */
export interface ScatterPoint {
  label: string;
  x: number; // the score
  y: number; // the accuracy
  n: number; // number of samples of the accuracy; 0: unknown
  at: number; // position on the vertical axis, which may be on the logit scale
  left: number;
  right: number;
  low: number;
  high: number;
}

/** A sentence about some rows, shown below a chart of them. See internal/report/statements.go. */
export interface Statement {
  kind: 'curve' | 'gap' | 'extremes'; // gap: where two curves differ most
  text: string;
  weight: number; // how much the values change; the largest are shown first
  // Indices of rows. In the JSON: the first index, then the differences between successive ones.
  rows: number[];
}

/** One statistic of all models, by transformation, for the first screen. See internal/report/matrix.go. */
export interface Matrix {
  section: string; // key of its section
  statistic: string;
  title: string; // of the statistic
  about: string; // description of the statistic
  meaning: string; // what its values mean, one sentence
  toward: string; // what a higher or a lower value means
  lower: boolean; // lower is better
  layer: boolean; // the scores are of the deepest layer of each model
  data: string;
  across: Field; // the field that the columns show
  null: string; // what the null is; empty if there is none
  low: number; // range of the scale of values
  high: number;
  models: string[];
  columns: string[];
  cells: MatrixCell[];
}

/** The value of a statistic for one sample on a contact sheet. */
export interface SheetValue {
  model: string;
  data: string;
  transform: string;
  parameter: string;
  measure: string;
  statistic: string;
  sample: number;
  value: number;
}

/** A score of a matrix. See internal/report/matrix.go. */
export interface MatrixCell {
  model: number; // index into models
  column: number; // index into columns
  row: number; // index of the score in the table of scores
  shade: number; // of the colour: 0 at the null or the worse end of the range, 1 at the better end
  chance: boolean; // no better than the null
}

/** An image of the run folder; sheet describes it if it shows samples and their transforms. */
export interface ContactSheet {
  title: string;
  caption: string;
  alt: string;
  measure: string;
  model: string;
  width: number;
  height: number;
  png: string; // base64
  // gap: pixels between the images
  sheet?: { data: string; transform: string; parameters: string[]; samples: number[]; gap: number };
}

/** A table stored by column. */
export interface PackedTable {
  rows: number;
  texts: Record<string, TextColumn>;
  numbers: Record<string, (number | null)[]>; // one number if all rows have the same
  columns?: { name: string; title: string }[]; // the columns that readers see
  // Names of the parts of the ranges of parameters (field "part"), from the lowest to the highest.
  order?: string[];
}

/** All data of a page: the table of scores, and what else is drawn. */
export interface Packed extends PackedTable {
  shown: number[]; // of each row, a value of Shown
  tables: Record<string, PackedTable>; // those of Chart.table except scores
  fields: Record<Field, { title: string; empty?: string }>; // empty: text in place of ''
  looks: Look[]; // of series, by index
  notices: Record<'empty' | 'hidden' | 'none' | 'images', string>; // where there is nothing to see
  measures: Measure[];
  models: Model[];
  statements: Statement[] | null;
  relations: Relation[] | null;
  pictures: ContactSheet[] | null;
  matrices: Matrix[] | null;
  // The statistics whose curves over depth the first screen shows.
  curves: { section: string; statistic: string; title: string }[] | null;
  samples: SheetValue[] | null; // values of the samples on contact sheets
  transforms: Record<string, string>; // titles of their parameters, by name
  sheets: SampleSheet[] | null;
  // Colours of the heat map of classes: drop for losses of accuracy, share for effective
  // invariance.
  scales: Record<'drop' | 'share', ColourScale>;
  networks: NetworkGraph[] | null;
  maps: MapSheet[] | null;
}

/**
 * How far a row summarises others, as report.Level does: detail is a row that another one
 * summarises, trials is over all trials at one value of the parameter, and overview is also over
 * all values, or over each one if there is no mean over all.
 */
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
