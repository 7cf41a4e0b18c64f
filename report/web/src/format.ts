// Numbers as people read them, as text.go writes them.

export function number(v: number | null): string {
  if (v === null) return '–';
  const size = Math.abs(v);
  if (Number.isInteger(v) && size >= 10 && size < 1e9) return count(v);
  if (size !== 0 && size < 0.0005) return v.toExponential(1);
  if (size < 10) return v.toFixed(3);
  if (size < 100) return v.toFixed(2);
  if (size < 10000) return v.toFixed(1);
  return String(Number(v.toPrecision(4)));
}

export function interval(low: number | null, high: number | null): string {
  return low === null || high === null ? '' : `[${number(low)}, ${number(high)}]`;
}

export function count(n: number): string {
  return n.toLocaleString('en');
}

/** The name of a layer without the suffix that exporters add to every tensor, its middle cut out where it is long. */
export function shorten(name: string, length: number): string {
  if (name.length <= length) return name;
  const core = name.replace(/_output_0$/, '');
  if (core.length <= length) return core;
  const head = Math.floor((length - 1) / 2);
  return core.slice(0, head) + '…' + core.slice(core.length - (length - 1 - head));
}
