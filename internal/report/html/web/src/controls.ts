// Controls for a choice between options: rows of buttons for a few, drop-down lists for many.

import type { Scores } from './data';
import { element } from './dom';
import type { Figure } from './figure';
import type { Filter } from './filters';
import { shorten } from './format';
import type { State } from './state';

export interface Option {
  value: string;
  title: string;
  about?: string; // shown when the pointer rests on it
}

let rows = 0; // number of rows of buttons so far, of which each needs a name of its own

/** A row of buttons of which one is pressed. The reader's choice calls choose. */
export function segments(
  title: string,
  options: Option[],
  chosen: string,
  choose: (value: string) => void,
): HTMLElement {
  const name = `choice-${rows++}`;
  const set = element('fieldset', { class: 'segments' }, element('legend', {}, title));
  for (const o of options) {
    const input = element('input', { type: 'radio', name, value: o.value });
    input.checked = o.value === chosen;
    input.addEventListener('change', () => choose(o.value));
    set.append(
      element('label', o.about ? { title: o.about } : {}, input, element('span', {}, o.title)),
    );
  }
  return set;
}

/** A drop-down list. The reader's choice calls choose. */
export function chooser(
  title: string,
  name: string,
  options: Option[],
  chosen: string,
  choose: (value: string) => void,
): HTMLElement {
  const select = element('select', { name });
  for (const o of options) select.append(element('option', { value: o.value }, o.title));
  select.value = chosen;
  select.addEventListener('change', () => choose(select.value));
  return element('label', { class: 'chooser' }, title, select);
}

/** A part of the page, whose controls keep the reader's choices in the address as KEY.CONTROL. */
export abstract class Part {
  protected readonly figuresIn: string = 'charts'; // class name of the element with the figures
  private figures: Figure[] = []; // those that are shown

  constructor(
    protected readonly root: HTMLElement,
    protected readonly scores: Scores,
    protected readonly state: State,
    protected readonly filter: Filter,
    private readonly key: string,
    private readonly prefix = `${key}-`, // of the names of lists
  ) {}

  /** Draws the part according to the filters and the choices. */
  abstract update(): void;

  /** Draws the part again after a choice in it. */
  protected redraw(): void {
    this.update();
  }

  protected part(name: string): HTMLElement {
    return this.root.querySelector<HTMLElement>(`.${name}`)!;
  }

  /** Shows figures, and what follows them, in place of those before. */
  protected show(figures: Figure[], ...more: (Node | string)[]): void {
    for (const figure of this.figures) figure.remove();
    this.figures = figures;
    this.part(this.figuresIn).replaceChildren(...figures.map((f) => f.root), ...more);
  }

  /** Shows a text in place of controls and figures. */
  protected showNothing(text: string): void {
    this.part('controls').replaceChildren();
    this.show([], text);
  }

  /** The choice in a control; '' if there is none. */
  protected asked(control: string): string {
    return this.state.get(`${this.key}.${control}`);
  }

  /** Stores a choice, and keeps the focus on the control, which is drawn anew. */
  protected choose(control: string, value: string, stored = value): void {
    this.state.set(`${this.key}.${control}`, stored);
    this.redraw();
    this.root
      .querySelector<HTMLElement>(
        `select[name="${this.prefix}${control}"], .controls input[value="${CSS.escape(value)}"]`,
      )
      ?.focus();
  }

  /** A drop-down list for a choice between values, or values and titles; none for a single one. */
  protected list(
    control: string,
    title: string,
    options: (string | [value: string, title: string])[],
    chosen: string,
  ): HTMLElement[] {
    if (options.length < 2) return [];
    const all = options.map((o) => (typeof o === 'string' ? [o, o] : o));
    return [
      chooser(
        title,
        this.prefix + control,
        all.map(([value, text]) => ({ value, title: shorten(text, 60) })),
        chosen,
        (v) => this.choose(control, v),
      ),
    ];
  }

  /** A row of buttons for a choice. Of the value unset, the address holds nothing. */
  protected buttons(
    control: string,
    title: string,
    options: [value: string, title: string, about?: string][],
    chosen: string,
    unset = '',
  ): HTMLElement[] {
    if (options.length < 2) return [];
    const all = options.map(([value, text, about]) => ({ value, title: text, about }));
    return [segments(title, all, chosen, (v) => this.choose(control, v, v === unset ? '' : v))];
  }

  /** Opens folded content if one of some choices is made, and updates it when it is opened. */
  protected folds(details: HTMLDetailsElement, controls: string[]): void {
    details.open ||= controls.some((c) => this.asked(c) !== '');
    details.addEventListener('toggle', () => this.update());
  }
}
