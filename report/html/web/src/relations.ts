// A score against accuracy: models on one data set, or data sets for one model, with the line
// through them.

import { chooser, segments } from './controls';
import type { Relation, Scores } from './data';
import { element } from './dom';
import { Figure } from './figure';
import type { Filter } from './filters';
import { capital, count, number, shorten } from './format';
import { swatch } from './palette';
import { Series, type Dimension } from './series';
import type { State } from './state';
import type { Source } from './table';
import { colour, shape, tip, type Spec } from './vega';

const views = { model: 'models', data: 'data sets' };

export class Relations {
  private readonly all: Relation[];
  private figure?: Figure;

  constructor(
    private readonly root: HTMLElement,
    private readonly scores: Scores,
    private readonly state: State,
    private readonly filter: Filter,
    private readonly changed: () => void,
  ) {
    this.all = scores.packed.relations ?? [];
  }

  private part(name: string): HTMLElement {
    return this.root.querySelector<HTMLElement>(`.${name}`)!;
  }

  private choose(name: string, value: string): void {
    this.state.set(`relation.${name}`, value);
    this.update();
    this.part('controls')
      .querySelector<HTMLElement>(`select[name="${name}"], input[value="${CSS.escape(value)}"]`)
      ?.focus();
  }

  update(): void {
    const by =
      (['model', 'data'] as const).find(
        (b) => b === this.state.get('relation.points') && this.all.some((r) => r.by === b),
      ) ?? this.all[0].by;
    const of = this.all.filter((r) => r.by === by);
    const sets = [...new Set(of.map((r) => r.of))],
      set = sets.includes(this.state.get('relation.of')) ? this.state.get('relation.of') : sets[0];
    const inSet = of.filter((r) => r.of === set);
    const relation = inSet.find((r) => nameOf(r) === this.state.get('relation.score')) ?? inSet[0];
    const tags = by === 'model' ? this.scores.tagNames() : [];
    const dimensions: Dimension[] = [by, ...tags.map((t): Dimension => `tag:${t}`)];
    const preferred = tags.find((t) => {
      const n = new Set(relation.points.map((p) => this.scores.tagOf(t, p.label))).size;
      return n > 1 && n <= 6;
    });
    const dimension =
      dimensions.find((d) => d === this.state.get('relation.by')) ??
      (preferred ? (`tag:${preferred}` as Dimension) : by);
    const series = new Series(this.scores, dimension);
    const controls: HTMLElement[] = [];
    if (new Set(this.all.map((r) => r.by)).size > 1)
      controls.push(
        segments(
          'Points',
          Object.entries(views).map(([value, title]) => ({ value, title })),
          by,
          (v) => this.choose('points', v),
        ),
      );
    const lists: [string, string, { value: string; title: string }[], string][] = [
      [
        'score',
        'Score',
        inSet.map((r) => ({
          value: nameOf(r),
          title: `${r.x.title}${r.x.transform ? `, ${r.x.transform}` : ''}`,
        })),
        nameOf(relation),
      ],
      [
        'of',
        by === 'model' ? 'Data' : 'Model',
        sets.map((s) => ({ value: s, title: shorten(s, 60) })),
        set,
      ],
      [
        'by',
        'Colour',
        dimensions.map((d) => ({ value: d, title: d === by ? 'none' : d.slice(4) })),
        dimension,
      ],
    ];
    for (const [name, title, options, chosen] of lists)
      if (options.length > 1)
        controls.push(chooser(title, name, options, chosen, (v) => this.choose(name, v)));
    this.part('controls').replaceChildren(...controls);
    this.draw(relation, series, dimension === by);
  }

  private draw(relation: Relation, series: Series, plain: boolean): void {
    const group = (label: string) =>
      plain ? '' : this.scores.tagOf(series.dimension.slice(4), label);
    const shown = relation.points.filter((p) => this.filter.passes({ [relation.by]: p.label }));
    this.legend(relation, series, plain, group);
    this.figure?.remove();
    const under = relation.x.transform ? ` under ${relation.x.transform}` : '';
    const points =
      relation.by === 'model' ? `models on ${relation.of}` : `data sets for ${relation.of}`;
    const title = `${capital(relation.x.title)}${under} against accuracy, ${points}`;
    this.figure = new Figure({
      title,
      description: title,
      wide: true,
      build: () => ({
        spec: shown.length === 0 ? undefined : scatter(relation, shown, series, plain, group),
        text: relation.text,
      }),
      describe: (id) => {
        const p = shown[id];
        return [
          [relation.by === 'model' ? 'model' : 'data', p.label],
          [plain ? '' : series.dimension.slice(4), group(p.label)],
          [relation.x.statistic, number(p.x)],
          ['accuracy', number(p.y)],
          ['n', count(p.n)],
        ];
      },
      data: () => sourceOf(title, relation, shown, group),
    });
    this.part('charts').replaceChildren(this.figure.root);
  }

