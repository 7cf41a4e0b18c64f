// Controls for a choice between options: rows of buttons for a few, drop-down lists for many.

import { element } from './dom';

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
