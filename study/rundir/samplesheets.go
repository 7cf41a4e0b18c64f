package rundir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"maps"
	"math"
	"slices"

	"golang.org/x/image/draw"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/tensor"
)

// A sample sheet has the samples that a transformation changes most and least. It is chosen from the
// per-sample values of the finished cells, so nothing is run again.

const (
	sampleFolder = "pictures/samples"

	mostLines   = 36 // samples on a sheet
	mostModels  = 12 // models of a sheet
	partModels  = 4  // models that are compared in pairs
	mostClasses = 40 // classes with counts
	thumbSide   = 80 // pixels of the longer side of an image; smaller ones stay as they are
	sheetBlock  = 16 // pixels of a block of a JPEG, which two images must not share
	pngBytes    = 256 << 10
)

// samples each model contributes to a sheet, while there is room
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

// sampled holds the per-sample values of the cells of a transformation of a data set.
type sampled struct {
	cells      []*plan.Cell // of the first model, one for each value of the parameter
	samples    map[int]plan.Described
	index      []int // of the samples that have values everywhere
	models     []sampledModel
	measure    string
	statistic  string
	title      string // of the statistic
	predicted  bool
	classes    []string // interned
	classPlace map[string]int
	labels     []int // of index, interned; -1: unknown
}

type sampledModel struct {
	name  string
	clean []int // interned classes
	sure  []float64
	views []sampledView
}

type sampledView struct {
	moved []int
	sure  []float64
	value []float64
}

// A valueSource is what per-sample values tell of a change: a measure, and the statistic to show.
type valueSource struct {
	sample    string // a per-sample value that the cell must have
	statistic string
}

// In order of preference. Effective invariance is computed from both predictions.
var valueSources = []valueSource{{"predicted-moved", "ei"}, {"js", "js"}, {"cosine", "cosine"}}

// sampledOf reads the per-sample values of the cells of one transformation. It returns nil if there
// are none.
func (r *Writer) sampledOf(ctx context.Context, cells []*plan.Cell) (*sampled, error) {
	type key struct{ model, parameter string }
	for _, source := range valueSources {
		found := map[key]map[string]map[int]float64{}
		of := map[key]*plan.Cell{}
		var models, parameters []string
		for _, c := range cells {
			k := key{c.Model.Entry.Name, c.View.Parameter}
			if of[k] != nil {
				continue
			}
			values, err := r.Folder.cellSamples(c)
			if err != nil {
				return nil, err
			}
			if values[source.sample] == nil {
				continue
			}
			found[k], of[k] = values, c
			if !slices.Contains(models, k.model) {
				models = append(models, k.model)
			}
			if !slices.Contains(parameters, k.parameter) {
				parameters = append(parameters, k.parameter)
			}
		}
		if len(parameters) > maxValues {
			parameters = spread(parameters, maxValues)
		}
		models = slices.DeleteFunc(models, func(m string) bool {
			return slices.ContainsFunc(parameters, func(p string) bool { return found[key{m, p}] == nil })
		})
		if len(models) == 0 {
			continue
		}
		models = models[:min(len(models), mostModels)]
		first := of[key{models[0], parameters[0]}]
		s := &sampled{statistic: source.statistic, predicted: source.statistic == "ei", classPlace: map[string]int{}}
		descriptor := first.Method.Descriptor()
		if s.predicted {
			descriptor = prediction.EffectiveInvarianceDescriptor()
		}
		about, _ := descriptor.Statistic(s.statistic)
		s.measure, s.title = descriptor.Name, about.Title
		var err error
		if s.samples, err = r.describeSamples(ctx, first.Data); err != nil {
			return nil, err
		}
		for _, p := range parameters {
			s.cells = append(s.cells, of[key{models[0], p}])
		}
		for index := range s.samples {
			has := func(m, p string) bool { _, ok := found[key{m, p}][source.sample][index]; return ok }
			if !slices.ContainsFunc(models, func(m string) bool {
				return slices.ContainsFunc(parameters, func(p string) bool { return !has(m, p) })
			}) {
				s.index = append(s.index, index)
			}
		}
		if len(s.index) == 0 {
			continue
		}
		slices.Sort(s.index)
		for _, m := range models {
			model := sampledModel{name: m}
			for i, p := range parameters {
				k := key{m, p}
				names := of[k].Classes()
				view := sampledView{}
				if s.predicted {
					view.moved = s.classesOf(found[k]["predicted-moved"], names)
					view.sure = s.valuesOf(found[k]["confidence-moved"])
					if i == 0 {
						model.clean = s.classesOf(found[k]["predicted-clean"], names)
						model.sure = s.valuesOf(found[k]["confidence-clean"])
					}
					for j := range s.index {
						ei := 0.0
						if view.moved[j] == model.clean[j] {
							ei = math.Sqrt(view.sure[j] * model.sure[j])
						}
						view.value = append(view.value, ei)
					}
				} else {
					view.value = s.valuesOf(found[k][source.sample])
				}
				model.views = append(model.views, view)
			}
			s.models = append(s.models, model)
		}
		s.findLabels(first)
		return s, nil
	}
	return nil, nil
}

