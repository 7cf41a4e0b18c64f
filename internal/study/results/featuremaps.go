package results

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/noether-ml/noether/internal/filesys"
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

// mapFiles returns the names of the image, and of its description as JSON.
func mapFiles(c *plan.Cell) (image, text string) { return c.Key + ".png", c.Key + ".json" }

// HasMaps reports whether the folder holds the feature maps of a cell.
func (r *Writer) HasMaps(c *plan.Cell) bool {
	image, text := mapFiles(c)
	for _, name := range []string{image, text} {
		if info, err := os.Stat(r.Folder.Path(mapSheetFolder, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// WriteMaps writes the feature maps of a cell. The image is a PNG.
func (r *Writer) WriteMaps(c *plan.Cell, sheet *scores.MapSheet, png []byte) error {
	if err := filesys.MkdirAll(r.Folder.Path(mapSheetFolder), 0o755); err != nil {
		return err
	}
	image, text := mapFiles(c)
	if err := r.Folder.write(mapSheetFolder+"/"+image, func(w io.Writer) error { _, err := w.Write(png); return err }); err != nil {
		return err
	}
	return r.Folder.write(mapSheetFolder+"/"+text, func(w io.Writer) error { return json.NewEncoder(w).Encode(sheet) })
}

// collectMaps copies feature maps from the merged folders and removes those of former runs.
func (r *Writer) collectMaps() error {
	if r.Plan.Study.Images == 0 {
		return nil
	}
	wanted := map[string]bool{}
	for _, c := range r.MapCells() {
		image, text := mapFiles(c)
		wanted[image], wanted[text] = true, true
		for _, from := range r.merged {
			if r.HasMaps(c) {
				break
			}
			if err := r.copyMaps(c, from); err != nil {
				return err
			}
		}
	}
	return r.Folder.removeSheets(mapSheetFolder, wanted)
}

func (r *Writer) copyMaps(c *plan.Cell, from Folder) error {
	image, text := mapFiles(c)
	png, err := os.ReadFile(from.Path(mapSheetFolder, image))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var sheet scores.MapSheet
	if err == nil {
		var raw []byte
		if raw, err = os.ReadFile(from.Path(mapSheetFolder, text)); err == nil {
			err = json.Unmarshal(raw, &sheet)
		}
	}
	if err != nil {
		return err
	}
	return r.WriteMaps(c, &sheet, png)
}
