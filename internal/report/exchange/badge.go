package exchange

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// WriteBadge writes a badge for a README, as SVG: a statistic and its value under the
// transformation where it is worst. The rows must be of one model and one statistic, of the
// overview.
func (r *Run) WriteBadge(w io.Writer) error {
	rows, _, err := r.shown()
	if err != nil {
		return err
	}
	if _, err := one(rows, "a badge"); err != nil {
		return err
	}
	titles := r.titles()
	of := titles.Statistic(&rows[0])
	var names []string
	for i := range rows {
		name := rows[i].Measure + "." + rows[i].Statistic
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	for _, name := range names[1:] {
		if name != names[0] {
			return fmt.Errorf("a badge shows one statistic, and the scores have several, such as %s and %s: choose one with --measure and --statistic", names[0], name)
		}
	}
	if len(rows) > 1 && of.Direction == measure.Neutral {
		return fmt.Errorf("of %d scores of %s none is the worst, since neither end is better: choose one with --transform or --layer", len(rows), names[0])
	}
	worst := &rows[0]
	for i := range rows {
		if of.Direction == measure.Lower && rows[i].Value > worst.Value || of.Direction == measure.Higher && rows[i].Value < worst.Value {
			worst = &rows[i]
		}
	}
	value := report.Number(worst.Value)
	if len(rows) > 1 {
		value += " (worst: " + strings.TrimSpace(worst.Transform+" "+worst.Layer) + ")"
	} else if worst.Transform != "" {
		value += " (" + worst.Transform + ")"
	}
	_, err = io.WriteString(w, badge(of.Title, report.Printable(value), colour(of, worst)))
	return err
}

// colour is that of the place of a score in the range of its statistic: green at the better end,
// red at the worse one, and blue if there is no such place.
func colour(s measure.StatisticDescriptor, row *scores.Row) string {
	if s.Direction == measure.Neutral || !s.Range.Bounded() || s.Range.High <= s.Range.Low {
		return "#1f6feb"
	}
	place := (row.Value - s.Range.Low) / (s.Range.High - s.Range.Low)
	if s.Direction == measure.Lower {
		place = 1 - place
	}
	switch {
	case place >= 0.9:
		return "#2b7a3d"
	case place >= 0.75:
		return "#5b7a1e"
	case place >= 0.5:
		return "#8a6100"
	}
	return "#b3261e"
}

// badge draws two fields of text. Readers' fonts differ, so textLength fits the text to its field.
func badge(label, value, colour string) string {
	width := func(text string) int { return int(math.Ceil(6.6*float64(utf8.RuneCountInString(text)))) + 12 }
	left, right := width(label), width(value)
	label, value = html.EscapeString(label), html.EscapeString(value)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%s: %s">`+"\n", left+right, label, value)
	fmt.Fprintf(&b, `<title>%s: %s</title>`+"\n", label, value)
	fmt.Fprintf(&b, `<clipPath id="r"><rect width="%d" height="20" rx="3"/></clipPath>`+"\n", left+right)
	fmt.Fprintf(&b, `<g clip-path="url(#r)"><rect width="%d" height="20" fill="#444"/><rect x="%d" width="%d" height="20" fill="%s"/></g>`+"\n", left, left, right, colour)
	b.WriteString(`<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">` + "\n")
	fmt.Fprintf(&b, `<text x="6" y="14" textLength="%d" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n", left-12, label)
	fmt.Fprintf(&b, `<text x="%d" y="14" textLength="%d" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n", left+6, right-12, value)
	b.WriteString("</g></svg>\n")
	return b.String()
}