// cellSamples returns the per-sample values of a cell by statistic and index of the sample. Of several
// layers, they are those of the last.
func (f Folder) cellSamples(c *plan.Cell) (map[string]map[int]float64, error) {
	byTask, err := f.readSampleFiles(c.Key)
	if err != nil {
		return nil, err
	}
	out := map[string]map[int]float64{}
	for _, t := range slices.Backward(c.Tasks) {
		values, ok := byTask[t.Name()]
		if !ok {
			continue
		}
		for _, v := range values {
			if out[v.Statistic] == nil {
				out[v.Statistic] = make(map[int]float64, len(values))
			}
			out[v.Statistic][v.Index] = v.Value
		}
		break
	}
	return out, nil
}

// spread returns n items that are evenly spaced, the first and the last among them.
func spread(items []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = items[i*(len(items)-1)/(n-1)]
	}
	return out
}

func (s *sampled) valuesOf(values map[int]float64) []float64 {
	out := make([]float64, len(s.index))
	for i, index := range s.index {
		out[i] = values[index]
	}
	return out
}

// classesOf returns the predicted classes as positions in s.classes.
func (s *sampled) classesOf(values map[int]float64, names []string) []int {
	out := make([]int, len(s.index))
	for i, index := range s.index {
		name := fmt.Sprint(values[index])
		if at := int(values[index]); at >= 0 && at < len(names) {
			name = names[at]
		}
		out[i] = s.class(name)
	}
	return out
}

// class returns the position of a class in s.classes.
func (s *sampled) class(name string) int {
	at, known := s.classPlace[name]
	if !known {
		at = len(s.classes)
		s.classes = append(s.classes, name)
		s.classPlace[name] = at
	}
	return at
}

func (s *sampled) findLabels(c *plan.Cell) {
	names := c.Data.Source.Classes()
	for _, index := range s.index {
		label := -1
		if at := s.samples[index].Label; at != dataset.NoLabel && at >= 0 && at < len(names) {
			label = s.class(names[at])
		}
		s.labels = append(s.labels, label)
	}
}

// lower reports whether a lower value means a larger change.
func (s *sampled) lower() bool { return s.predicted }

// change returns how much sample i changes in a view: a class that changes with confidence is the
// largest change.
func (s *sampled) change(m *sampledModel, v *sampledView, i int) float64 {
	switch {
	case !s.predicted:
		return v.value[i]
	case v.moved[i] == m.clean[i]:
		return 1 - v.value[i]
	}
	return 1 + math.Sqrt(v.sure[i]*m.sure[i])
}

func (s *sampled) right(m *sampledModel, i int) bool {
	return s.predicted && s.labels[i] >= 0 && m.clean[i] == s.labels[i]
}

func (s *sampled) rightMoved(v *sampledView, i int) bool {
	return s.predicted && s.labels[i] >= 0 && v.moved[i] == s.labels[i]
}

// A ranking is the samples of a model, as positions in s.index, in the order of their changes.
type ranking struct{ most, least, fails []int }

