package dense_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// defaults are the settings of a study that sets none. A box counts if its score is at least
// Confidence and the part Visible of it lies in the image. Two boxes may be paired if their
// intersection over union is at least IoU. By Extent a moved box is drawn around the moved corners
// of the box, or around the ellipse in it. Peak is the range of the values of a map, for psnr.
func defaults() dense.Settings {
	return dense.Settings{Confidence: 0.5, IoU: 0.5, Visible: 0.5, Extent: "corners", Peak: 1}
}

// boxFormat describes an output of up to 40 boxes of 3 classes in images of 160 x 120 pixels.
func boxFormat() *decoded.Format {
	return &decoded.Format{Kind: decoded.BoxList, Outputs: []string{"boxes"}, Height: 120, Width: 160, Candidates: 40, Classes: 3}
}

// mapFormat describes an output with the class of each of size x size positions.
func mapFormat(classes, size int) *decoded.Format {
	return &decoded.Format{Kind: decoded.ClassMap, Outputs: []string{"out"}, Height: size, Width: size, Channels: 1, Classes: classes}
}

// boxRows returns the outputs of a model for n images with the given boxes: n x the shape of the
// format.
func boxRows(f *decoded.Format, images ...[]decoded.Box) tensor.Tensor {
	t := tensor.New(append([]int{len(images)}, f.Shape()...)...)
	for i, boxes := range images {
		f.SetBoxes(t.At(i).Data, boxes)
	}
	return t
}

// scoresOf returns the scores of the outputs for images x (clean) and T(x) (moved) by statistic and
// factor, such as "matched class=1", and the values of each sample. tr is the transformation T.
// matched is 2 pairs / (boxes of x + boxes of T(x)), an F1 score.
func scoresOf(t *testing.T, f *decoded.Format, s dense.Settings, tr transform.Transform, clean, moved tensor.Tensor) (map[string]measure.Score, []measure.SampleScore) {
	t.Helper()
	a, err := update(f, s, tr, clean, moved)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, s := range scores {
		name := strings.TrimSpace(s.Statistic + " " + s.Factor)
		if _, twice := out[name]; twice {
			t.Errorf("two scores of %q", name)
		}
		out[name] = s
	}
	return out, a.(measure.Sampler).Samples()
}

