package results

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// A sample sheet shows the samples that a transformation changes most and least, by the per-sample
// values of the finished cells: no model runs again for it.

const (
	sampleSheetFolder = "pictures/samples"

	maxSheetSamples = 36        // samples on a sheet
	maxSheetModels  = 12        // models on a sheet
	maxPairedModels = 4         // models on a sheet that are compared with each other
	maxSheetClasses = 40        // classes for which a sheet counts samples and predictions
	maxThumbSide    = 80        // largest longer side of an image, in pixels
	sheetBlock      = 16        // side of a JPEG block in pixels; tiles are aligned to blocks, so that no block shows two images
	maxPNGBytes     = 256 << 10 // largest size of a PNG in bytes; a larger sheet is a JPEG
)

// maxPerModel holds the largest numbers of samples that each model contributes to a sheet: samples
// that it misclassifies only when they are transformed, samples that change most and least, and
// samples that one model of a pair classifies correctly and the other does not (a parting).
var maxPerModel = struct{ fails, most, least, parts int }{8, 6, 3, 4}

// writeSampleSheets writes a sample sheet for each transformation of each data set that has
// per-sample values, at most maxSheets, if the study asks for images.
func (r *Writer) writeSampleSheets(ctx context.Context) error {
	type subject struct{ data, transform string }
	bySubject := map[subject][]*plan.Cell{}
	var order []subject
	// The cells of single models under transformations of the input, in the first trial.
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
	for i, s := range order[:min(len(order), maxSheets)] {
		files, err := r.writeSampleSheet(ctx, fmt.Sprintf("%02d", i+1), bySubject[s])
		if err != nil {
			return fmt.Errorf("the samples of %s under %s: %w", s.data, s.transform, err)
		}
		for _, file := range files {
			written[file] = true
		}
	}
	return r.removeFormer(sampleSheetFolder, written)
}

// writeSampleSheet writes the sheet of the cells of one transformation and returns the names of its
// files.
func (r *Writer) writeSampleSheet(ctx context.Context, name string, cells []*plan.Cell) ([]string, error) {
	s, err := r.readSampleValues(ctx, cells)
	if s == nil || err != nil {
		return nil, err
	}
	sheet := s.sheet()
	if err := r.addProjections(s, sheet, cells); err != nil {
		return nil, err
	}
	files := []string{name + ".json"}
	raw, ending, err := r.drawSamples(ctx, s, sheet)
	if err == nil && raw == nil {
		ending = ".wav"
		raw, err = r.recordSamples(ctx, s, sheet)
	}
	if err != nil {
		return nil, err
	}
	if raw != nil {
		files = append(files, name+ending)
		err = r.writePicture(sampleSheetFolder+"/"+files[1], func(w io.Writer) error { _, err := w.Write(raw); return err })
	}
	if err == nil {
		err = r.writePicture(sampleSheetFolder+"/"+files[0], func(w io.Writer) error { return json.NewEncoder(w).Encode(sheet) })
	}
	return files, err
}

// sheet chooses samples and returns what the report shows of them.
func (s *sampleValues) sheet() *scores.SampleSheet {
	first := s.cells[0]
	out := &scores.SampleSheet{Data: first.Data.Entry.Name, Transform: first.View.Name, Of: len(s.indices), Measure: s.measure, Statistic: s.statistic, Title: s.title,
		Lower: s.lowerMeansLarger(), Classes: s.classes}
	for _, c := range s.cells {
		out.Parameters = append(out.Parameters, c.View.Parameter)
	}
	rankings := make([]ranking, len(s.models))
	for m := range s.models {
		rankings[m] = s.rank(&s.models[m])
	}
	// Samples that model A of a parting classifies correctly and model B does not, as positions in
	// s.indices.
	var partings []scores.Parting
	if s.predicted {
		for a := range s.models[:min(len(s.models), maxPairedModels)] {
			for b := range s.models[:min(len(s.models), maxPairedModels)] {
				if a == b {
					continue
				}
				if counts, samples := s.separating(&s.models[a], &s.models[b]); len(samples) > 0 {
					partings = append(partings, scores.Parting{A: a, B: b, Counts: counts, Samples: samples})
				}
			}
		}
	}
	chosen := s.choose(rankings, partings)
	lineOf := map[int]int{}
	for line, i := range chosen {
		lineOf[i] = line
		described := s.samples[s.indices[i]]
		out.Samples = append(out.Samples, scores.SheetSample{Index: s.indices[i], Name: described.Name, Label: s.labels[i]})
	}
	linesOf := func(all []int, most int) []int {
		lines := []int{}
		for _, i := range all {
			line, shown := lineOf[i]
			if !shown || len(lines) == most {
				break // the list ends at the first sample that is not on the sheet
			}
			lines = append(lines, line)
		}
		return lines
	}
	classes := s.largestClasses()
	for m := range s.models {
		model := s.model(&s.models[m], chosen, classes)
		model.Most, model.Least, model.Fails = linesOf(rankings[m].most, maxPerModel.most), linesOf(rankings[m].least, maxPerModel.least), linesOf(rankings[m].failures, maxPerModel.fails)
		out.Models = append(out.Models, model)
	}
	for _, p := range partings {
		p.Samples = linesOf(p.Samples, len(p.Samples))
		out.Partings = append(out.Partings, p)
	}
	return out
}
