// Tables as comma-separated values, RFC 4180.

export function csv(rows: (string | number | null)[][]): string {
  return rows.map((row) => row.map(cell).join(',') + '\r\n').join('');
}

function cell(value: string | number | null): string {
  const text = value === null ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