// update returns an accumulator after an update with all samples. Its site, what it knows of the
// data and the model, has the layout, the order in which samples are read. A batch has the place of
// each sample in the layout, its index in the data set, its label (here none) and, in Ops, T with
// the parameters drawn for it.
func update(f *decoded.Format, s dense.Settings, tr transform.Transform, clean, moved tensor.Tensor) (measure.Accumulator, error) {
	n := clean.Shape[0]
	a, err := dense.New(s).New(measure.Site{Layout: measure.NewLayout(n), Output: f, Motion: transform.Motions(tr), KeepSamples: true})
	if err != nil {
		return nil, err
	}
	b := &measure.Batch{Clean: clean, Transformed: moved}
	for i := range n {
		b.Place, b.Index, b.Label = append(b.Place, i), append(b.Index, i), append(b.Label, measure.NoLabel)
		b.Motions = append(b.Motions, transform.MotionOf(tr.Draw(rand.New(rand.NewPCG(1, uint64(i))))))
	}
	return a, a.Update(b)
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// golden holds outputs for images x (Clean) and T(x) (Found), and their scores. A box is left, top,
// right, bottom, score and class.
type golden struct {
	Height, Width int
	Boxes         []struct {
		Transform string
		Value     any // parameter of Transform; [x, y] of a translation
		Samples   []struct{ Clean, Found [][6]float64 }
		Scores    map[string]float64
	}
	Maps []struct {
		Quarters     int // T rotates by 90 degrees times this
		Clean, Found [][][]float64
		Scores       map[string]float64
	}
}

func boxesOf(rows [][6]float64) (out []decoded.Box) {
	for _, r := range rows {
		out = append(out, decoded.Box{Left: r[0], Top: r[1], Right: r[2], Bottom: r[3], Score: r[4], Class: int(r[5])})
	}
	return out
}

// TestGolden compares scores with those of testdata/boxes.py, which uses NumPy.
func TestGolden(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, got map[string]measure.Score, want map[string]float64) {
		t.Helper()
		for name, v := range want {
			s, ok := got[name]
			if !ok {
				t.Errorf("no score of %s", name)
			}
			near(t, name, s.Value, v)
		}
		for name, s := range got {
			if _, ok := want[name]; !ok && !math.IsNaN(s.Value) {
				t.Errorf("%s is %v, and the golden file has no such score", name, s.Value)
			}
		}
	}
	for _, c := range g.Boxes {
		t.Run(fmt.Sprint(c.Transform, c.Value), func(t *testing.T) {
			t.Parallel()
			f := boxFormat()
			f.Height, f.Width = g.Height, g.Width
			var clean, found [][]decoded.Box
			for _, s := range c.Samples {
				clean, found = append(clean, boxesOf(s.Clean)), append(found, boxesOf(s.Found))
			}
			got, _ := scoresOf(t, f, defaults(), transformOf(c.Transform, c.Value), boxRows(f, clean...), boxRows(f, found...))
			check(t, got, c.Scores)
		})
	}
	for _, c := range g.Maps {
		f := mapFormat(4, len(c.Clean[0]))
		rows := func(images [][][]float64) tensor.Tensor {
			x := tensor.New(len(images), 1, f.Height, f.Width)
			for i, v := range slices.Concat(slices.Concat(images...)...) {
				x.Data[i] = float32(v)
			}
			return x
		}
		rotation := transform.Rotate{Angle: transform.Fixed(float64(90 * c.Quarters))}
		got, samples := scoresOf(t, f, defaults(), rotation, rows(c.Clean), rows(c.Found))
		check(t, got, c.Scores)
		mean := 0.0
		for _, s := range samples {
			if s.Statistic == "pixel-agreement" {
				mean += s.Value / float64(len(c.Clean))
			}
		}
		near(t, "mean of the samples", mean, c.Scores["pixel-agreement"])
	}
}

// transformOf returns the transformation of a golden case.
func transformOf(name string, value any) transform.Transform {
	number := func() transform.Distribution { return transform.Fixed(value.(float64)) }
	switch name {
	case "rotate":
		return transform.Rotate{Angle: number()}
	case "flip":
		return transform.Flip{}
	case "scale":
		return transform.Scale{Factor: number()}
	}
	xy := value.([]any)
	return transform.Translate{X: transform.Fixed(xy[0].(float64)), Y: transform.Fixed(xy[1].(float64))}
}

// box returns a box at left, top, right and bottom in tenths of the image, of class 0 with a score
// of 0.9.
func box(left, top, right, bottom float64) decoded.Box {
	return decoded.Box{Left: left / 10, Top: top / 10, Right: right / 10, Bottom: bottom / 10, Score: 0.9}
}

