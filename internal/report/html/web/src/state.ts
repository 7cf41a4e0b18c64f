// The reader's choices are kept in the address after the #, so that a view can be bookmarked and
// sent to others. A choice is a key with a value or a list of values, written as a URL query.

type Listener = () => void;

export class State {
  private values = new URLSearchParams();
  private readonly listeners: Listener[] = [];

  constructor() {
    this.read();
    window.addEventListener('hashchange', () => {
      this.read();
      for (const listener of this.listeners) listener();
    });
  }

  /** Calls back when the address was changed from outside. */
  onArrival(listener: Listener): void {
    this.listeners.push(listener);
  }

  get(key: string): string {
    return this.values.get(key) ?? '';
  }

  /** Sets a choice; '' removes it. */
  set(key: string, value: string): void {
    if (value === this.get(key)) return;
    if (value === '') this.values.delete(key);
    else this.values.set(key, value);
    this.write();
  }

  list(key: string): string[] {
    return this.values.getAll(key);
  }

  setList(key: string, values: string[]): void {
    this.values.delete(key);
    for (const value of values) this.values.append(key, value);
    this.write();
  }

  /** Whether there is a choice whose key satisfies a condition. */
  has(condition: (key: string) => boolean): boolean {
    return [...this.values.keys()].some(condition);
  }

  /** Removes all choices whose key satisfies a condition. */
  clear(condition: (key: string) => boolean): void {
    for (const key of [...this.values.keys()]) if (condition(key)) this.values.delete(key);
    this.write();
  }

  private read(): void {
    const text = window.location.hash.slice(1);
    // a plain anchor, without "=", holds no choices
    this.values = new URLSearchParams(text.includes('=') ? text : '');
  }

  private write(): void {
    const text = this.values.toString();
    window.history.replaceState(
      null,
      '',
      text ? `#${text}` : window.location.pathname + window.location.search,
    );
  }
}
