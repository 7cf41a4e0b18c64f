package recipe

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/study/spec"
)

// RunAll runs the trainings of a file, one after the other, and returns their summaries. The key
// vary of the file lists several values for some of its keys; each combination of them is a
// training. Those trainings have a folder each within the given one, and the file spec.RunsFile
// there has a row for each. Trainings that have finished are not repeated. RunAll stops at the
// first training of vary that fails, and then returns the summaries of those before it with the
// error.
func RunAll(ctx context.Context, f *File, folder string, o Options) ([]*Summary, error) {
	if f.run == "" { // without the key vary
		s, err := Run(ctx, f, folder, o)
		return []*Summary{s}, err
	}
	if _, err := os.Stat(filepath.Join(folder, spec.SummaryFile)); !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s holds a single training: choose another folder for those of vary", folder)
	}
	trainings := f.Trainings()
	summaries := make([]*Summary, len(trainings))
	if err := writeRuns(folder, trainings, summaries); err != nil {
		return nil, err
	}
	progress := o.Progress
	for i, t := range trainings {
		if progress != nil {
			o.Progress = func(p Progress) {
				p.Done, p.Total = p.Done+int64(i)*p.Total, p.Total*int64(len(trainings))
				progress(p)
			}
		}
		s, err := Run(ctx, t, filepath.Join(folder, t.run), o)
		if err != nil {
			return summaries[:i], fmt.Errorf("training %s: %w", t.run, err)
		}
		summaries[i] = s
		if err := writeRuns(folder, trainings, summaries); err != nil {
			return summaries[:i+1], err
		}
	}
	return summaries, nil
}

// writeRuns writes spec.RunsFile, with a row for each training. A tag of a training is the name
// that a varied key has for its value, and kept is the number of the epoch whose network was saved.
// Results of trainings that have not finished are empty, and so are tags of keys that a training
// does not have.
func writeRuns(folder string, trainings []*File, summaries []*Summary) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	varied := map[string]bool{}
	for _, t := range trainings {
		for tag := range t.tags {
			varied[tag] = true
		}
	}
	tags := slices.Sorted(maps.Keys(varied))
	header := slices.Concat([]string{"run"}, tags, []string{"epochs", "kept", "samples", "seconds"})
	for _, data := range []string{"train", "validation", "test"} {
		header = append(header, data+"_loss", data+"_accuracy", data+"_robust_accuracy", data+"_mean_iou")
	}
	return atomicfile.WriteFunc(filepath.Join(folder, spec.RunsFile), func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write(header)
		for i, t := range trainings {
			row := []string{t.run}
			for _, tag := range tags {
				row = append(row, t.tags[tag])
			}
			if s := summaries[i]; s != nil {
				row = append(row, strconv.Itoa(s.Epochs), strconv.Itoa(s.Kept), strconv.Itoa(s.Samples), strconv.FormatFloat(s.Seconds, 'f', 1, 64))
				for _, r := range []*Result{&s.Train, s.Validation, s.Test} {
					row = append(row, r.cells()...)
				}
			}
			c.Write(append(row, make([]string, len(header)-len(row))...))
		}
		c.Flush()
		return c.Error()
	})
}

// cells returns loss, accuracy, robust accuracy (on adversarial examples) and mean IoU as fields of
// a row; "" for those that are not known.
func (r *Result) cells() []string {
	if r == nil {
		return make([]string, 4)
	}
	out := []string{formatFloat(r.Loss)}
	for _, v := range []*float64{r.Accuracy, r.Robust, r.MeanIoU} {
		if v == nil {
			out = append(out, "")
		} else {
			out = append(out, formatFloat(*v))
		}
	}
	return out
}