// TestBoxesByHand checks scores computed by hand. found are the boxes in T(x). A statistic is in
// want only where it matters for the case. In "the same class first" a box is paired with one of
// its class and an IoU of 2/3, not with one of another class and an IoU of 1.
func TestBoxesByHand(t *testing.T) {
	t.Parallel()
	f := boxFormat()
	f.Height = f.Width
	with := func(b decoded.Box, class int, score float64) decoded.Box {
		b.Class, b.Score = class, score
		return b
	}
	identity, right := transform.Identity{}, transform.Translate{X: transform.Fixed(0.3)}
	for name, c := range map[string]struct {
		transform    transform.Transform
		clean, found []decoded.Box
		want         map[string]float64
	}{
		"equal boxes in another order": {identity, []decoded.Box{box(1, 1, 4, 4), with(box(5, 5, 9, 9), 1, 0.6)}, []decoded.Box{with(box(5, 5, 9, 9), 1, 0.6), box(1, 1, 4, 4)},
			map[string]float64{"matched": 1, "iou": 1, "class-flips": 0, "confidence-change": 0, "matched class=0": 1, "matched class=1": 1, "matched confidence=0.9": 1}},
		"another class": {identity, []decoded.Box{box(1, 1, 4, 4)}, []decoded.Box{with(box(1, 1, 4, 4), 2, 0.7)},
			map[string]float64{"matched": 1, "class-flips": 1, "confidence-change": -0.2, "matched class=0": 0, "matched class=2": 0}},
		"the same class first": {identity, []decoded.Box{with(box(1, 1, 4, 4), 1, 0.9)}, []decoded.Box{box(1, 1, 4, 4), with(box(1, 1, 4, 3), 1, 0.9)},
			map[string]float64{"matched": 2. / 3, "iou": 2. / 3, "class-flips": 0}},
		"lost and new":               {identity, []decoded.Box{box(1, 1, 4, 4), box(5, 1, 9, 4)}, []decoded.Box{box(1, 1, 4, 4), box(5, 5, 9, 9)}, map[string]float64{"matched": 0.5}},
		"score below the confidence": {identity, []decoded.Box{with(box(1, 1, 4, 4), 0, 0.45), box(5, 5, 9, 9)}, []decoded.Box{box(1, 1, 4, 4), box(5, 5, 9, 9)}, map[string]float64{"matched": 2. / 3, "matched confidence=0.4": 1}},
		"moved out of the image":     {right, []decoded.Box{box(8, 1, 10, 4), box(1, 1, 4, 4)}, []decoded.Box{box(4, 1, 7, 4)}, map[string]float64{"matched": 1}},
		// A third of the first box stays in the image, less than the setting Visible: it may be
		// found or not.
		"cut and found":     {right, []decoded.Box{box(6, 1, 9, 4), box(1, 1, 4, 4)}, []decoded.Box{box(9, 1, 10, 4), box(4, 1, 7, 4)}, map[string]float64{"matched": 1, "iou": 1}},
		"cut and not found": {right, []decoded.Box{box(6, 1, 9, 4), box(1, 1, 4, 4)}, []decoded.Box{box(4, 1, 7, 4)}, map[string]float64{"matched": 1}},
		// The translation fills the left 0.3 of the image, where boxes do not count.
		"box in the fill":      {right, []decoded.Box{box(1, 1, 4, 4)}, []decoded.Box{box(0, 5, 2, 9), box(4, 1, 7, 4)}, map[string]float64{"matched": 1}},
		"box half in the fill": {right, []decoded.Box{box(1, 1, 4, 4)}, []decoded.Box{box(2, 5, 4, 9), box(4, 1, 7, 4)}, map[string]float64{"matched": 2. / 3}},
		// A circular shift moves a box to where its centre goes.
		"circular shift": {transform.Translate{X: transform.Fixed(0.5), Sampling: transform.Sampling{Outside: transform.Wrapped}}, []decoded.Box{box(6, 1, 9, 4)}, []decoded.Box{box(1, 1, 4, 4)}, map[string]float64{"matched": 1, "iou": 1}},
		"small":          {identity, []decoded.Box{box(1, 1, 2, 2), box(2, 2, 9, 9)}, []decoded.Box{box(1, 1, 2, 2)}, map[string]float64{"matched": 2. / 3, "matched size=small": 1, "matched size=large": 0}},
	} {
		got, _ := scoresOf(t, f, defaults(), c.transform, boxRows(f, c.clean), boxRows(f, c.found))
		for statistic, want := range c.want {
			s, ok := got[statistic]
			if !ok {
				t.Errorf("%s: there is no %s", name, statistic)
			}
			near(t, name+": "+statistic, s.Value, want)
		}
	}
}

