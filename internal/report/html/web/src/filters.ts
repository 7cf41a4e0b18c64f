// What the whole report shows: which models, transformations, data, statistics and layers.

import type { Scores, Table } from './data';
import { button, element } from './dom';
import { shorten } from './format';
import { labelOf, type Dimension } from './series';
import type { State } from './state';

/**
 * Decides which rows are shown. A dimension is a column of the scores, such as model, or a tag of
 * models as tag:NAME. Its hidden values are kept in the page's address as hide.DIMENSION.
 */
export class Filter {
  constructor(
    private readonly scores: Scores,
    private readonly state: State,
  ) {}

  hidden(dimension: string): Set<string> {
    return new Set(this.state.list(`hide.${dimension}`));
  }

  hide(dimension: string, value: string, hidden: boolean): void {
    const now = this.hidden(dimension);
    if (hidden) now.add(value);
    else now.delete(value);
    this.state.setList(`hide.${dimension}`, [...now]);
  }

  /** The words of the search field for layers. */
  get layers(): string[] {
    return this.state.get('layers').toLowerCase().split(/\s+/).filter(Boolean);
  }

  /**
   * The rows of a table that are shown. A layer is shown if its name contains one of the words of
   * the search field. A statistic is hidden as SECTION.STATISTIC, where SECTION is the key of a
   * section of the report, which holds the scores of a measure. In a table without the column
   * section it is the name of the measure.
   */
  passing(rows: number[], table: Table = this.scores): number[] {
    const columns = ['model', 'transform', 'data', 'variant', 'factor', 'parameter']
      .map((name) => [name, this.hidden(name)] as const)
      .filter(([name, h]) => h.size > 0 && table.has(name));
    const tags = this.scores
      .tagNames()
      .map((name) => [name, this.hidden(`tag:${name}`)] as const)
      .filter(([, h]) => h.size > 0);
    const statistics = this.hidden('statistic'),
      layers = this.layers;
    if (columns.length + tags.length + statistics.size + layers.length === 0) return rows;
    return rows.filter(
      (row) =>
        columns.every(([name, hidden]) => !hidden.has(table.text(name, row))) &&
        tags.every(([name, hidden]) => !hidden.has(this.scores.tag(name, row, table))) &&
        !statistics.has(
          `${table.text(table.has('section') ? 'section' : 'measure', row)}.${table.text('statistic', row)}`,
        ) &&
        (layers.length === 0 ||
          table.text('layer', row) === '' ||
          layers.some((word) => table.text('layer', row).toLowerCase().includes(word))),
    );
  }

  /**
   * Whether something that is not a row, such as a plot, is shown. columns holds its model, layer
   * and so on, by dimension; '' where it has none.
   */
  passes(columns: Record<string, string>): boolean {
    const words = this.layers,
      layer = (columns.layer ?? '').toLowerCase();
    return (
      Object.entries(columns).every(
        ([name, value]) => value === '' || !this.hidden(name).has(value),
      ) &&
      this.scores
        .tagNames()
        .every(
          (t) =>
            !columns.model || !this.hidden(`tag:${t}`).has(this.scores.tagOf(t, columns.model)),
        ) &&
      (words.length === 0 || layer === '' || words.some((w) => layer.includes(w)))
    );
  }

  /** Whether a statistic is shown in the section with a key. */
  shows(section: string, statistic: string): boolean {
    return !this.hidden('statistic').has(`${section}.${statistic}`);
  }
}

/** The bar of filters above the measures. */
export class FilterBar {
  readonly root = element('div', {
    class: 'filters',
    role: 'group',
    'aria-label': 'Filters of the whole report',
  });

  constructor(
    private readonly scores: Scores,
    private readonly state: State,
    private readonly filter: Filter,
    private readonly changed: () => void,
  ) {
    document.addEventListener('click', (e) =>
      this.close((list) => !list.contains(e.target as Node)),
    );
    this.root.addEventListener('keydown', (e) => {
      if (e.key === 'Escape') this.close(() => true);
    });
    this.update();
  }

  // close closes the open lists for which matches returns true. If the focus is in one, its title
  // gets the focus.
  private close(matches: (list: HTMLDetailsElement) => boolean): void {
    for (const list of this.root.querySelectorAll<HTMLDetailsElement>('details[open]')) {
      if (!matches(list)) continue;
      if (list.contains(document.activeElement)) list.querySelector('summary')?.focus();
      list.open = false;
    }
  }

