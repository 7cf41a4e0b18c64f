package results

import (
	"encoding/json"
	"io"
	"path"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/scores"
)

// A run keeps a sheet of feature maps of one sample for each model, data set and transformation
// whose equivariance errors are measured, named by the cell's key.

const (
	mapSheetFolder = "pictures/maps"
	maxMapSheets   = 24
)

// MapCells returns the cells that get a sheet of feature maps: for each model, data set and
// transformation that of the middle value, at most maxMapSheets; none if the study asks for no
// images.
func (r *Writer) MapCells() []*plan.Cell {
	type subject struct{ model, data, transform string }
	bySubject := map[subject][]*plan.Cell{}
	byTransform := map[string][]subject{}
	var transforms []string
	for _, c := range r.Plan.Cells {
		if _, ok := MapSettings(c); !ok || c.Failed || c.Model == nil || c.View.Transform == nil || c.View.On != "input" || c.View.Trial != 0 {
			continue
		}
		s := subject{c.Model.Entry.Name, c.Data.Entry.Name, c.View.Name}
		if byTransform[s.transform] == nil {
			transforms = append(transforms, s.transform)
		}
		if bySubject[s] == nil {
			byTransform[s.transform] = append(byTransform[s.transform], s)
		}
		bySubject[s] = append(bySubject[s], c)
	}
	var out []*plan.Cell
	for _, t := range transforms {
		for _, s := range byTransform[t] {
			if cells := bySubject[s]; r.Plan.Study.Images > 0 && len(out) < maxMapSheets {
				out = append(out, cells[len(cells)/2])
			}
		}
	}
	return out
}

// MapSettings returns the settings of a cell of equivariance errors, and false for other cells.
func MapSettings(c *plan.Cell) (equivariance.Settings, bool) {
	s, ok := c.Method.Settings().(equivariance.Settings)
	return s, ok
}

// mapFiles returns the paths of a cell's feature maps: the image, and its description as JSON.
func mapFiles(c *plan.Cell) []string {
	return []string{mapSheetFolder + "/" + c.Key + ".png", mapSheetFolder + "/" + c.Key + ".json"}
}

// HasMaps reports whether the folder holds the feature maps of a cell.
func (r *Writer) HasMaps(c *plan.Cell) bool { return len(r.mapsOf(c, r.Folder)) > 0 }

// mapsOf returns the feature maps of a cell that a folder holds, nil if it has none, or not both
// files.
func (r *Writer) mapsOf(c *plan.Cell, f Folder) []picture {
	if drawn := r.maps[c.Key]; drawn != nil {
		return drawn
	}
	var out []picture
	for _, name := range mapFiles(c) {
		data, err := f.picture(name)
		if err != nil {
			return nil
		}
		out = append(out, picture{name, data})
	}
	return out
}

// WriteMaps writes the feature maps of a cell, in a shard and for a study that asks for pictures.
// Of another run they are kept until the archive of pictures is written. The image is a PNG.
func (r *Writer) WriteMaps(c *plan.Cell, sheet *scores.MapSheet, png []byte) error {
	text, err := json.Marshal(sheet)
	if err != nil {
		return err
	}
	var drawn []picture
	for i, data := range [][]byte{png, append(text, '\n')} {
		drawn = append(drawn, picture{mapFiles(c)[i], data})
	}
	if !r.Plan.Study.AsksForImages() && r.Options.Shard.Whole() && r.Options.Only == nil {
		if r.maps == nil {
			r.maps = map[string][]picture{}
		}
		r.maps[c.Key] = drawn
		return nil
	}
	return r.writeAll(drawn)
}

func (r *Writer) writeAll(files []picture) error {
	for _, p := range files {
		if err := r.writePicture(p.name, func(w io.Writer) error { _, err := w.Write(p.data); return err }); err != nil {
			return err
		}
	}
	return nil
}

// collectMaps writes the feature maps that this run has drawn, and those of former runs and of the
// folders that a merge reads, and removes those that the study no longer has.
func (r *Writer) collectMaps() error {
	if r.Plan.Study.Images == 0 {
		return nil
	}
	wanted := map[string]bool{}
	for _, c := range r.MapCells() {
		for _, name := range mapFiles(c) {
			wanted[path.Base(name)] = true
		}
		for _, from := range append([]Folder{r.Folder}, r.merged...) {
			if maps := r.mapsOf(c, from); maps != nil {
				if err := r.writeAll(maps); err != nil {
					return err
				}
				break
			}
		}
	}
	return r.removeFormer(mapSheetFolder, wanted)
}