// TestMovedBoxesAreMatched checks that boxes that move as the image does are all matched, with an
// IoU of 1, if it is rotated by 90 degrees, which keeps boxes upright. With the setting Extent:
// ellipse so are the boxes around circles under any rotation.
func TestMovedBoxesAreMatched(t *testing.T) {
	t.Parallel()
	f := boxFormat()
	f.Height = f.Width
	r := rand.New(rand.NewPCG(4, 4))
	var clean, rotated []decoded.Box
	for range 20 {
		w, h := 0.05+0.3*r.Float64(), 0.05+0.3*r.Float64()
		x, y := (1-w)*r.Float64(), (1-h)*r.Float64()
		b := decoded.Box{Left: x, Top: y, Right: x + w, Bottom: y + h, Score: 0.9, Class: r.IntN(3)}
		clean = append(clean, b)
		b.Left, b.Top, b.Right, b.Bottom = b.Top, 1-b.Right, b.Bottom, 1-b.Left // counter-clockwise
		rotated = append(rotated, b)
	}
	got, _ := scoresOf(t, f, defaults(), transform.Rotate{Angle: transform.Fixed(90)}, boxRows(f, clean), boxRows(f, rotated))
	near(t, "matched", got["matched"].Value, 1)
	near(t, "iou", got["iou"].Value, 1)

	s := defaults()
	aroundCircle := []decoded.Box{box(4, 4, 6, 6)}
	rotation := transform.Rotate{Angle: transform.Fixed(45)}
	if got, _ = scoresOf(t, f, s, rotation, boxRows(f, aroundCircle), boxRows(f, aroundCircle)); math.Abs(got["iou"].Value-0.5) > 1e-5 {
		t.Errorf("the IoU of a square and the square around it, rotated by 45 degrees, is %v, want 0.5", got["iou"].Value)
	}
	s.Extent = "ellipse"
	got, _ = scoresOf(t, f, s, rotation, boxRows(f, aroundCircle), boxRows(f, aroundCircle))
	near(t, "iou of a circle", got["iou"].Value, 1)
}

// TestKeypoints mirrors the 17 keypoints of COCO: the nose, then pairs of a left and a right one.
// One of them is not visible.
func TestKeypoints(t *testing.T) {
	t.Parallel()
	f := boxFormat()
	f.Height, f.Keypoints = f.Width, 17
	person := box(2, 2, 6, 6)
	for k := range f.Keypoints {
		person.Keypoints = append(person.Keypoints, decoded.Keypoint{X: 0.2 + 0.02*float64(k), Y: 0.3, Visible: k != 3})
	}
	mirrored := box(4, 2, 8, 6)
	for k := range f.Keypoints {
		from := k
		if k > 0 { // left and right are exchanged: 1 and 2, 3 and 4, ...
			from = (k - 1) ^ 1 + 1
		}
		p := person.Keypoints[from]
		p.X = 1 - p.X
		mirrored.Keypoints = append(mirrored.Keypoints, p)
	}
	got, _ := scoresOf(t, f, defaults(), transform.Flip{}, boxRows(f, []decoded.Box{person}), boxRows(f, []decoded.Box{mirrored}))
	near(t, "keypoint-distance", got["keypoint-distance"].Value, 0)
	mirrored.Keypoints[0].X += 0.1 // a quarter of the side of the box, for one of 16 visible keypoints
	got, _ = scoresOf(t, f, defaults(), transform.Flip{}, boxRows(f, []decoded.Box{person}), boxRows(f, []decoded.Box{mirrored}))
	near(t, "keypoint-distance", got["keypoint-distance"].Value, 0.25/16)
}

