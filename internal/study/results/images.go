package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// A contact sheet has a row for each of the first samples: the clean image, then the image under
// each value of a transformation, at the size of the first model's input, not normalised.

const (
	maxValues    = 7  // values of a transformation on a sheet
	enlargedSide = 64 // largest shorter side of an enlarged image, in pixels
	sheetGap     = 4  // pixels between images
	maxSheets    = 48 // in a run folder

	viewSheetFolder = "pictures/views" // beside maps/, models/ and samples/
)

// With BestSpeed a sheet of photographs takes half the time of the default, and 5 % more bytes.
var sheetEncoder = png.Encoder{CompressionLevel: png.BestSpeed}

// writeImages writes a contact sheet for each transformation of each data set, if the study asks.
func (r *Writer) writeImages(ctx context.Context) error {
	if r.Plan.Study.Images == 0 { // number of samples that a sheet shows
		return nil
	}
	type subject struct {
		data *plan.Data
		name string
	}
	views := map[subject][]*plan.Cell{}
	var order []subject
	seen := map[[3]string]bool{}
	// One cell for each value of an input transformation, of any model, in the first trial.
	for _, c := range r.Plan.Cells {
		id := [3]string{c.Data.Entry.Name, c.View.Name, c.View.Parameter}
		if c.Model == nil || c.View.Transform == nil || c.View.On != "input" || c.View.Trial != 0 || seen[id] {
			continue
		}
		seen[id] = true
		s := subject{c.Data, c.View.Name}
		if views[s] == nil {
			order = append(order, s)
		}
		views[s] = append(views[s], c)
	}
	written, drawn, subjects := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, s := range order[:min(len(order), maxSheets)] {
		subjects[s.data.Entry.Name] = true
		name := fmt.Sprintf("%02d", i+1)
		wrote, err := r.writeSheet(ctx, viewSheetFolder+"/"+name, views[s])
		if err != nil {
			return fmt.Errorf("the contact sheet of %s under %s: %w", s.data.Entry.Name, s.name, err)
		}
		if wrote {
			written[name+".png"], written[name+".json"] = true, true
			drawn[s.data.Entry.Name] = true
		}
	}
	beyond := map[string]bool{} // data sets of the sheets that are left out
	for _, s := range order[min(len(order), maxSheets):] {
		beyond[s.data.Entry.Name] = true
	}
	r.imageless = nil // warnings that say why data sets have no contact sheet
	for _, d := range r.Plan.Data {
		switch name := d.Entry.Name; {
		case !r.Plan.Study.AsksForImages() || drawn[name]:
		case subjects[name]:
			r.imageless = append(r.imageless, fmt.Sprintf("pictures: none of %s, whose samples are no images of 1 or 3 channels", name))
		case beyond[name]:
			r.imageless = append(r.imageless, fmt.Sprintf("pictures: none of %s, since at most %d contact sheets show transformations", name, maxSheets))
		default:
			r.imageless = append(r.imageless, fmt.Sprintf("pictures: none of %s, since no transformation changes its samples", name))
		}
	}
	return r.removeFormer(viewSheetFolder, written)
}

// removeFormer removes the sheets of former runs once those written are files.
func (r *Writer) removeFormer(folder string, written map[string]bool) error {
	if r.archive != nil {
		return nil // writePictures removes them when the archive is complete
	}
	return r.Folder.removeSheets(folder, written)
}

// removeSheets removes sheets of former runs. Other processes may do so at the same time.
func (f Folder) removeSheets(folder string, written map[string]bool) error {
	entries, err := os.ReadDir(f.Path(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if written[e.Name()] || atomicfile.IsTemporary(e.Name()) {
			continue
		}
		if err := filesys.RemoveAll(f.Path(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// writeSheet returns false if the data are not images.
func (r *Writer) writeSheet(ctx context.Context, name string, cells []*plan.Cell) (bool, error) {
	cells = cells[:min(len(cells), maxValues)]
	first := cells[0]
	var lines [][]tensor.Tensor
	var samples []int
	for _, index := range first.Data.Order.First(r.Plan.Study.Images) {
		sample, err := first.Data.Source.At(ctx, index, first.Model.Net.Frame())
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil || !IsImage(sample) {
			continue // unreadable samples are among the run's warnings
		}
		line := []tensor.Tensor{sample.Input}
		for _, c := range cells {
			key := measure.Key{Seed: r.Plan.Study.Seed, Data: c.Data.Entry.Name, Transform: c.View.Name}
			transformed, err := sample.Apply(procedure.Draw(c.View.Transform, c.View.Per == "trial", key, sample.Index))
			if err != nil {
				return false, nil // so the cells of the transformation have failed, with the reason
			}
			line = append(line, transformed)
		}
		lines, samples = append(lines, line), append(samples, sample.Index)
	}
	if len(lines) == 0 {
		return false, nil
	}
	caption := func(w io.Writer) error { return json.NewEncoder(w).Encode(captionOf(cells, samples)) }
	if err := r.writePicture(name+".json", caption); err != nil {
		return false, err
	}
	err := r.writePicture(name+".png", func(w io.Writer) error { return sheetEncoder.Encode(w, contactSheet(lines)) })
	return err == nil, err
}

// IsImage reports whether a sample is an image that a contact sheet can show.
func IsImage(s dataset.Sample) bool {
	shape := s.Input.Shape
	return s.Waveform == nil && len(shape) == 3 && (shape[0] == 1 || shape[0] == 3)
}

// captionOf returns the title and the caption of a contact sheet as JSON; see report.ImageText.
func captionOf(cells []*plan.Cell, samples []int) map[string]any {
	v := cells[0].View
	what := "and transformed"
	values := make([]string, len(cells))
	for i, c := range cells {
		values[i] = c.View.Parameter
	}
	if v.Parameter != "" {
		what = "and at " + strings.Join(values, ", ")
	}
	return map[string]any{
		"title":   fmt.Sprintf("%s of %s", v.Name, cells[0].Data.Entry.Name),
		"caption": fmt.Sprintf("Each of %d lines is an image, from left to right as it is %s.", len(samples), what),
		"sheet":   scores.Sheet{Data: cells[0].Data.Entry.Name, Transform: v.Name, Parameters: values, Samples: samples, Gap: sheetGap},
	}
}

// contactSheet draws rows of images of one size. Each image is c x h x w with values in [0, 1].
func contactSheet(lines [][]tensor.Tensor) *image.NRGBA {
	var rows [][]*image.NRGBA
	for _, line := range lines {
		var row []*image.NRGBA
		for _, p := range line {
			row = append(row, contactsheet.Tile(p, enlargedSide, max(p.Shape[1], p.Shape[2])))
		}
		rows = append(rows, row)
	}
	return contactsheet.Sheet(rows, sheetGap)
}
