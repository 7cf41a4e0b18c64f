package report

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// number writes a value with three decimals; large and whole ones with fewer, and "–" for no number.
func number(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case size >= 1e9:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case size >= 1000 || size >= 10 && v == math.Trunc(v):
		return count(int(math.Round(v)))
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

// interval writes "[0.905, 0.919]", or "" where there is none.
func interval(low, high float64) string {
	if math.IsNaN(low) || math.IsNaN(high) {
		return ""
	}
	return "[" + number(low) + ", " + number(high) + "]"
}

// count writes an integer with separators: 12,000.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes "1 model", "3 models".
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// printable replaces what would steer a terminal or hide in a page (control characters, and the marks that reverse
// the direction of text) by "?".
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, s)
}

// exported ends the name of nearly every tensor that PyTorch exports, so it tells nothing.
const exported = "_output_0"

// shorten brings a name to width cells. It gives up the suffix of exported tensors, then the middle, since names of
// layers tell themselves apart at both ends: "/layer1/…/Relu_1".
func shorten(s string, width int) string {
	s = printable(s)
	if ansi.StringWidth(s) <= width {
		return s
	}
	s = strings.TrimSuffix(s, exported)
	w := ansi.StringWidth(s)
	if w <= width {
		return s
	}
	head := ansi.Truncate(s, (width-1)/2, "")
	for cut := w - (width - 1 - ansi.StringWidth(head)); ; cut++ { // a character of two cells may sit across the cut, or one that joins its neighbour
		if short := head + "…" + ansi.TruncateLeft(s, cut, ""); cut >= w || ansi.StringWidth(short) <= width {
			return short
		}
	}
}

// folded breaks a text between its words into lines of at most width cells. Names stay whole, hyphens and all, but for those that are
// longer than a line.
func folded(text string, width int) []string {
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
			pieces := strings.Split(ansi.Wrap(line, width, "/"), "\n")
			lines = append(lines, pieces[:len(pieces)-1]...)
			line = pieces[len(pieces)-1]
		}
	}
	return append(lines, line)
}

// some writes the first items: "a, b", or "a, b, …" where there are more than most.
func some(items []string, most int) string {
	if len(items) > most {
		items = append(items[:most:most], "…")
	}
	return strings.Join(items, ", ")
}