  /** Shows the current filters. Lists that are open stay open. */
  update(): void {
    const open = new Set(
      [...this.root.querySelectorAll<HTMLElement>('details[open]')].map((d) => d.dataset.filter),
    );
    const named = (field: string, title: string): [string, string, string[], (v: string) => string] =>
      [field, title, this.scores.values(field), (v) => shorten(labelOf(this.scores, field, v), 48)];
    const statistics = this.scores.measures.flatMap((m) => m.statistics.map((s) => `${m.key}.${s.name}`));
    const lists = [
      named('model', 'Models'),
      named('transform', 'Transformations'),
      named('data', 'Data'),
      ['statistic', 'Statistics', statistics, (v: string) => shorten(v, 64)] as ReturnType<typeof named>,
    ];
    const shown = lists.filter(([, , values]) => values.length > 1).map((l) => this.list(...l));
    for (const list of shown) if (open.has(list.dataset.filter)) list.open = true;
    const typing = this.root.querySelector('input[type=search]:focus') !== null;
    this.root.replaceChildren(...shown, ...this.layers(), ...this.reset());
    if (typing) this.root.querySelector<HTMLElement>('input[type=search]')?.focus();
    this.root.hidden = this.root.childElementCount === 0;
  }

  private list(
    dimension: string,
    title: string,
    values: string[],
    label: (v: string) => string,
  ): HTMLDetailsElement {
    const hidden = this.filter.hidden(dimension);
    const shown = values.filter((v) => !hidden.has(v)).length;
    const items = values.map((value) => {
      const box = element('input', { type: 'checkbox', value });
      box.checked = !hidden.has(value);
      box.addEventListener('change', () => this.hide(dimension, value, !box.checked));
      return element('label', {}, box, element('span', {}, label(value)));
    });
    const all = button(() => this.only(dimension, []), { class: 'quiet' }, 'All');
    const none = button(() => this.only(dimension, values), { class: 'quiet' }, 'None');
    const tally = shown === values.length ? 'all' : `${shown} of ${values.length}`;
    return element(
      'details',
      { 'data-filter': dimension },
      element('summary', {}, title, ' ', element('span', { class: 'tally' }, tally)),
      element(
        'div',
        { class: 'menu', role: 'group', 'aria-label': title },
        element('div', { class: 'all' }, all, none),
        ...items,
      ),
    );
  }

  private hide(dimension: Dimension | string, value: string, hidden: boolean): void {
    this.filter.hide(dimension, value, hidden);
    this.changed();
    [...this.root.querySelectorAll<HTMLInputElement>(`details[data-filter="${dimension}"] input`)]
      .find((i) => i.value === value)
      ?.focus();
  }

  // only hides the given values of a dimension, and no others.
  private only(dimension: string, hidden: string[]): void {
    this.state.setList(`hide.${dimension}`, hidden);
    this.changed();
    this.root.querySelector<HTMLElement>(`details[data-filter="${dimension}"] button`)?.focus();
  }

  // layers returns the search field for layers, if there are enough of them. It waits until typing
  // pauses for 150 ms before it filters.
  private layers(): HTMLElement[] {
    if (this.scores.values('layer').length < 3) return [];
    const existing = this.root.querySelector<HTMLInputElement>('input[type=search]');
    const input =
      existing ??
      element('input', {
        type: 'search',
        placeholder: 'Layers, such as layer1',
        'aria-label': 'Show layers whose name holds',
      });
    if (!existing) {
      let waiting = 0;
      input.addEventListener('input', () => {
        window.clearTimeout(waiting);
        waiting = window.setTimeout(() => {
          this.state.set('layers', input.value.trim());
          this.changed();
        }, 150);
      });
    }
    if (document.activeElement !== input) input.value = this.state.get('layers');
    return [input];
  }

  // reset returns the button that removes all filters, if there are any.
  private reset(): HTMLElement[] {
    if (!this.state.has((key) => key === 'layers' || key.startsWith('hide.'))) return [];
    const clear = () => {
      this.state.clear((key) => key === 'layers' || key.startsWith('hide.'));
      this.root.querySelector<HTMLInputElement>('input[type=search]')?.remove();
      this.changed();
      this.root.querySelector<HTMLElement>('summary, input')?.focus();
    };
    return [button(clear, {}, 'Show everything')];
  }
}