  private legend(
    relation: Relation,
    series: Series,
    plain: boolean,
    group: (label: string) => string,
  ): void {
    const present = new Set(relation.points.map((p) => group(p.label))),
      hidden = this.filter.hidden(series.dimension);
    const list = element('ul');
    if (!plain) {
      for (const value of series.values.filter((v) => present.has(v))) {
        const on = !hidden.has(value);
        const button = element(
          'button',
          { type: 'button', 'aria-pressed': String(on) },
          swatch(series.look(value)),
          element('span', {}, shorten(series.label(value), 40)),
        );
        button.addEventListener('click', () => {
          const place = [...list.querySelectorAll('button')].indexOf(button);
          this.filter.hide(series.dimension, value, on);
          this.changed();
          this.part('legend').querySelectorAll('button')[place]?.focus();
        });
        list.append(element('li', {}, button));
      }
    }
    this.part('legend').replaceChildren(list);
  }
}

function nameOf(r: Relation): string {
  return `${r.x.measure}.${r.x.statistic}@${r.x.transform}`;
}

const spread = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999];
const leastTicks = 4;

// ticks are proportions between two: spread over the logit scale, or in even steps where few of
// those fit.
function ticks(low: number, high: number): number[] {
  const within = spread.filter((t) => t >= low && t <= high);
  if (within.length >= leastTicks) return within;
  const step =
    [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001].find((s) => (high - low) / s >= leastTicks) ??
    0.0005;
  return Array.from(
    { length: Math.floor(high / step) - Math.ceil(low / step) + 1 },
    (_, i) => (Math.ceil(low / step) + i) * step,
  );
}

/** The logarithm of the odds of a proportion of n, kept finite at 0 and 1. */
function logit(p: number, n: number): number {
  const q = Number.isFinite(n) ? (p * n + 0.5) / (n + 1) : p;
  return Math.log(q / (1 - q));
}

function scatter(
  r: Relation,
  shown: Relation['points'],
  series: Series,
  plain: boolean,
  group: (label: string) => string,
): Spec {
  const points = shown.map((p, id) => ({
    id,
    series: plain ? series.values[0] : group(p.label),
    x: p.x,
    y: logit(p.y, p.n),
  }));
  const line = (r.fit?.line ?? []).map(([x, y, low, high]) => ({
    x,
    y: logit(y, Infinity),
    low: low === null ? null : logit(low, Infinity),
    high: high === null ? null : logit(high, Infinity),
  }));
  const heights = [...points.map((p) => p.y), ...line.map((p) => p.y)];
  const margin = Math.max(0.05, 0.1 * (Math.max(...heights) - Math.min(...heights)));
  const low = Math.min(...heights) - margin,
    high = Math.max(...heights) + margin;
  const share = (v: number) => 1 / (1 + Math.exp(-v));
  const x = {
    field: 'x',
    type: 'quantitative',
    title: r.x.title,
    scale: { zero: false, nice: false, padding: 14 },
    axis: { tickCount: 6, grid: false },
  };
  const y = {
    field: 'y',
    type: 'quantitative',
    title: 'accuracy (logit scale)',
    scale: { domain: [low, high], nice: false, zero: false, clamp: true },
    axis: {
      values: ticks(share(low), share(high)).map((t) => logit(t, Infinity)),
      labelExpr: "format(1 / (1 + exp(-datum.value)), '.3~p')",
      domain: false,
      ticks: false,
    },
  };
  return {
    width: 'container',
    height: 340,
    autosize: { type: 'fit-x', contains: 'padding' },
    layer: [
      ...(line.some((p) => p.low !== null)
        ? [
            {
              data: { values: line },
              mark: { type: 'area', opacity: 0.13, color: 'var(--muted)' },
              encoding: { x, y: { ...y, field: 'low', stack: null }, y2: { field: 'high' } },
            },
          ]
        : []),
      ...(line.length
        ? [
            {
              data: { values: line },
              mark: { type: 'line', strokeWidth: 1.6, color: 'var(--muted)' },
              encoding: { x, y },
            },
          ]
        : []),
      {
        data: { values: points },
        mark: { type: 'point', filled: true, size: 75, opacity: 0.9 },
        encoding: { x, y, color: colour(series), shape: shape(series), tooltip: tip },
      },
    ],
  } as unknown as Spec;
}

function sourceOf(
  title: string,
  r: Relation,
  shown: Relation['points'],
  group: (label: string) => string,
): Source {
  const figure = (name: string, get: (i: number) => number) => ({
    title: name,
    numeric: true,
    cell: (i: number) => number(get(i)),
    key: get,
  });
  const text = (name: string, get: (i: number) => string) => ({
    title: name,
    numeric: false,
    cell: get,
    key: get,
  });
  return {
    title: `Data of the chart: ${title}`,
    rows: shown.map((_, i) => i),
    columns: [
      text(r.by, (i) => shown[i].label),
      ...(shown.some((p) => group(p.label)) ? [text('group', (i) => group(shown[i].label))] : []),
      figure(r.x.statistic, (i) => shown[i].x),
      figure('accuracy', (i) => shown[i].y),
      figure('n', (i) => shown[i].n),
    ],
    csv: (rows) => [
      [r.by, 'group', `${nameOf(r)}`, 'accuracy.clean', 'n'],
      ...rows.map((i) => [
        shown[i].label,
        group(shown[i].label),
        shown[i].x,
        shown[i].y,
        shown[i].n,
      ]),
    ],
  };
}