func (s *sampled) rank(m *sampledModel) ranking {
	mean := make([]float64, len(s.index))
	failed := make([]int, len(s.index))
	for i := range s.index {
		for k := range m.views {
			v := &m.views[k]
			mean[i] += s.change(m, v, i) / float64(len(m.views))
			if s.right(m, i) && !s.rightMoved(v, i) {
				failed[i]++
			}
		}
	}
	var r ranking
	for i := range s.index {
		r.most = append(r.most, i)
		if failed[i] > 0 {
			r.fails = append(r.fails, i)
		}
	}
	slices.SortStableFunc(r.most, func(a, b int) int { return cmp.Compare(mean[b], mean[a]) })
	r.least = slices.Clone(r.most)
	slices.Reverse(r.least)
	slices.SortStableFunc(r.fails, func(a, b int) int { return cmp.Or(failed[b]-failed[a], cmp.Compare(mean[b], mean[a])) })
	return r
}

// parts returns where A is right and B is wrong, as positions in s.index under each value: those
// under the last value come first.
func (s *sampled) parts(a, b *sampledModel) (counts, samples []int) {
	counts = make([]int, len(a.views))
	for k := len(a.views) - 1; k >= 0; k-- {
		for i := range s.index {
			if s.labels[i] < 0 || !s.rightMoved(&a.views[k], i) || s.rightMoved(&b.views[k], i) {
				continue
			}
			counts[k]++
			if !slices.Contains(samples, i) && len(samples) < mostLines {
				samples = append(samples, i)
			}
		}
	}
	return counts, samples
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
				break // the next ones would skip a sample
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

// choose returns the samples of a sheet: in turn the next failure, the next most and the next least
// changed sample of each model, and the next sample of each parting.
func (s *sampled) choose(rankings []ranking, partings []scores.Parting) []int {
	var chosen []int
	add := func(all []int, rank, share int) {
		if rank < len(all) && rank < share && len(chosen) < mostLines && !slices.Contains(chosen, all[rank]) {
			chosen = append(chosen, all[rank])
		}
	}
	for rank := range max(shares.fails, shares.most, shares.least, shares.parts) {
		for _, r := range rankings {
			add(r.fails, rank, shares.fails)
			add(r.most, rank, shares.most)
			add(r.least, rank, shares.least)
		}
		for _, p := range partings {
			add(p.Samples, rank, shares.parts)
		}
	}
	return chosen
}

// countedClasses returns the classes with counts: those with the most samples.
func (s *sampled) countedClasses() map[int]bool {
	n := map[int]int{}
	for _, label := range s.labels {
		if label >= 0 {
			n[label]++
		}
	}
	all := slices.SortedFunc(maps.Keys(n), func(a, b int) int { return cmp.Or(n[b]-n[a], a-b) })
	out := map[int]bool{}
	for _, class := range all[:min(len(all), mostClasses)] {
		out[class] = true
	}
	return out
}

// model returns what a model makes of the chosen samples.
func (s *sampled) model(m *sampledModel, chosen []int, counted map[int]bool) scores.SheetModel {
	out := scores.SheetModel{Model: m.name}
	for i := range s.index {
		if s.labels[i] >= 0 {
			out.Labelled++
		}
		if s.right(m, i) {
			out.Right++
		}
	}
	if s.predicted {
		out.Clean, out.Confidence = pick(m.clean, chosen), float32s(pick(m.sure, chosen))
		out.ByClass, out.Confusion = s.byClass(m.clean, nil, counted)
	}
	for k := range m.views {
		v := &m.views[k]
		view := scores.SheetView{Value: float32s(pick(v.value, chosen))}
		for i := range s.index {
			view.Mean += v.value[i] / float64(len(s.index))
			if s.predicted && v.moved[i] != m.clean[i] {
				view.Changed++
			}
			if s.right(m, i) && !s.rightMoved(v, i) {
				view.Failed++
			}
		}
		if s.predicted {
			view.Moved, view.Confidence = pick(v.moved, chosen), float32s(pick(v.sure, chosen))
			view.ByClass, view.Confusion = s.byClass(v.moved, v.value, counted)
		}
		out.Views = append(out.Views, view)
	}
	return out
}

// byClass returns the counts of each class, and the confusion of labels and predictions.
func (s *sampled) byClass(predicted []int, value []float64, counted map[int]bool) (classes []scores.ByClass, confusion [][3]int) {
	by := map[int]*scores.ByClass{}
	pairs := map[[2]int]int{}
	for i, label := range s.labels {
		if !counted[label] {
			continue
		}
		if by[label] == nil {
			by[label] = &scores.ByClass{Class: label}
		}
		c := by[label]
		c.N++
		if predicted[i] == label {
			c.Right++
		}
		if value != nil {
			c.Mean += value[i]
		}
		pairs[[2]int{label, predicted[i]}]++
	}
	for _, class := range slices.Sorted(maps.Keys(by)) {
		by[class].Mean /= float64(by[class].N)
		classes = append(classes, *by[class])
	}
	for _, p := range slices.SortedFunc(maps.Keys(pairs), func(a, b [2]int) int { return cmp.Or(a[0]-b[0], pairs[b]-pairs[a], a[1]-b[1]) }) {
		confusion = append(confusion, [3]int{p[0], p[1], pairs[p]})
	}
	return classes, confusion
}

func pick[T any](all []T, at []int) []T {
	out := make([]T, len(at))
	for i, k := range at {
		out[i] = all[k]
	}
	return out
}

func float32s(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(math.Round(v*1e4) / 1e4)
	}
	return out
}

