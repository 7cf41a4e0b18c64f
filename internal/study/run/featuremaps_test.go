package run_test

import (
	"encoding/json"
	"image"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// mapsText is studytest.Text with the measure equivariance-error, for which a run
// draws feature maps. Its transformations of the image are quarter and tilt, a rotation by a random
// angle.
var mapsText = strings.Replace(studytest.Text, "distance, seis]", "equivariance-error]", 1)

// TestFeatureMaps compares the feature maps of a run with their definition: if T is a rotation by
// 180 degrees, T(f(x)) is f(x) rotated by 180 degrees. The maps of quarter, a rotation by 90 and
// by 180 degrees, are those of 180 degrees.
func TestFeatureMaps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	studytest.Run(t, studytest.Parse(t, dir, mapsText), out, studytest.Options(t))
	sheets := readMaps(t, out)
	if len(sheets) != 2 || sheets["quarter"] == nil || sheets["tilt"] == nil {
		t.Fatalf("sheets of %v, not of quarter and tilt", sheets)
	}
	quarter := sheets["quarter"]
	if quarter.Parameter != "180" || quarter.Measure != "equivariance-error" || !quarter.HasInput || len(quarter.Layers) < 2 {
		t.Errorf("the sheet of quarter is %+v", quarter.MapSheet)
	}
	if t1 := quarter.Tile; !quarter.rotated180(0, 0, 1, t1.Width, t1.Height) {
		t.Error("T(x) is not x rotated by 180 degrees")
	}
	line := 1
	for _, l := range quarter.Layers {
		for _, c := range l.Channels {
			if !quarter.rotated180(line, 0, 2, quarter.Tile.Width, quarter.Tile.Height) {
				t.Errorf("channel %d of %s: T(f(x)) is not f(x) rotated by 180 degrees", c.Channel, l.Layer)
			}
			if c.High <= c.Low || c.Error < 0 || math.IsNaN(float64(c.Error)) {
				t.Errorf("channel %d of %s: %+v", c.Channel, l.Layer, c)
			}
			line++
		}
	}
	if size := quarter.image.Bounds().Size(); size.Y != line*quarter.Tile.Down || size.X != 4*quarter.Tile.Right {
		t.Errorf("an image of %v for %d lines", size, line)
	}

	file := filepath.Join(out, pictures.Archive)
	before := modified(t, file)
	studytest.Run(t, studytest.Parse(t, dir, mapsText), out, studytest.Options(t))
	if modified(t, file) != before {
		t.Error("a run that is finished draws its maps again")
	}
	studytest.Run(t, studytest.Parse(t, dir, strings.Replace(mapsText, "seed: 2", "seed: 5", 1)), out, studytest.Options(t))
	if again := readMaps(t, out); len(again) != 2 || again["quarter"].file == quarter.file {
		t.Errorf("sheets %v of other data", again)
	}
	studytest.Run(t, studytest.Parse(t, dir, mapsText+"pictures: 0\n"), filepath.Join(dir, "none"), studytest.Options(t))
	if none := readMaps(t, filepath.Join(dir, "none")); len(none) != 0 {
		t.Errorf("%d sheets with pictures: 0", len(none))
	}
}

// TestFeatureMapsOutside checks that a transformation that moves the whole image out of the frame
// has no sheet, and that those after it have theirs.
func TestFeatureMapsOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	text := strings.Replace(mapsText, "transforms:\n", "transforms:\n  - {name: away, translate: [1, 1], per: trial}\n", 1)
	studytest.Run(t, studytest.Parse(t, dir, text), out, studytest.Options(t))
	if sheets := readMaps(t, out); len(sheets) != 2 || sheets["quarter"] == nil {
		t.Errorf("sheets of %v, not of quarter and tilt", sheets)
	}
}

// TestFeatureMapsOfShards merges two shards (runs on half of the samples), each in its own folder.
func TestFeatureMapsOfShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	var dirs []string
	for i := range 2 {
		o := studytest.Options(t)
		o.Shard = study.Shard{Index: i + 1, Count: 2}
		dirs = append(dirs, filepath.Join(dir, o.Shard.String()))
		studytest.Run(t, studytest.Parse(t, dir, mapsText), dirs[i], o)
		if n := len(readMaps(t, dirs[i])); n != 2*(1-i) { // the first shard draws both sheets
			t.Errorf("shard %d has %d sheets", i+1, n)
		}
	}
	slices.Reverse(dirs) // the first folder has no maps
	if _, err := study.Merge(t.Context(), studytest.Parse(t, dir, mapsText), dirs, studytest.Options(t)); err != nil {
		t.Fatal(err)
	}
	if n := len(readMaps(t, dirs[0])); n != 2 {
		t.Errorf("the merged run has %d sheets", n)
	}
}

// TestGraphIsRecorded checks that the record of a run, run.json, has the operations of a model's
// graph, and that each layer is the output of one of them.
func TestGraphIsRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	studytest.Run(t, studytest.Parse(t, dir, mapsText), out, studytest.Options(t))
	record, err := scores.ReadRecord(filepath.Join(out, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	m := record.Models[0]
	for _, l := range m.Layers {
		i := slices.IndexFunc(m.Graph, func(o scores.OperationRecord) bool { return o.Tensor == l.Name })
		if i < 0 || m.Graph[i].Op != l.Op {
			t.Errorf("layer %s is not among the operations", l.Name)
		}
	}
	if len(m.Graph) < len(m.Layers) || len(m.Graph[0].Reads) != 0 || len(m.Graph[1].Reads) == 0 {
		t.Errorf("the graph does not begin with the input and an operation that reads it: %+v", m.Graph)
	}
}

// A mapSheet is a sheet of feature maps with its image. Tiles 0 and 1 of line 0 are x and T(x).
// Tiles 0 to 2 of a further line are f(x), f(T(x)) and T(f(x)), for one channel.
type mapSheet struct {
	scores.MapSheet
	file  string
	image image.Image
}

// rotated180 reports whether tile a of a line equals tile b rotated by 180 degrees. Tiles are w x h
// pixels.
func (s *mapSheet) rotated180(line, a, b, w, h int) bool {
	left, top := s.Tile.Right, line*s.Tile.Down
	for y := range h {
		for x := range w {
			if s.image.At(a*left+x, top+y) != s.image.At(b*left+w-1-x, top+h-1-y) {
				return false
			}
		}
	}
	return true
}

// readMaps returns the sheets of feature maps of a run by their transformations.
func readMaps(t *testing.T, dir string) map[string]*mapSheet {
	t.Helper()
	set := studytest.Pictures(t, dir)
	files, err := fs.Glob(set, "pictures/maps/*.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*mapSheet{}
	for _, file := range files {
		raw, err := fs.ReadFile(set, file)
		s := &mapSheet{file: filepath.Base(file), image: readPNG(t, set, strings.TrimSuffix(file, ".json")+".png")}
		if err == nil {
			err = json.Unmarshal(raw, &s.MapSheet)
		}
		if err != nil {
			t.Fatal(err)
		}
		out[s.Transform] = s
	}
	return out
}

// modified returns when a file was last written, in nanoseconds since 1970.
func modified(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime().UnixNano()
}