// TestConfidenceOfMaps has a class map and, in the second channel, the confidence of each position.
// Scores with confidence=c are over the positions whose confidence in the clean map is at least c.
func TestConfidenceOfMaps(t *testing.T) {
	t.Parallel()
	f := mapFormat(2, 2)
	f.Channels = 2
	clean := tensor.Tensor{Shape: []int{1, 2, 2, 2}, Data: []float32{0, 1, 0, 1, 0.55, 0.95, 0.7, 0.8}}
	moved := tensor.Tensor{Shape: []int{1, 2, 2, 2}, Data: []float32{1, 1, 0, 0, 0.5, 0.5, 0.5, 0.5}}
	got, _ := scoresOf(t, f, defaults(), transform.Identity{}, clean, moved)
	for name, want := range map[string]float64{"pixel-agreement": 0.5, "pixel-agreement confidence=0.5": 0.5, "pixel-agreement confidence=0.6": 2. / 3,
		"pixel-agreement confidence=0.7": 2. / 3, "pixel-agreement confidence=0.8": 0.5, "pixel-agreement confidence=0.9": 1, "miou": 1. / 3, "miou class=0": 1. / 3, "miou class=1": 1. / 3} {
		near(t, name, got[name].Value, want)
	}
}

// TestOnlyVisiblePositionsCount translates a map by one of four columns. The column that enters has
// the class 2 and counts only if the translation is a circular shift.
func TestOnlyVisiblePositionsCount(t *testing.T) {
	t.Parallel()
	f := mapFormat(3, 4)
	clean, moved := tensor.New(1, 1, 4, 4), tensor.New(1, 1, 4, 4)
	for i := range 16 {
		clean.Data[i], moved.Data[i] = float32(i%4%3), 2
		if i%4 > 0 {
			moved.Data[i] = float32((i%4 - 1) % 3)
		}
	}
	got, _ := scoresOf(t, f, defaults(), transform.Translate{X: transform.Fixed(0.25)}, clean, moved)
	near(t, "pixel-agreement", got["pixel-agreement"].Value, 1)
	got, _ = scoresOf(t, f, defaults(), transform.Translate{X: transform.Fixed(0.25), Sampling: transform.Sampling{Outside: transform.Wrapped}}, clean, moved)
	near(t, "pixel-agreement", got["pixel-agreement"].Value, 0.75)
}

// TestValues checks the statistics of maps of real values, such as depths: the error relative to
// the rotated map of x, and the peak signal-to-noise ratio (psnr), which is infinite for equal
// maps.
func TestValues(t *testing.T) {
	t.Parallel()
	f := &decoded.Format{Kind: decoded.ValueMap, Outputs: []string{"depth"}, Height: 4, Width: 4, Channels: 2}
	r := rand.New(rand.NewPCG(1, 2))
	clean, rotated := tensor.New(3, 2, 4, 4), tensor.New(3, 2, 4, 4)
	for i := range clean.Data {
		clean.Data[i] = r.Float32()
	}
	tr := transform.Rotate{Angle: transform.Fixed(90)}
	for i := range 3 {
		tr.Draw(nil).Apply(rotated.At(i), clean.At(i))
	}
	got, _ := scoresOf(t, f, defaults(), tr, clean, rotated)
	near(t, "relative-error", got["relative-error"].Value, 0)
	if s := got["psnr"]; !math.IsNaN(s.Value) || !strings.Contains(s.Warnings[0], "infinite") {
		t.Errorf("psnr of equal maps: %+v", s)
	}
	for i := range rotated.Data {
		rotated.Data[i] += 0.1
	}
	s := defaults()
	s.Peak = 2
	got, _ = scoresOf(t, f, s, tr, clean, rotated)
	near(t, "psnr", got["psnr"].Value, 10*math.Log10(4/0.01))
}

