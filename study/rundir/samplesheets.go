package rundir

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
)

// A sample sheet shows the samples that a transformation changes most and least. They are chosen by
// the per-sample values of the finished cells, so no model runs again.

const (
	sampleFolder = "pictures/samples"

	mostLines   = 36        // samples on a sheet
	mostModels  = 12        // models of a sheet
	partModels  = 4         // models that are compared in pairs
	mostClasses = 40        // classes with counts
	thumbSide   = 80        // pixels that the longer side of an image has at most
	sheetBlock  = 16        // pixels of a block of a JPEG, which two images must not share
	pngBytes    = 256 << 10 // largest size of a PNG; a larger sheet is a JPEG
)

// shares holds the largest numbers of samples that each model contributes to a sheet: samples that
// it misclassifies once they are transformed, samples that change most and least, and samples for
// which a pair of models differs.
var shares = struct{ fails, most, least, parts int }{8, 6, 3, 4}

// writeSampleSheets writes a sample sheet for each transformation of each data set that has
// per-sample values, if the study asks for images.
func (r *Writer) writeSampleSheets(ctx context.Context) error {
	type subject struct{ data, transform string }
	bySubject := map[subject][]*plan.Cell{}
	var order []subject
	for _, c := range r.Plan.Cells {
		if r.Plan.Study.Images == 0 || c.Failed || c.Model == nil || c.Identity().OtherModel != "" || c.View.Name == "" || c.View.On != "input" || c.View.Trial != 0 {
			continue
		}
		s := subject{c.Data.Entry.Name, c.View.Name}
		if bySubject[s] == nil {
			order = append(order, s)
		}
		bySubject[s] = append(bySubject[s], c)
	}
	written := map[string]bool{}
	for i, s := range order[:min(len(order), mostSheets)] {
		files, err := r.writeSampleSheet(ctx, fmt.Sprintf("%02d", i+1), bySubject[s])
		if err != nil {
			return fmt.Errorf("the samples of %s under %s: %w", s.data, s.transform, err)
		}
		for _, file := range files {
			written[file] = true
		}
	}
	return r.Folder.removeSheets(sampleFolder, written)
}

// writeSampleSheet writes the sheet of the cells of one transformation and returns the names of its
// files.
func (r *Writer) writeSampleSheet(ctx context.Context, name string, cells []*plan.Cell) ([]string, error) {
	s, err := r.sampledOf(ctx, cells)
	if s == nil || err != nil {
		return nil, err
	}
	sheet := s.sheet()
	if err := r.addProjections(s, sheet, cells); err != nil {
		return nil, err
	}
	if err := filesys.MkdirAll(r.Folder.Path(sampleFolder), 0o755); err != nil {
		return nil, err
	}
	files := []string{name + ".json"}
	raw, ending, err := r.drawSamples(ctx, s, sheet)
	if err != nil {
		return nil, err
	}
	if raw != nil {
		files = append(files, name+ending)
		err = r.Folder.write(sampleFolder+"/"+files[1], func(w io.Writer) error { _, err := w.Write(raw); return err })
	}
	if err == nil {
		err = r.Folder.write(sampleFolder+"/"+files[0], func(w io.Writer) error { return json.NewEncoder(w).Encode(sheet) })
	}
	return files, err
}

// sheet chooses samples and returns what the report shows of them.
func (s *sampled) sheet() *scores.SampleSheet {
	first := s.cells[0]
	out := &scores.SampleSheet{Data: first.Data.Entry.Name, Transform: first.View.Name, Of: len(s.index), Measure: s.measure, Statistic: s.statistic, Title: s.title,
		Lower: s.lower(), Classes: s.classes}
	for _, c := range s.cells {
		out.Parameters = append(out.Parameters, c.View.Parameter)
	}
	rankings := make([]ranking, len(s.models))
	for m := range s.models {
		rankings[m] = s.rank(&s.models[m])
	}
	var partings []scores.Parting // of positions in s.index
	if s.predicted {
		for a := range s.models[:min(len(s.models), partModels)] {
			for b := range s.models[:min(len(s.models), partModels)] {
				if a == b {
					continue
				}
				if counts, samples := s.parts(&s.models[a], &s.models[b]); len(samples) > 0 {
					partings = append(partings, scores.Parting{A: a, B: b, Counts: counts, Samples: samples})
				}
			}
		}
	}
	chosen := s.choose(rankings, partings)
	place := map[int]int{}
	for line, i := range chosen {
		place[i] = line
		described := s.samples[s.index[i]]
		out.Samples = append(out.Samples, scores.SheetSample{Index: s.index[i], Name: described.Name, Label: s.labels[i]})
	}
	on := func(all []int, most int) []int {
		lines := []int{}
		for _, i := range all {
			line, there := place[i]
			if !there || len(lines) == most {
				break // a list must not leave out a sample between others
			}
			lines = append(lines, line)
		}
		return lines
	}
	counted := s.countedClasses()
	for m := range s.models {
		model := s.model(&s.models[m], chosen, counted)
		model.Most, model.Least, model.Fails = on(rankings[m].most, shares.most), on(rankings[m].least, shares.least), on(rankings[m].fails, shares.fails)
		out.Models = append(out.Models, model)
	}
	for _, p := range partings {
		p.Samples = on(p.Samples, len(p.Samples))
		out.Partings = append(out.Partings, p)
	}
	return out
}
