// Numbers and names for readers. Numbers have the format of the Go program, internal/report/text.go.

/** A number with about three decimals; a dash for null, an undefined value. */
export function number(v: number | null): string {
  if (v === null) return '–';
  const size = Math.abs(v);
  if (size >= 1e9) return v.toExponential(3);
  if (size >= 1000 || (size >= 10 && Number.isInteger(v))) return count(Math.round(v));
  if (size >= 100) return v.toFixed(1);
  if (size >= 10) return v.toFixed(2);
  if (size >= 0.0005 || v === 0) return v.toFixed(3);
  return v.toExponential(1);
}

export function interval(low: number | null, high: number | null): string {
  return low === null || high === null ? '' : `[${number(low)}, ${number(high)}]`;
}

/** A whole number with thousands separators. */
export function count(n: number): string {
  return n.toLocaleString('en');
}

/** A name of at most length characters, without PyTorch's _output_0 and then its middle. */
export function shorten(name: string, length: number): string {
  if (name.length <= length) return name;
  const core = name.replace(/_output_0$/, '');
  if (core.length <= length) return core;
  const head = Math.floor((length - 1) / 2);
  return core.slice(0, head) + '…' + core.slice(core.length - (length - 1 - head));
}

export function capital(text: string): string {
  return /^.[A-Z]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1); // not mAP
}
