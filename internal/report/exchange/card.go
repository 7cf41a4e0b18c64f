package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/figure"
	"github.com/noether-ml/noether/internal/report/table"
)

// begin and end enclose the section in a model card, so that the next export replaces it.
const (
	begin = "<!-- noether: begin -->"
	end   = "<!-- noether: end -->"
)

// Card returns the section of a model card, in Markdown: what the report concludes, a table, and
// the picture of WritePicture if picture is not "" but its address. It ends in a line break.
func (r *Run) Card(picture string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## Invariance and equivariance\n\n", begin)
	t, err := table.Of(r.Rows, table.Options{Every: r.Every, Measures: r.Record.Measures})
	if err != nil {
		return "", err
	}
	found, layers := report.Conclusions(r.Rows, r.Record, r.Replicates)
	for _, s := range append(found, layers...) {
		b.WriteString("- " + report.Printable(s.String()) + "\n")
	}
	b.WriteString("\n")
	if err := t.Markdown(&b); err != nil {
		return "", err
	}
	if picture != "" {
		fmt.Fprintf(&b, "\n![Scores of each model under each transformation, with intervals](%s)\n", picture)
	}
	b.WriteString("\nValues are means over the values of a transformation, in brackets 95 % intervals.")
	for _, d := range r.Record.Data {
		fmt.Fprintf(&b, " %s: %s samples.", report.Printable(d.Name), report.Count(d.N))
	}
	fmt.Fprintf(&b, " Measured with [Noether](https://github.com/noether-ml/noether) %s", r.Record.Noether)
	if r.Record.Finished != nil {
		b.WriteString(" on " + r.Record.Finished.UTC().Format("2006-01-02"))
	}
	fmt.Fprintf(&b, "; seed %d.\n%s\n", r.Record.Seed, end)
	return b.String(), nil
}

// WritePicture writes the picture of a model card, as SVG: the first of the charts that the scores
// have.
func (r *Run) WritePicture(w io.Writer) error {
	var failed error
	for _, chart := range []figure.Chart{figure.Bars, figure.Depth} {
		f, err := figure.Draw(r.Rows, figure.Options{Chart: chart, Columns: 2, Run: r.Rows, Measures: r.Record.Measures, Every: r.Every})
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		var b bytes.Buffer
		if err := f.Write(&b, "svg"); err != nil {
			return err
		}
		_, err = w.Write(b.Bytes())
		return err
	}
	return fmt.Errorf("no picture of these scores: %w", failed)
}

// InCard returns the text of a model card with a section of Card in it: in place of an earlier one,
// else at the end. A mark without its other one is an error.
func InCard(card, section string) (string, error) {
	i, j := strings.Index(card, begin), strings.Index(card, end)
	switch {
	case i < 0 && j < 0:
		if card = strings.TrimRight(card, "\n"); card != "" {
			card += "\n\n"
		}
		return card + section, nil
	case i < 0 || j < i:
		return "", fmt.Errorf("the card has no pair of %s and %s: mend or remove them", begin, end)
	}
	return card[:i] + section + strings.TrimPrefix(card[j+len(end):], "\n"), nil
}