// drawSamples returns the image of a sheet and the ending of its name, and sets the size of its
// tiles. It returns nil for data that are not images.
func (r *Writer) drawSamples(ctx context.Context, s *sampled, sheet *scores.SampleSheet) ([]byte, string, error) {
	first := s.cells[0]
	frame := first.Model.Net.Frame()
	var out *image.NRGBA
	for line, chosen := range sheet.Samples {
		sample, err := first.Data.Source.At(ctx, s.samples[chosen.Index].At, frame)
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		if err != nil || !isImage(sample) {
			return nil, "", nil // such as audio, or a file that has gone since
		}
		tiles := []tensor.Tensor{sample.Input}
		for _, c := range s.cells {
			moved, err := r.movedSample(c, sample)
			if err != nil {
				return nil, "", err
			}
			tiles = append(tiles, moved)
		}
		if out == nil {
			w, h := thumbSize(sample.Input.Shape[2], sample.Input.Shape[1])
			up := func(n int) int { return (n + sheetBlock - 1) / sheetBlock * sheetBlock }
			sheet.Tile = &scores.SheetTile{Width: w, Height: h, Right: up(w), Down: up(h)}
			out = contactsheet.Blank(len(tiles)*up(w), len(sheet.Samples)*up(h))
		}
		for column, t := range tiles {
			full := contactsheet.Blank(t.Shape[2], t.Shape[1])
			contactsheet.Paint(full, 0, 0, 1, t)
			left, top := column*sheet.Tile.Right, line*sheet.Tile.Down
			draw.CatmullRom.Scale(out, image.Rect(left, top, left+sheet.Tile.Width, top+sheet.Tile.Height), full, full.Bounds(), draw.Src, nil)
		}
	}
	if out == nil {
		return nil, "", nil
	}
	var b bytes.Buffer
	if err := png.Encode(&b, out); err != nil || b.Len() <= pngBytes {
		return b.Bytes(), ".png", err
	}
	b.Reset()
	err := jpeg.Encode(&b, out, &jpeg.Options{Quality: 85})
	return b.Bytes(), ".jpg", err
}

// movedSample returns a sample under the view of a cell.
func (r *Writer) movedSample(c *plan.Cell, sample dataset.Sample) (tensor.Tensor, error) {
	if c.View.Transform == nil {
		if sample.Transformed == nil {
			return sample.Input, nil
		}
		return *sample.Transformed, nil
	}
	key := measure.Key{Seed: r.Plan.Study.Seed, Data: c.Data.Entry.Name, Transform: c.View.Name}
	return sample.Apply(procedure.Draw(c.View.Transform, c.View.Per == "trial", key, sample.Index))
}

// thumbSize returns the size of an image that is reduced to at most thumbSide.
func thumbSize(w, h int) (int, int) {
	if long := max(w, h); long > thumbSide {
		return max(1, w*thumbSide/long), max(1, h*thumbSide/long)
	}
	return w, h
}