// TestErrors checks the errors for invalid outputs (a view, in the messages, is x or T(x)), the
// scores without boxes, and Skip, which says why the measure is not computed, or nothing.
func TestErrors(t *testing.T) {
	t.Parallel()
	f := boxFormat()
	nan, unknown := box(1, 1, 4, 4), box(1, 1, 4, 4)
	nan.Left, unknown.Class = math.NaN(), 7
	good := boxRows(f, []decoded.Box{box(1, 1, 4, 4)})
	labels := mapFormat(2, 2)
	zeros, three, bad := tensor.New(1, 1, 2, 2), tensor.New(1, 1, 2, 2), tensor.New(1, 1, 2, 2)
	three.Data[1], bad.Data[2] = 3, float32(math.Inf(1))
	for name, c := range map[string]struct {
		format       *decoded.Format
		clean, moved tensor.Tensor
		want         string
	}{
		"NaN":              {f, good, boxRows(f, []decoded.Box{nan}), "NaN or infinity in the activations of sample 0 (transformed view)"},
		"clean NaN":        {f, boxRows(f, []decoded.Box{nan}), good, "(clean view)"},
		"class of a box":   {f, good, boxRows(f, []decoded.Box{unknown}), "output boxes has class 7, outside of 0 to 2: set output: {..., classes: 8}"},
		"class of a map":   {labels, zeros, three, "output out has class 3, outside of 0 to 1"},
		"infinity":         {labels, bad, zeros, "NaN or infinity"},
		"infinity, moved":  {labels, zeros, bad, "(transformed view)"},
		"negative classes": {labels, tensor.Tensor{Shape: []int{1, 1, 2, 2}, Data: []float32{0, 0, -1, 0}}, zeros, "class -1"},
	} {
		_, err := update(c.format, defaults(), transform.Identity{}, c.clean, c.moved)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	got, _ := scoresOf(t, f, defaults(), transform.Identity{}, boxRows(f, nil, nil, nil), boxRows(f, nil, nil, nil))
	if s := got["matched"]; !math.IsNaN(s.Value) || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "no image has a box of a score of at least 0.5") {
		t.Errorf("matched without boxes: %+v", s)
	}
	for want, site := range map[string]measure.Site{"no output of the model is decoded": {}, "positions move": {Output: f}, "": {Output: f, Motion: transform.Motions(transform.Flip{})}} {
		if got := dense.New(defaults()).Skip(site); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("Skip: %q, want %q", got, want)
		}
	}
}

// TestContract runs the checks of package measuretest: scores do not depend on how samples are
// divided into batches and merged.
func TestContract(t *testing.T) {
	t.Parallel()
	const n = 70
	r := rand.New(rand.NewPCG(3, 9))
	f := boxFormat()
	f.Candidates = 5
	var clean, moved [][]decoded.Box
	for range n {
		var inClean, inMoved []decoded.Box
		for range r.IntN(4) {
			x, y := 0.7*r.Float64(), 0.7*r.Float64()
			b := decoded.Box{Left: x, Top: y, Right: x + 0.3, Bottom: y + 0.3, Score: r.Float64(), Class: r.IntN(3)}
			inClean = append(inClean, b)
			b.Left, b.Right, b.Score = 1-b.Right, 1-b.Left, r.Float64()
			inMoved = append(inMoved, b)
		}
		clean, moved = append(clean, inClean), append(moved, inMoved)
	}
	labels := mapFormat(3, 4)
	values := &decoded.Format{Kind: decoded.ValueMap, Outputs: []string{"y"}, Height: 4, Width: 4, Channels: 1}
	random := func(limit int) tensor.Tensor {
		x := tensor.New(n, 1, 4, 4)
		for i := range x.Data {
			x.Data[i] = float32(r.IntN(limit))
		}
		return x
	}
	for name, c := range map[string]struct {
		format       *decoded.Format
		clean, moved tensor.Tensor
	}{
		"boxes":  {f, boxRows(f, clean...), boxRows(f, moved...)},
		"labels": {labels, random(3), random(3)},
		"values": {values, random(9), random(9)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measuretest.Run(t, measuretest.Case{Measure: dense.New(defaults()), Clean: c.clean, Transformed: c.moved,
				Site: measure.Site{Layout: measure.NewLayout(n), Output: c.format, Motion: transform.Motions(transform.Flip{}), KeepSamples: true}})
		})
	}
}
