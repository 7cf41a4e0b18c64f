package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/noether-ml/noether/internal/report"
)

// alignPoints pads numbers to one width, with their decimal points below each other.
func alignPoints(numbers []string) []string {
	point := func(text string) int {
		if at := strings.IndexAny(text, ".e"); at >= 0 {
			return at
		}
		return ansi.StringWidth(text) // not len(text): the dash of a missing number has 3 bytes
	}
	before, after := 0, 0
	for _, n := range numbers {
		before, after = max(before, point(n)), max(after, ansi.StringWidth(n)-point(n))
	}
	out := make([]string, len(numbers))
	for i, n := range numbers {
		at := point(n)
		out[i] = strings.Repeat(" ", before-at) + n + strings.Repeat(" ", after-ansi.StringWidth(n)+at)
	}
	return out
}

// A textTable is a table of texts and numbers. Widths are in columns of the terminal.
type textTable struct {
	header []string
	rows   [][]string
}

// align aligns columns at their decimal points, and their headings to the right.
func (t *textTable) align(columns ...int) {
	for _, c := range columns {
		numbers := make([]string, len(t.rows))
		for i, row := range t.rows {
			numbers[i] = row[c]
		}
		for i, text := range alignPoints(numbers) {
			t.rows[i][c] = text
			if i == 0 {
				t.header[c] = fmt.Sprintf("%*s", ansi.StringWidth(text), t.header[c])
			}
		}
	}
}

func (t *textTable) widths() []int {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, text := range row {
			widths[i] = max(widths[i], ansi.StringWidth(text))
		}
	}
	return widths
}

// fits reports whether the columns side by side fit a width; 0 is no limit.
func (t *textTable) fits(width int) bool {
	total := -2 // there is no gap after the last column
	for _, w := range t.widths() {
		total += w + 2
	}
	return width <= 0 || total <= width
}

// write writes the texts of movable columns below their row, shortened in the middle, if the table
// is wider than width. A width of 0 is no limit.
func (t *textTable) write(width int, movable ...int) string {
	for _, row := range append([][]string{t.header}, t.rows...) {
		for c, text := range row {
			row[c] = report.Printable(text)
		}
	}
	widths, below := t.widths(), !t.fits(width)
	var b strings.Builder
	for i, row := range append([][]string{t.header}, t.rows...) {
		line := ""
		var moved []string
		for c, text := range row {
			if below && slices.Contains(movable, c) {
				moved = append(moved, text)
				continue
			}
			line += text + strings.Repeat(" ", widths[c]-ansi.StringWidth(text)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if below && i > 0 {
			b.WriteString("  " + report.Shorten(strings.Join(moved, ": "), width-2) + "\n")
		}
	}
	return b.String()
}

// printFolded prints a line, folded to a width; 0 is no limit.
func printFolded(w io.Writer, width int, format string, args ...any) {
	lines := []string{fmt.Sprintf(format, args...)}
	if width > 0 {
		lines = report.Fold(lines[0], width)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}
