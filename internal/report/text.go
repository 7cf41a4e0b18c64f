package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/noether-ml/noether/internal/plural"
)

// Number formats a value with three decimals. From 10 on it has fewer, or none if it is whole.
// Values below 0.0005, and from 1e9 on, have an exponent. NaN is "–".
func Number(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case size >= 1e9:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case size >= 1000 || size >= 10 && v == math.Trunc(v):
		return Count(int(math.Round(v)))
	case size >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size >= 0.0005 || v == 0:
		return strconv.FormatFloat(v, 'f', 3, 64)
	default:
		return strconv.FormatFloat(v, 'e', 1, 64)
	}
}

// Interval formats an interval as "[0.905, 0.919]", or "" if there is none.
func Interval(low, high float64) string {
	if math.IsNaN(low) || math.IsNaN(high) {
		return ""
	}
	return "[" + Number(low) + ", " + Number(high) + "]"
}

// Count formats an integer with thousands separators: 12,000.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural formats a count with a noun: "1 model", "3 models".
func Plural(n int, noun string) string {
	return Count(n) + " " + plural.Noun(n, noun)
}

// Mebibytes formats a size in bytes as "12 MiB".
func Mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// Printable quotes characters that could control a terminal or mislead a reader (control
// characters, marks that change the text direction, and bytes that are no text), as strconv.Quote
// writes them: \x1b for the escape character.
func Printable(s string) string { return printable(s, "") }

// PrintableLines is Printable for text whose lines stay.
func PrintableLines(s string) string { return printable(s, "\n") }

func printable(s, except string) string {
	if !strings.ContainsFunc(s, misleading) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if misleading(r) && !strings.ContainsRune(except, r) {
			quoted := strconv.QuoteToASCII(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func misleading(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError
}

// exportSuffix is the suffix of nearly all tensor names in PyTorch exports.
const exportSuffix = "_output_0"

// Shorten shortens a name to at most width columns of a terminal. It removes the suffix of exported
// tensors, then the middle: "/layer1/…/Relu_1".
func Shorten(s string, width int) string {
	s = Printable(s)
	if ansi.StringWidth(s) <= width {
		return s
	}
	s = strings.TrimSuffix(s, exportSuffix)
	w := ansi.StringWidth(s)
	if w <= width {
		return s
	}
	head := ansi.Truncate(s, (width-1)/2, "")
	for cut := w - (width - 1 - ansi.StringWidth(head)); ; cut++ {
		if short := head + "…" + ansi.TruncateLeft(s, cut, ""); cut >= w || ansi.StringWidth(short) <= width {
			return short
		}
	}
}

// Fold breaks a text between words into lines of at most width columns of a terminal. Words are not
// broken, not even at hyphens, unless they are longer than a line.
func Fold(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case ansi.StringWidth(line+" "+word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		if ansi.StringWidth(line) > width {
			// Wrap puts lines without text before a wide character that does not fit, and leaves it.
			pieces := strings.Split(ansi.Hardwrap(ansi.Wrap(line, width, "/"), width, false), "\n")
			pieces = slices.DeleteFunc(pieces, func(p string) bool { return p == "" })
			lines = append(lines, pieces[:len(pieces)-1]...)
			line = pieces[len(pieces)-1]
		}
	}
	return append(lines, line)
}

// byNumber compares two strings as numbers, with non-numbers last.
func byNumber(a, b string) int {
	x, badX := strconv.ParseFloat(a, 64)
	y, badY := strconv.ParseFloat(b, 64)
	switch {
	case badX == nil && badY == nil:
		return cmp.Compare(x, y)
	case badX == nil:
		return -1
	case badY == nil:
		return 1
	}
	return 0
}
