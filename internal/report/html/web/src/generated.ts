// The types of the page's data, whose fields the types of the same JSON in Go explain: see
// ../../data.go. Written by a test, types_test.go.

export interface Axis {
  field: string;
  end?: string;
  title: string;
  percent?: boolean;
  free?: boolean;
}

export interface ByClass {
  class: number;
  n: number;
  right: number;
  mean: number;
}

export interface Chart {
  name: string;
  title: string;
  mark: 'line' | 'bar' | 'tile' | 'step';
  table: string;
  x: Axis;
  y: Axis;
  relative?: Axis;
  relativeFirst?: boolean;
  colour: string[] | null;
  spread: string[] | null;
  sides?: Sides[];
  titled: string;
  untitled: string;
  wide?: boolean;
  common?: boolean;
  legend?: string;
  null?: string;
  reading: ReadingPart[];
  statements: string;
  texts?: number;
}

export interface ColumnTitle {
  name: string;
  title: string;
}

export interface ContactSheet {
  title: string;
  caption: string;
  alt: string;
  measure: string;
  model: string;
  sheet?: Sheet;
  width: number;
  height: number;
  png: string;
}

export interface CurvePanel {
  section: string;
  statistic: string;
  title: string;
}

export interface FieldLabel {
  title: string;
  empty?: string;
}

export interface LinePoint {
  x: number;
  at: number;
  low: number;
  high: number;
}

export interface Look {
  colour: number;
  marker: string;
  dashes: number[];
}

export interface MapChannel {
  channel: number;
  low: number;
  high: number;
  error: number;
}

export interface MapLayer {
  layer: string;
  depth: number;
  height: number;
  width: number;
  channels: MapChannel[];
}

export interface MapSheet {
  model: string;
  data: string;
  transform: string;
  parameter: string;
  measure: string;
  sample: number;
  name: string;
  has_input: boolean;
  layers: MapLayer[] | null;
  tile: SheetTile;
  type: string;
  image: string;
}

export interface Matrix {
  section: string;
  statistic: string;
  title: string;
  about: string;
  meaning: string;
  toward: string;
  lower: boolean;
  layer: boolean;
  data: string;
  across: string;
  null: string;
  low: number;
  high: number;
  models: string[];
  columns: string[];
  cells: MatrixCell[];
  clean: string[];
  cleanName: string;
}

export interface MatrixCell {
  model: number;
  column: number;
  row: number;
  shade: number;
  chance: boolean;
  curve?: number[];
}

export interface Measure {
  name: string;
  title: string;
  question: string;
  between?: string;
  reading: string;
  level: string;
  resampled?: string;
  chart?: string;
  probes?: boolean;
  statistics: Statistic[];
  key: string;
  layered: boolean;
  toward: Record<string, string>;
  colours: Record<string, Record<string, { unit: boolean; signed: boolean; stops: number[]; colours: string[]; inks: string[] }>>;
  charts: Chart[] | null;
}

export interface Model {
  name: string;
  tags: Record<string, string>;
}

export interface NetworkGraph {
  model: string;
  names: string[];
  tensors: string[];
  ops: TextColumn;
  groups: number[];
  reads: number[][];
}

export interface Packed {
  rows: number;
  texts: Record<string, TextColumn>;
  numbers: Record<string, (number | null)[]>;
  columns?: ColumnTitle[];
  order?: string[];
  shown: number[];
  tables: Record<string, PackedTable>;
  fields: Record<string, FieldLabel>;
  looks: Look[];
  notices: Record<string, string>;
  measures: Measure[];
  models: Model[];
  statements: Statement[] | null;
  relations: Relation[] | null;
  pictures: ContactSheet[] | null;
  matrices: Matrix[] | null;
  curves: CurvePanel[] | null;
  samples: SheetValue[] | null;
  transforms: Record<string, string>;
  sheets: SampleSheet[] | null;
  scales: Record<string, { unit: boolean; signed: boolean; stops: number[]; colours: string[]; inks: string[] }>;
  networks: NetworkGraph[] | null;
  maps: MapSheet[] | null;
}

export interface PackedTable {
  rows: number;
  texts: Record<string, TextColumn>;
  numbers: Record<string, (number | null)[]>;
  columns?: ColumnTitle[];
  order?: string[];
}

export interface Parting {
  a: number;
  b: number;
  counts: number[];
  samples: number[];
}

export interface Projection {
  model: string;
  layer: string;
  depth: number;
  views: ProjectionView[];
}

export interface ProjectionView {
  clean: [number, number][];
  moved: [number, number][];
}

export interface ReadingPart {
  text: string;
  when?: string;
}

export interface Relation {
  score: string;
  name: string;
  by: 'model' | 'data';
  of: string;
  chart: Scatter;
  text: string;
}

export interface SampleSheet {
  data: string;
  transform: string;
  parameters: string[];
  of: number;
  measure: string;
  statistic: string;
  title: string;
  lower: boolean;
  classes: string[];
  samples: SheetSample[];
  models: SheetModel[];
  partings?: Parting[];
  projected?: SheetSample[];
  projections?: Projection[];
  tile?: SheetTile;
  sound?: SheetSound;
  type: string;
  image?: string;
}

export interface Scatter {
  title: string;
  x: string;
  y: string;
  left: number;
  right: number;
  low: number;
  high: number;
  ticks?: Tick[];
  points: ScatterPoint[];
  line?: LinePoint[];
}

export interface ScatterPoint {
  label: string;
  group?: string;
  unit?: string;
  x: number;
  y: number;
  n: number;
  at: number;
  left: number;
  right: number;
  low: number;
  high: number;
}

export interface Sheet {
  data: string;
  transform: string;
  parameters: string[];
  samples: number[];
  gap: number;
}

export interface SheetModel {
  model: string;
  clean?: number[];
  confidence?: number[];
  views: SheetView[];
  most: number[];
  least: number[];
  fails?: number[];
  right: number;
  labelled: number;
  by_class: ByClass[] | null;
  confusion?: [number, number, number][];
}

export interface SheetSample {
  index: number;
  name: string;
  label: number;
}

export interface SheetSound {
  rate: number;
  length: number;
  lines: number[];
}

export interface SheetTile {
  width: number;
  height: number;
  right: number;
  down: number;
}

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

export interface SheetView {
  moved?: number[];
  confidence?: number[];
  value: number[];
  mean: number;
  changed: number;
  failed: number;
  by_class: ByClass[] | null;
  confusion?: [number, number, number][];
}

export interface Sides {
  down: string;
  across?: string;
}

export interface Statement {
  kind: string;
  text: string;
  weight: number;
  rows: number[];
}

export interface Statistic {
  name: string;
  title: string;
  about: string;
  range: [number | null, number | null];
  unit?: string;
  direction?: 'higher' | 'lower';
  null?: string;
  directional?: boolean;
  untransformed?: boolean;
  per_sample?: boolean;
  per_unit?: boolean;
}

export interface TextColumn {
  values: string[];
  codes: number[];
}

export interface Tick {
  at: number;
  label: string;
}
