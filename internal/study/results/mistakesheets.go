package results

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"slices"

	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/scores"
)

const (
	mistakeSheetFolder = "pictures/failures"
	maxMistakeSheets   = 12  // in a run folder
	sheetMistakes      = 12  // images on a sheet
	groupSheets        = 4   // sheets of a model, data set and transformation
	mistakeSide        = 192 // largest longer side of an image, in pixels
)

// writeMistakeSheets writes contact sheets of the samples that are right without a transformation
// and wrong with it, and of those whose boxes or class map change: for each model, data set and
// transformation the most costly ones of the groups that fail more than the rest, then of the most
// frequent pairs of classes, or of all samples.
func (r *Writer) writeMistakeSheets(ctx context.Context) error {
	if r.Plan.Study.Images == 0 || r.mistakes == nil {
		return nil
	}
	written := map[string]bool{}
	drawn := map[mistakeSubject]int{}
	n := 0
	for _, further := range []bool{false, true} {
		for _, g := range r.mistakes.groups {
			s := mistakeSubject{g.Model, g.Data, g.Transform}
			if further != (g.Column == scores.ClassPair || g.Column == scores.AllSamples) || !further && !(g.Gap.Low > 0) || drawn[s] == groupSheets || n == maxMistakeSheets {
				continue
			}
			name := fmt.Sprintf("%02d", n+1)
			wrote, err := r.writeMistakeSheet(ctx, mistakeSheetFolder+"/"+name, g)
			if err != nil {
				return err
			}
			if wrote {
				written[name+".png"], written[name+".json"] = true, true
				drawn[s]++
				n++
			}
		}
	}
	return r.removeFormer(mistakeSheetFolder, written)
}

// writeMistakeSheet returns false if there is nothing to draw.
func (r *Writer) writeMistakeSheet(ctx context.Context, name string, g scores.MistakeGroup) (bool, error) {
	var lines [][]*image.NRGBA
	drawn := map[int]bool{}
	total := map[int]bool{}
	var legend string
	for _, m := range r.mistakes.all {
		if m.Kind != g.Kind || m.Data != g.Data || m.Model != g.Model || m.Transform != g.Transform || !inGroup(m, g) {
			continue
		}
		total[m.Index] = true
		if m.Trial != 0 || drawn[m.Index] || len(lines) == sheetMistakes {
			continue
		}
		at := slices.IndexFunc(r.Plan.Cells, func(c *plan.Cell) bool {
			_, dense := denseSettings(c)
			return !c.Failed && c.Model != nil && dense == (g.Kind == scores.Changed && m.Clean == "") && c.Model.Entry.Name == m.Model && c.Data.Entry.Name == m.Data && c.View.Name == m.Transform &&
				c.View.On == "input" && c.Parameter() == m.Parameter && c.View.Trial == 0
		})
		if at < 0 {
			continue
		}
		line, what, err := r.mistakeLine(ctx, r.Plan.Cells[at], m.Index)
		if err != nil {
			return false, err
		}
		if line == nil {
			continue
		}
		drawn[m.Index] = true
		lines, legend = append(lines, line), what
	}
	if len(lines) == 0 {
		return false, nil
	}
	title := fmt.Sprintf("Failures of %s under %s: %s %s", g.Model, g.Transform, g.Column, g.Group)
	caption := fmt.Sprintf("%d of the %d samples that are right without %s and wrong with it, those with the most confident wrong prediction first: "+
		"each as it is, and at the value of %s where that prediction is most confident. %s", len(lines), len(total), g.Transform, g.Transform, g.Describe())
	of := "accuracy"
	if g.Kind == scores.Changed {
		caption = fmt.Sprintf("%d of the %d samples of which %s keeps less than half under %s, those that lose most first, at the value where they do: %s. %s",
			len(lines), len(total), g.Model, g.Transform, legend, g.Describe())
		of = dense.Descriptor().Name
	}
	text := map[string]any{"title": title, "caption": caption, "model": g.Model, "measure": of}
	if err := r.writePicture(name+".json", func(w io.Writer) error { return json.NewEncoder(w).Encode(text) }); err != nil {
		return false, err
	}
	sheet := contactsheet.Sheet(inColumns(lines, max(1, 6/len(lines[0]))), sheetGap)
	err := r.writePicture(name+".png", func(w io.Writer) error { return sheetEncoder.Encode(w, sheet) })
	return err == nil, err
}

// mistakeLine returns the tiles of a sample, clean and transformed as in a cell, and of boxes and
// class maps what they show. It returns nil if the sample cannot be drawn.
func (r *Writer) mistakeLine(ctx context.Context, c *plan.Cell, index int) (line []*image.NRGBA, legend string, err error) {
	samples, err := r.describeSamples(ctx, c.Data)
	if err != nil {
		return nil, "", err
	}
	sample, err := c.Data.Source.At(ctx, samples[index].SourceIndex, c.Model.Net.Frame())
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil || !IsImage(sample) {
		return nil, "", nil // as in writeSheet
	}
	transformed, err := r.transformedSample(c, sample)
	if err != nil {
		return nil, "", nil
	}
	if s, ok := denseSettings(c); ok {
		return r.denseLine(ctx, c, sample, transformed, s.Confidence)
	}
	return []*image.NRGBA{contactsheet.Tile(sample.Input, enlargedSide, mistakeSide), contactsheet.Tile(transformed, enlargedSide, mistakeSide)}, "", nil
}

func inGroup(m scores.Mistake, g scores.MistakeGroup) bool {
	switch g.Column {
	case scores.AllSamples:
		return true
	case scores.ClassPair:
		return m.Label+" > "+m.Moved == g.Group
	case "label":
		return m.Label == g.Group
	}
	return m.Groups[g.Column] == g.Group
}

// inColumns puts several lines of images side by side.
func inColumns(lines [][]*image.NRGBA, columns int) [][]*image.NRGBA {
	var out [][]*image.NRGBA
	for some := range slices.Chunk(lines, columns) {
		out = append(out, slices.Concat(some...))
	}
	return out
}
