package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/noether-ml/noether/scores"
)

// Extent returns the size of a run, for instance "3 models, 1 data set, 3 transforms, 5 measures,
// 1,234 scores". rec describes the run, and rows are its scores.
func Extent(rec scores.Record, rows []scores.Row) string {
	models, data := len(rec.Models), len(rec.Data)
	parts := []string{Plural(max(models, len(scores.DistinctValues(rows, byModel))), "model"), Plural(max(data, len(scores.DistinctValues(rows, byData))), "data set")}
	if n := len(scores.DistinctValues(rows, byTransform)); n > 0 { // measures of videos and gratings need none
		parts = append(parts, Plural(n, "transform"))
	}
	return strings.Join(append(parts, Plural(len(scores.DistinctValues(rows, byMeasure)), "measure"), Plural(len(rows), "score")), ", ")
}

// Progress returns a sentence on a run that is unfinished or has failures, otherwise "".
func Progress(rec scores.Record) string {
	switch {
	case rec.Finished != nil && len(rec.Failed) > 0:
		return fmt.Sprintf("Incomplete: %s; %s of %s planned cells are done. What follows holds for what is done; means that lack a value are left out. Run the study again to retry what failed.",
			Plural(len(rec.Failed), "failure"), Count(rec.Done), Count(rec.Cells))
	case rec.Finished != nil:
		return ""
	}
	return fmt.Sprintf("Unfinished: %s of %s cells are done. What follows holds for those; run the study again to go on.",
		Count(rec.Done), Count(rec.Cells))
}

// LeftOut returns a sentence on samples that could not be read, otherwise "".
func LeftOut(rec scores.Record) string {
	const most = 5 // names
	var parts []string
	for _, d := range rec.Data {
		if n := len(d.Unreadable); n > 0 {
			names := make([]string, min(n, most))
			for i := range names {
				names[i] = Printable(d.Unreadable[i])
			}
			text := strings.Join(names, ", ")
			if n > most {
				text += fmt.Sprintf(" and %d more", n-most)
			}
			parts = append(parts, fmt.Sprintf("%s of %s of %s (%s)", Count(n), Count(d.N), Printable(d.Name), text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Left out: samples that cannot be read, " + strings.Join(parts, "; ") + ". The scores are those of the others."
}

// Duration returns the time from start to finish, rounded for display, or "" for an unfinished run.
func Duration(rec scores.Record) string {
	if rec.Finished == nil || rec.Started.IsZero() {
		return ""
	}
	d := rec.Finished.Sub(rec.Started)
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
